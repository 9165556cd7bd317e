"""Building blocks of GBNF, the grammar language of llama.cpp: rules, literals and bounded repeats.

`schema_rules.py` turns JSON schemas into rules. `attp_grammar.py`, `xml_grammar.py` and `json_grammar.py` add
the reply format of a protocol. Rules never recurse and every repeat is bounded, so that a small model stops.
"""

from __future__ import annotations

import re

TEXT_LIMIT = 8_192
"""Maximum length in characters of a text whose schema sets no limit."""

SPAN = 64
"""Length of a span. Longer repeats count spans, because llama.cpp makes a rule per count and refuses 2,000."""

CALLS_LIMIT = 8
"""Maximum number of calls in one reply."""

_SHORT = 256
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NO_NAME = re.compile(r"[^a-zA-Z0-9]+")


class Grammar:
    """The rules of one grammar. Equal bodies share one rule."""

    def __init__(self) -> None:
        self._bodies: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        """The last number used with each name. Searching for a free number from 1 would take quadratic time."""

    def rule(self, hint: str, body: str) -> str:
        """Returns the name of the rule with this body. A new rule is named after the hint."""
        known = self._names.get(body)
        if known is not None:
            return known
        stem = _NO_NAME.sub("-", hint).strip("-") or "rule"
        name, number = stem, self._numbers.get(stem, 1)
        while name in self._bodies or name == "root":
            number += 1
            name = f"{stem}-{number}"
        self._numbers[stem] = number
        self._bodies[name] = body
        self._names[body] = name
        return name

    def repeat(self, item: str, least: int, most: int) -> str:
        """Returns an expression for `least` to `most` repeats of a rule.

        Above 256 repeats, the upper bound may be up to 63 lower than `most`.
        """
        if most <= _SHORT:
            return f"{item}{{{least},{most}}}"
        span = self.rule(f"{item}-{SPAN}", f"{item}{{{SPAN}}}")
        spans, rest = divmod(least, SPAN)
        fixed = ([f"{span}{{{spans}}}"] if spans else []) + ([f"{item}{{{rest}}}"] if rest else [])
        free = most - least
        if free < SPAN:
            return " ".join([*fixed, f"{item}{{0,{free}}}"])
        return " ".join([*fixed, f"{span}{{0,{(free - SPAN + 1) // SPAN}}}", f"{item}{{0,{SPAN - 1}}}"])

    def text(self, root: str) -> str:
        """Returns the whole grammar. `root` is the body of its first rule."""
        lines = [f"root ::= {root}", *(f"{name} ::= {body}" for name, body in self._bodies.items())]
        return "\n".join(lines) + "\n"


def literal(text: str) -> str:
    """Returns the text as a GBNF literal."""
    return '"' + "".join(_escape_character(character) for character in text) + '"'


def choice(options: list[str]) -> str:
    """Returns an alternative of the expressions, in parentheses if there are several."""
    unique = list(dict.fromkeys(options))
    return unique[0] if len(unique) == 1 else f"({' | '.join(unique)})"


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\x{ord(character):02X}" if ord(character) < 0x20 or ord(character) == 0x7F else character
