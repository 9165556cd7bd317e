"""GBNF rules for text in JSON, Python and XML CDATA. Each keeps its closing delimiter out of its content."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from toolwire.protocols.grammar.characters import (
    ALL,
    CONTROLS,
    Characters,
    character_class,
    character_set,
    holds,
    without,
)
from toolwire.protocols.grammar.pattern import Choice, Node, One, Repeat, Sequence, Untranslatable, shortest
from toolwire.protocols.grammar.rules import TEXT_LIMIT, Grammar, choice, literal

_AUTOMATON = 256
"""Maximum text length for counting characters one by one, where two special characters must not be neighbours."""

_KEY_LIMIT = 64
"""Maximum length in characters of a key that the model invents."""


class Notation(Protocol):
    """The notation of values other than numbers."""

    null: str
    true: str
    false: str

    def text(self, grammar: Grammar, least: int, most: int | None) -> str:
        """Returns a rule for any text of `least` to `most` characters."""
        ...

    def pattern(self, grammar: Grammar, node: Node) -> str:
        """Returns a rule for the texts of a pattern.

        Raises:
            Untranslatable: The notation cannot write one of its characters.
        """
        ...

    def exact(self, text: str) -> str | None:
        """Returns a rule for exactly this text. None if the notation cannot write it."""
        ...

    def constant(self, value: Any) -> str | None:
        """Returns a rule for exactly this value, which is not a text. None if the notation cannot write it."""
        ...

    def key(self, grammar: Grammar) -> str:
        """Returns a rule for a key that the model invents, of 1 to 64 plain characters."""
        ...


class Json:
    """JSON. Inside CDATA no text holds two `]` in a row, because `]]>` would end the section.

    The grammar writes no `>` after the bracket of an array.
    """

    null, true, false = "null", "true", "false"

    def __init__(self, *, in_cdata: bool = False) -> None:
        self.in_cdata = in_cdata

    def text(self, grammar: Grammar, least: int, most: int | None) -> str:
        taken = character_set('"\\]') if self.in_cdata else character_set('"\\')
        plain = character_class(without(ALL, (*CONTROLS[:1], *taken)))
        escape = grammar.rule("json-escape", _JSON_ESCAPE)
        character = grammar.rule("json-character", f"{plain} | {escape}")
        if self.in_cdata:
            return f'"\\"" {without_pairs(grammar, character, "]", least, most)} "\\""'
        return f'"\\"" {grammar.repeat(character, least, TEXT_LIMIT if most is None else most)} "\\""'

    def pattern(self, grammar: Grammar, node: Node) -> str:
        escapes = {**_JSON_ESCAPES, "]": "\\u005d"} if self.in_cdata else _JSON_ESCAPES
        return f'"\\"" {_emit_node(grammar, node, CONTROLS, escapes)} "\\""'

    def exact(self, text: str) -> str | None:
        return self.constant(text)

    def constant(self, value: Any) -> str | None:
        text = json.dumps(value, ensure_ascii=False)
        if self.in_cdata and isinstance(value, str):
            text = text.replace("]]", "]\\u005d").replace("]]", "]\\u005d")
        return literal(text)

    def key(self, grammar: Grammar) -> str:
        return f'"\\"" {grammar.rule("key-character", _KEY_CHARACTER)}{{1,{_KEY_LIMIT}}} "\\""'


class Python:
    """Python literals in a TOML string delimited by three `'`.

    A value never holds two `'` in a row. The empty text is therefore never written as `''`.
    """

    null, true, false = "None", "True", "False"

    def text(self, grammar: Grammar, least: int, most: int | None) -> str:
        escape = grammar.rule("python-escape", _PYTHON_ESCAPE)
        plain = character_class(without(ALL, (*CONTROLS[:1], *character_set("\"'\\"), *CONTROLS[1:])))
        character = grammar.rule("python-character", f"{plain} | [\\t] | {escape}")
        inner = without_pairs(grammar, character, "'", least, most)
        double = f'"\\"" {inner} "\\""'
        if least == 0 and most is None:
            return f"{double} | {_single_quoted(grammar, character)} | {_triple_quoted(grammar)} | {_raw(grammar)}"
        single = f'"\'" {grammar.repeat(_with_quote(grammar, character), max(least, 1), most or TEXT_LIMIT)} "\'"'
        return double if most == 0 else f"{double} | {single}"

    def pattern(self, grammar: Grammar, node: Node) -> str:
        double = f'"\\"" {_emit_node(grammar, node, CONTROLS, _PYTHON_ESCAPES)} "\\""'
        if shortest(node) == 0 or _can_hold(node, "'"):
            return double
        return f'{double} | "\'" {_emit_node(grammar, node, CONTROLS, _PYTHON_ESCAPES)} "\'"'

    def exact(self, text: str) -> str | None:
        double = literal(re.sub("(?<=')'", r"\\'", json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")))
        is_plain = text and text.isprintable() and not set("'\"\\") & set(text)
        return choice([double, literal(f"'{text}'")]) if is_plain else double

    def constant(self, value: Any) -> str | None:
        text = repr(value)
        if text[0] in "[{":
            return None if "''" in text or not text.isprintable() else literal(text)
        return literal(text)

    def key(self, grammar: Grammar) -> str:
        characters = f"{grammar.rule('key-character', _KEY_CHARACTER)}{{1,{_KEY_LIMIT}}}"
        return f'("\\"" {characters} "\\"" | "\'" {characters} "\'")'


class Cdata:
    """Plain text in CDATA. It holds no two `]` in a row and no control characters."""

    null, true, false = "null", "true", "false"

    def text(self, grammar: Grammar, least: int, most: int | None) -> str:
        plain = character_class(without(ALL, (*_UNWRITABLE, *character_set("]"))))
        return without_pairs(grammar, grammar.rule("cdata-character", plain), "]", least, most)

    def pattern(self, grammar: Grammar, node: Node) -> str:
        return _emit_node(grammar, node, (*_UNWRITABLE, *character_set("]")), {})

    def exact(self, text: str) -> str | None:
        return None if "]]" in text or any(holds(_UNWRITABLE, one) for one in text) else literal(text)

    def constant(self, value: Any) -> str | None:
        return self.exact(json.dumps(value, ensure_ascii=False))

    def key(self, grammar: Grammar) -> str:
        raise NotImplementedError("CDATA holds objects as JSON")


def without_pairs(grammar: Grammar, character: str, special: str, least: int, most: int | None) -> str:
    """Returns a rule for `least` to `most` characters where no two `special` characters are neighbours."""
    mark = literal(special)
    if most is None or most > _AUTOMATON:
        unit = grammar.rule(f"{character}-unit", f"{mark}? {character}")
        if most is None:
            return f"{grammar.repeat(unit, least, TEXT_LIMIT)} {mark}?"
        # A unit may be two characters, so only half as many units fit. A text without the mark may use the full length.
        half, plain = (most - 1) // 2, grammar.repeat(character, least, most)
        return plain if half < least else f"({plain} | {grammar.repeat(unit, least, half)} {mark}?)"
    return _length_chain(grammar, character, mark, least, most)


def _length_chain(grammar: Grammar, character: str, mark: str, least: int, most: int) -> str:
    """Returns a chain of rules, one for each length that may still follow."""
    rests = ['""', '""']
    for length in range(1, most + 1):
        needed = max(0, least - (most - length))
        step = f"{character} {rests[-1]}"
        after = "" if length == 1 else f"{character} {rests[-2]}"
        marked = mark if not after else f"{mark} ({after})?" if needed <= 1 else f"{mark} {after}"
        body = f"({step} | {marked})?" if needed == 0 else f"{step} | {marked}"
        rests.append(grammar.rule(f"{character}-{needed}-{length}", body.replace(' ""', "")))
    return rests[-1]


def _single_quoted(grammar: Grammar, character: str) -> str:
    """Returns a rule for a single-quoted string. An escaped quote is never last: it would touch the closing quote."""
    either = _with_quote(grammar, character)
    unit = grammar.rule("single-quoted-unit", f'("\\\\\'"){{0,3}} {either}')
    return f'"\'" {grammar.repeat(unit, 1, TEXT_LIMIT)} "\'"'


def _with_quote(grammar: Grammar, character: str) -> str:
    return grammar.rule("single-quoted-character", f'{character} | "\\""')


def _triple_quoted(grammar: Grammar) -> str:
    """Returns a rule for a triple-quoted string. It has at most two double quotes in a row, and none at the end."""
    escape = grammar.rule("python-escape", _PYTHON_ESCAPE)
    plain = character_class(without(ALL, (*_UNWRITABLE, *character_set("\"'\\"))))
    quotes = " | ".join(map(literal, ('"', '""', "'", "\"'", "'\"", '""\'', '\'""')))
    unit = grammar.rule("triple-quoted-unit", f"({quotes})? ({plain} | {escape})")
    return f'"\\"\\"\\"" {grammar.repeat(unit, 0, TEXT_LIMIT)} "\\"\\"\\""'


def _raw(grammar: Grammar) -> str:
    """Returns a rule for raw strings such as `r"\\d+"`, which hold regular expressions."""
    plain = character_class(without(ALL, (*CONTROLS[:1], *character_set("\"'\\"), *CONTROLS[1:])))
    unit = grammar.rule("raw-unit", f'{plain} | "\\\\" ({plain} | "\\\\")')
    return f'"r\\"" {grammar.repeat(unit, 1, 512)} "\\""'


def _emit_node(grammar: Grammar, node: Node, unwritable: Characters, escapes: dict[str, str]) -> str:
    match node:
        case One(characters):
            return _one(characters, unwritable, escapes)
        case Sequence(parts):
            return f"({' '.join(_emit_node(grammar, part, unwritable, escapes) for part in parts)})" if parts else '""'
        case Choice(options):
            return choice([_emit_node(grammar, option, unwritable, escapes) for option in options])
        case Repeat(part, least, most):
            inner = grammar.rule("part", _emit_node(grammar, part, unwritable, escapes))
            return f"({grammar.repeat(inner, least, least if most is None else most)})"


def _one(characters: Characters, unwritable: Characters, escapes: dict[str, str]) -> str:
    special = character_set("".join(escapes))
    plain = without(without(characters, unwritable), special)
    found = [character_class(plain)] if plain else []
    found += [literal(escape) for character, escape in escapes.items() if holds(characters, character)]
    if not found:
        raise Untranslatable(str(characters))
    return choice(found)


def _can_hold(node: Node, character: str) -> bool:
    match node:
        case One(characters):
            return holds(characters, character)
        case Sequence(parts) | Choice(parts):
            return any(_can_hold(part, character) for part in parts)
        case Repeat(part, _, _):
            return _can_hold(part, character)


_UNWRITABLE = without(CONTROLS, character_set("\t\n"))
_KEY_CHARACTER = character_class(without(ALL, (*CONTROLS[:1], *character_set("\"'\\]"), *CONTROLS[1:])))

_JSON_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PYTHON_ESCAPES = {**_JSON_ESCAPES, "'": "\\'"}

_UNIT = '"\\\\u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2})'
"""An escape of four hexadecimal digits that is not a surrogate."""

_PAIR = '"\\\\u" [dD] [89abAB] [0-9a-fA-F]{2} "\\\\u" [dD] [c-fC-F] [0-9a-fA-F]{2}'
_JSON_ESCAPE = f'"\\\\" ["\\\\/bfnrt] | {_UNIT} | {_PAIR}'.replace('["', '[\\"')
_PYTHON_ESCAPE = f'"\\\\" [\\"\\\\nrt] | "\\\\x" [0-7] [0-9a-fA-F] | {_UNIT}'
