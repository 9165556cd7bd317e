"""Regular expressions of JSON schemas, run by pydantic-core's engine. Its time is linear in the length of the text.

JSON Schema uses ECMA-262 patterns: they search, `\\d` and `\\w` are ASCII, and a class has no operators. A pattern is
rewritten where the engine would read it differently. The engine has no look-around and no back-references.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from toolwire.definition.hostile.schema_walk import objects_in
from toolwire.vocabulary.errors import DefinitionError

PATTERN_STATES_LIMIT = 50_000
"""Maximum number of states of all patterns of one schema. Such an engine takes about 4 MB and 30 ms to build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPattern:
    """A pattern that is checked here."""

    found_in: Callable[[str], bool]
    """Returns True if the text contains a match."""
    states: int
    """Estimated number of the engine's states, which is about the number of steps per character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """The patterns of one schema, by their text."""

    checked: Mapping[str, SchemaPattern]
    """The patterns that are checked here."""
    unchecked: tuple[str, ...]
    """The patterns that the engine cannot hold. Only the tool itself can check them."""
    are_for_names: bool
    """True if the schema has `patternProperties`."""


def patterns_of(schema: Any, label: str) -> Patterns:
    """Compiles the patterns of a schema.

    Raises:
        DefinitionError: A pattern is not a regular expression.
    """
    checked: dict[str, SchemaPattern] = {}
    unchecked: list[str] = []
    texts, are_for_names = _pattern_texts(schema)
    states = 0
    for text in texts:
        rewritten = _PatternRewriter(text)
        states += rewritten.states
        if states > PATTERN_STATES_LIMIT:
            unchecked.append(text)
            continue
        try:
            checked[text] = _compile_pattern(rewritten)
        except SchemaError:
            _refuse_broken(text, label)
            unchecked.append(text)
    return Patterns(checked=checked, unchecked=tuple(unchecked), are_for_names=are_for_names)


def _pattern_texts(schema: Any) -> tuple[list[str], bool]:
    """Returns the values of `pattern` and the names under `patternProperties`.

    Similar values elsewhere are harmless.
    """
    found: dict[str, None] = {}
    are_for_names = False
    for node in objects_in(schema):
        if isinstance(node.get("pattern"), str):
            found[node["pattern"]] = None
        if isinstance(node.get("patternProperties"), dict):
            are_for_names = True
            found.update(dict.fromkeys(cast("dict[str, Any]", node["patternProperties"])))
    return list(found), are_for_names


def search_function(pattern: str, *, ignore_case: bool = False) -> Callable[[str], bool]:
    """Returns a function that searches a text for the pattern.

    Raises:
        ValueError: the engine cannot compile the pattern; the message says why in one line.
    """
    return schema_pattern(pattern, ignore_case=ignore_case).found_in


def schema_pattern(pattern: str, *, ignore_case: bool = False) -> SchemaPattern:
    """Returns the search of `search_function`, with the number of its states.

    Raises:
        ValueError: the engine cannot compile the pattern; the message says why in one line.
    """
    rewritten = _PatternRewriter(pattern)
    if rewritten.states > PATTERN_STATES_LIMIT:
        raise ValueError(f"it has more than {PATTERN_STATES_LIMIT:,} states: repeat less, or leave a part out")
    try:
        return _compile_pattern(rewritten, "(?i)" if ignore_case else "")
    except SchemaError as error:
        # The engine shows the pattern first, and the error in the last line.
        raise ValueError(str(error).strip().splitlines()[-1].removeprefix("error: ")) from error


def _compile_pattern(rewritten: _PatternRewriter, flags: str = "") -> SchemaPattern:
    validator = SchemaValidator(core_schema.str_schema(pattern=flags + rewritten.text))

    def found_in(text: str) -> bool:
        try:
            validator.validate_python(text, strict=True)
        except ValidationError:
            return False
        return True

    return SchemaPattern(found_in=found_in, states=rewritten.states)


_OF_ECMA: tuple[tuple[str, str], ...] = (
    (r"\[\^\]", r"[\\s\\S]"),
    (r"\[\]", r"(?!)"),
    (r"\\c[A-Za-z]", "x"),
    (r"\\[pP]\{[^{}]{1,64}\}", r"\\w"),
    (r"\\u\{[0-9A-Fa-f]{1,6}\}", "x"),
    (r"\\k<\w{1,64}>", ""),
    (r"\(\?<(?=[A-Za-z_])", "(?P<"),
)
"""Forms of ECMA-262 that Python lacks, each with one that it has, to tell them from broken patterns."""


def _refuse_broken(pattern: str, label: str) -> None:
    for form, other in _OF_ECMA:
        pattern = re.sub(form, other, pattern)
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise DefinitionError(
            f"{label}: the schema's pattern {pattern[:80]!r} is not a regular expression: {error}"
        ) from error


_NO_LINE_END = r"[^\n\r\x{2028}\x{2029}]"
"""ECMA-262's `.`; the engine's own matches all of these but the first."""
_SHORTHANDS = {"d": "0-9", "w": "0-9A-Za-z_"}
_QUANTIFIER = re.compile(r"\{([0-9]{1,9})(,[0-9]{0,9})?\}")
_PROPERTY = re.compile(r"\\[pP](?:\{[^}]{0,64}\}|.)")
_WIDE, _UNICODE = 12, 800
"""States of a class of nearly all characters, and of a Unicode property class."""


class _PatternRewriter:
    """A pattern in the engine's syntax, and an estimate of its states."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._parts: list[str] = []
        self._place = 0
        self.states = self._read()
        self.text = "".join(self._parts)

    def _read(self) -> int:
        groups: list[int] = []
        """The states of each open group so far, without its last atom."""
        total = last = 0
        while self._place < len(self._pattern):
            character = self._pattern[self._place]
            if character == "(":
                groups.append(total + last)
                total = last = 0
                self._take(1)
            elif character == ")" and groups:
                last = total + last + 2
                total = groups.pop()
                self._take(1)
            elif found := _QUANTIFIER.match(self._pattern, self._place):
                last *= max(1, int(found[1]), int(found[2][1:] or 1) if found[2] else 1)
                self._take(len(found[0]))
            else:
                total += last
                last = self._atom(character)
            if total + last > PATTERN_STATES_LIMIT:
                self._take(len(self._pattern))
        return total + last + sum(groups)

    def _take(self, count: int) -> None:
        self._parts.append(self._pattern[self._place : self._place + count])
        self._place += count

    def _atom(self, character: str) -> int:
        if character == "\\":
            return self._escape(in_class=False)
        if character == "[":
            return self._class()
        if character != ".":
            self._take(1)
            return 1
        self._parts.append(_NO_LINE_END)
        self._place += 1
        return _WIDE

    def _class(self) -> int:
        is_negated = self._pattern.startswith("[^", self._place)
        self._take(2 if is_negated else 1)
        states = _WIDE if is_negated else 1
        while self._place < len(self._pattern):
            character = self._pattern[self._place]
            if character == "]":
                self._take(1)
                break
            if character == "\\":
                states += self._escape(in_class=True)
                continue
            if character in "[&~":
                self._parts.append("\\")
            states += 0 if character.isascii() else 4
            self._take(1)
        return states

    def _escape(self, *, in_class: bool) -> int:
        kind = self._pattern[self._place + 1 : self._place + 2]
        characters = _SHORTHANDS.get(kind.lower()) if kind else None
        if found := _PROPERTY.match(self._pattern, self._place):
            self._take(len(found[0]))
            return _UNICODE
        if characters is None:
            self._take(2)
            return _WIDE if kind in ("s", "S") else 1
        negation = "^" if kind.isupper() else ""
        self._parts.append(characters if in_class and not negation else f"[{negation}{characters}]")
        self._place += 2
        return _WIDE if negation else len(characters)
