"""A parser for JSON with the mistakes that models make. It accepts a mistake only if one reading remains.

General repair libraries close truncated text, keep the last of two equal keys, quote bare words and guess missing
commas. Here every scalar is a piece of the text, and `check_against_text` verifies that afterwards.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from toolwire.protocols.base import DEPTH_LIMIT, Refusal
from toolwire.protocols.reading.lenient_string import NEXT_LINE_KEY, OPENING, LenientString, Role, read_string
from toolwire.protocols.reading.strict_json import (
    check_key,
    duplicate_key_refusal,
    integer,
    load_prefix,
    no_number,
    real,
    too_deep,
)
from toolwire.vocabulary.calls import Problem

VALUE_LIMIT = 4_096
"""Maximum number of keys and values in a damaged text. Valid JSON parses much faster and has no such limit."""

_GAP = re.compile(r"(?:[\s\ufeff]++|//[^\n]*+|\#[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
_NUMBER = re.compile(
    r"(-?(?:(?:0|[1-9][0-9]*+(?:_[0-9]++)*+)(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)(?![\w.])"
)
_STRICT_NUMBER = re.compile(r"-?[0-9][^_]*+")
_SHOWN = 40
"""Maximum number of characters of a number in a message."""

_WORD = re.compile(r"[A-Za-z_$][\w$]*+")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "TRUE": True,
    "FALSE": False,
    "NULL": None,
}
_NO_NUMBERS = frozenset({"NaN", "Infinity", "nan", "inf"})
_COLON, _COMMA = ":：", ",，"

_CUT = "The JSON ends before it is closed: it was cut off, so it was not run. Make it shorter."


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar or key, and the piece of text that it was read from."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LenientReading:
    """The reading of a damaged text."""

    value: Any
    end: int
    """The position in the text where the value ends."""
    problems: tuple[Problem, ...]
    """The mistakes, one per kind, each with its first position."""
    said: tuple[Scalar, ...]
    """Every key and scalar of the value, in order."""


class JsonReader:
    """Reads the JSON values of one reply, with one bound for all damaged ones."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._values_left = VALUE_LIMIT // 2

    def read(self, position: int) -> tuple[Any, int, tuple[Problem, ...]]:
        """Returns the value that begins at a position, its end, and the repairs that it needed.

        Raises:
            Refusal: The text is truncated or ambiguous, or exceeds a limit.
        """
        try:
            return *load_prefix(self._text, position), ()
        except json.JSONDecodeError:
            found = read_lenient(self._text, position, values=self._values_left)
            self._values_left -= len(found.said)
            return found.value, found.end, found.problems


def read_lenient(
    text: str, position: int = 0, *, depth: int = DEPTH_LIMIT, values: int = VALUE_LIMIT
) -> LenientReading:
    """Reads the value that begins at `position`, with at most `values` keys and values.

    The caller checked the characters.

    Raises:
        Refusal: The value is truncated or ambiguous, or exceeds a limit.
    """
    reader = _LenientReader(text=text, position=position, depth=depth, values=values)
    value = reader.value("top")
    found = LenientReading(value=value, end=reader.position, problems=reader.problems(), said=tuple(reader.said))
    check_against_text(found)
    return found


def check_against_text(found: LenientReading) -> None:
    """Verifies that nothing was invented: keys and scalars are pieces of the text, in the same order.

    Raises:
        Refusal: A key or scalar is not in the text.
    """
    said = iter(found.said)
    for value in _scalars(found.value):
        piece = next(said, None)
        if piece is None or type(piece.value) is not type(value) or piece.value != value or not _matches_source(piece):
            raise Refusal(
                "The JSON is damaged, and repairing it would add text that was not written. Write strict JSON."
            )


def place_of(text: str, position: int) -> str:
    """Returns the position as text, such as `line 3, column 5`."""
    return f"line {text.count(chr(10), 0, position) + 1}, column {position - text.rfind(chr(10), 0, position)}"


class _LenientReader:
    def __init__(self, *, text: str, position: int, depth: int, values: int) -> None:
        self.text = text
        self.position = position
        self.said: list[Scalar] = []
        self._depth = depth
        self._values_left = values
        self._slips: dict[str, int] = {}

    def problems(self) -> tuple[Problem, ...]:
        return tuple(
            Problem(message=message, repaired=True, place=place_of(self.text, position))
            for message, position in self._slips.items()
        )

    def value(self, role: Role) -> Any:
        self._gap()
        mark = self.text[self.position : self.position + 1]
        if mark in ("{", "["):
            return self._read_container(mark)
        if mark in OPENING and mark:
            return self._string(role)
        if found := _NUMBER.match(self.text, self.position):
            return self._number(found)
        if found := _WORD.match(self.text, self.position):
            return self._word(found)
        raise self._refusal_wanting("a value")

    def _number(self, found: re.Match[str]) -> Any:
        source = found[1]
        digits = source.replace("_", "")
        value = integer(digits) if digits.lstrip("-").isdigit() else real(digits)
        if not _STRICT_NUMBER.fullmatch(source):
            self._slip(f"{source[:_SHOWN]} was read as {json.dumps(value)[:_SHOWN]}.", found.start())
        self.position = found.end()
        return self._keep(value, source)

    def _read_container(self, mark: str) -> Any:
        if self._depth <= 0:
            raise too_deep()
        self._depth -= 1
        self._count()
        self.position += 1
        value = self._object() if mark == "{" else self._array()
        self._depth += 1
        return value

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._takes("}"):
            key = self._key()
            if key in found:
                raise duplicate_key_refusal(key)
            check_key(key)
            if not self._takes(_COLON):
                raise self._refusal_wanting("a colon")
            found[key] = self.value("member")
            self._separator("}")
        return found

    def _array(self) -> list[Any]:
        found: list[Any] = []
        while not self._takes("]"):
            found.append(self.value("item"))
            self._separator("]")
        return found

    def _separator(self, closing: str) -> None:
        start = self.position
        if self._takes(_COMMA):
            self._gap()
            if self.text.startswith(closing, self.position):
                self._slip("An extra comma was left out.", start)
        elif closing == "}" and self._is_at_key_on_new_line(start):
            self._slip(
                "A comma is missing before a key on a new line; the key was read as the next one.", self.position
            )
        elif not self.text.startswith(closing, self.position):
            raise self._refusal_wanting(f"a comma or {closing}")

    def _is_at_key_on_new_line(self, start: int) -> bool:
        return "\n" in self.text[start : self.position] and NEXT_LINE_KEY.match(self.text, self.position) is not None

    def _key(self) -> str:
        self._gap()
        mark = self.text[self.position : self.position + 1]
        if mark and mark in OPENING:
            return self._string("key")
        found = _WORD.match(self.text, self.position)
        if found is None:
            raise self._refusal_wanting("a key in double quotes")
        self._slip("Keys without quotes were read as strings.", self.position)
        self.position = found.end()
        return self._keep(found[0], found[0])

    def _string(self, role: Role) -> str:
        found: LenientString = read_string(self.text, self.position, role)
        for slip in found.slips:
            self._slip(slip, self.position)
        self.position = found.end
        return self._keep(found.value, found.source)

    def _word(self, found: re.Match[str]) -> Any:
        word = found[0]
        if word in _NO_NUMBERS:
            no_number(word)
        if word not in _WORDS:
            raise self._refusal_wanting("a value; text stands in double quotes")
        if not word.islower():
            self._slip(f"{word} was read as {'null' if word == 'None' else word.lower()}.", found.start())
        self.position = found.end()
        return self._keep(_WORDS[word], word)

    def _keep(self, value: Any, source: str) -> Any:
        self.said.append(Scalar(value, source))
        self._count()
        return value

    def _count(self) -> None:
        self._values_left -= 1
        if self._values_left < 0:
            raise Refusal(f"The JSON is damaged and holds more than {VALUE_LIMIT} values. Write strict JSON.")

    def _gap(self) -> None:
        found = _GAP.match(self.text, self.position)
        if found and found.end() > self.position:
            if found[0].strip(" \t\r\n\ufeff"):
                is_comment = "/" in found[0] or "#" in found[0]
                self._slip(f"A {'comment' if is_comment else 'space of another kind'} was left out.", self.position)
            self.position = found.end()

    def _takes(self, marks: str) -> bool:
        """Consumes one of these marks if it is next."""
        self._gap()
        mark = self.text[self.position : self.position + 1]
        if not mark or mark not in marks:
            return False
        if not mark.isascii():
            self._slip(f"{mark} was read as {marks[0]}.", self.position)
        self.position += 1
        return True

    def _slip(self, message: str, position: int) -> None:
        self._slips.setdefault(message, position)

    def _refusal_wanting(self, wanted: str) -> Refusal:
        self._gap()
        if self.position >= len(self.text):
            return Refusal(_CUT, place=place_of(self.text, self.position))
        given = self.text[self.position : self.position + 20]
        return Refusal(f"The JSON wants {wanted} where {given!r} stands.", place=place_of(self.text, self.position))


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _scalars(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _scalars(item)
    else:
        yield value


_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)


def _matches_source(piece: Scalar) -> bool:
    """True if the value can be what its source says. The check does not reuse the parser's own decoding."""
    value, source = piece.value, piece.source
    if not isinstance(value, str):
        return _WORDS.get(source, source) is value or str(value) == source or float(source) == value
    if value == source:
        return True
    position = 0
    for part in _ESCAPED.split(source):
        position = value.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return len(value) <= len(source)
