"""A string in damaged JSON: its end, and the meaning of its backslashes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.strict_json import check_characters

Role = Literal["key", "member", "item", "top"]
"""The role of a string: an object's key, an object's value, an array's item, or the whole JSON value."""

OPENING = "\"'“”„‘’"
"""Marks that open a string."""

INNER_LIMIT = 256
"""Maximum number of unescaped quotes inside one string."""

# The closing marks for each opening mark.
_CLOSING = {'"': '"', "'": "'", "“": '“”"', "”": '“”"', "„": '“”"', "‘": "‘’'", "’": "‘’'"}
_BODY = {
    marks: re.compile(rf"[^\\{marks}]*+(?:\\.[^\\{marks}]*+)*+", re.DOTALL)
    for marks in dict.fromkeys(_CLOSING.values())
}

_QUOTES = "\"'“”„‘’"
_END = r"\s*+(?:[:：]|\Z)"
_NEXT_KEY = rf"(?:[{_QUOTES}][^{_QUOTES}\n]{{0,256}}(?:[{_QUOTES}]{_END}|\Z)|[A-Za-z_$][\w$]*+{_END})"
NEXT_LINE_KEY = re.compile(rf"[{_QUOTES}][^{_QUOTES}\n]{{0,256}}[{_QUOTES}]\s*+[:：]")
"""A quoted key. At the start of a line it ends the value before it, even without a comma."""

_COMMENT = r"//|\#|/\*"
_WORDS = "true|false|null|True|False|None|TRUE|FALSE|NULL"
_AFTER: dict[Role, re.Pattern[str]] = {
    "key": re.compile(_END),
    "member": re.compile(
        rf"\s*+(?:\Z|[}}\]]|[,，]\s*+(?:\Z|\}}|{_COMMENT}|{_NEXT_KEY})|{_COMMENT})"
        rf"|[^\S\n]*+\n\s*+{NEXT_LINE_KEY.pattern}"
    ),
    "item": re.compile(
        rf"\s*+(?:\Z|\]|[,，]\s*+(?:\Z|[\]\[{{{_QUOTES}0-9-]|{_COMMENT}|(?:{_WORDS})\b|\.[0-9])|{_COMMENT})"
    ),
    "top": re.compile(r"\s*+\Z"),
}
"""The text that must follow the closing mark of a string. Any other mark of the same kind belongs to the string."""

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = frozenset('"\\/bfnrt')
_WITH_A_MEANING_ELSEWHERE = frozenset("xuU0aveN\n")
_PATH = re.compile(r'(?:[A-Za-z]:|\\\\[^\\/:*?"<>|\n]++)(?:\\{1,2}[^\\/:*?"<>|\n]++)*+\\?')
_OF_PYTHON = re.compile(r"\\x(?:[01][0-9a-f]|7f|[89][0-9a-f]|a0|ad)|\\U[0-9a-f]{8}")
"""Escapes in Python's output, which has them for characters without a shape. A text that looks like a path and holds
one may not be a path. `C:\\x64` is one.
"""
_LIKE_ITEMS = re.compile(rf"[{_QUOTES}]\s*+[,，]|[,，]\s*+[{_QUOTES}]")
"""A quote beside a comma. In an array it may end an item."""
_CONTROL = re.compile(r"[\x00-\x1f]")
_TO_JSON = re.compile(r"\\(.)|\"", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LenientString:
    """A string and its position."""

    value: str
    source: str
    """The text between the quotes."""
    end: int
    """The position after the closing mark."""
    slips: tuple[str, ...]
    """The mistakes that were repaired."""


def read_string(text: str, start: int, role: Role) -> LenientString:
    """Reads the string that opens at `start`.

    Raises:
        Refusal: The string is never closed, its end is unclear, or its backslashes are ambiguous.
    """
    mark = text[start]
    if text.startswith('"""', start) and role != "key" and not _AFTER[role].match(text, start + 2):
        raise Refusal('A string stands in """. Write it in " with \\n for each line break.')
    end, has_inner = _end(text, start, role)
    source = text[start + 1 : end]
    if has_inner and role == "item" and _LIKE_ITEMS.search(source):
        raise _unclear(text[start : end + 1])
    slips = [] if mark == '"' else [f"Strings in {mark} were read as if in double quotes."]
    if has_inner:
        slips.append("Quotes inside of a string stand without a backslash; they were read as a part of it.")
    if _CONTROL.search(source):
        slips.append("Line breaks or tabs stand as they are inside of a string; they were kept.")
    value = _decode_escapes(source, slips)
    return LenientString(value=value, source=source, end=end + 1, slips=tuple(slips))


def _end(text: str, start: int, role: Role) -> tuple[int, bool]:
    """Returns the position of the closing mark, and True if the string contains other marks of the same kind."""
    body = _BODY[_CLOSING[text[start]]]
    is_apostrophe = text[start] in "'‘’"
    position, inner, is_open = start + 1, 0, False
    while True:
        found = body.match(text, position)
        position = found.end() if found else len(text)
        if position >= len(text):
            raise _never_closed()
        if _AFTER[role].match(text, position + 1):
            if is_open:
                raise _unclear(text[start : position + 1])
            return position, inner > 0
        if not (is_apostrophe and text[position - 1].isalnum() and text[position + 1 : position + 2].isalnum()):
            is_open = not is_open
            if not (_opens(text, position, start) if is_open else _closes(text, position)):
                raise _unclear(text[start : position + 1])
        inner += 1
        if inner > INNER_LIMIT:
            raise _unclear(text[start : position + 1])
        position += 1


def _opens(text: str, position: int, start: int) -> bool:
    """True if a quote inside a string opens a quotation."""
    before, after = text[position - 1], text[position + 1 : position + 2]
    return (position - 1 == start or not before.isalnum()) and bool(after.strip()) and after not in _QUOTES + ":："


def _closes(text: str, position: int) -> bool:
    """True if a quote inside a string closes a quotation."""
    before, after = text[position - 1], text[position + 1 : position + 2]
    return bool(before.strip()) and not after.isalnum() and after not in _QUOTES + ":："


def _decode_escapes(source: str, slips: list[str]) -> str:
    if "\\" not in source:
        return source
    escapes = set(_ESCAPE.findall(source))
    wrong = {escape for escape in escapes if len(escape) == 1 and escape not in _PLAIN and escape != "'"}
    if not wrong:
        if "'" in escapes:
            slips.append("\\' was read as '.")
        value: Any = json.loads(f'"{_TO_JSON.sub(_as_json, source)}"', strict=False)
        check_characters(value)
        return str(value)
    if _PATH.fullmatch(source) and not _OF_PYTHON.search(source):
        slips.append("The backslashes of a path stand alone; they were kept.")
        return source
    unclear = wrong & _WITH_A_MEANING_ELSEWHERE or escapes - wrong - {'"', "'"}
    if unclear:
        shown = min(unclear)
        raise Refusal(
            f"A string holds \\{min(wrong)}, which JSON does not know, so \\{shown} has two readings. "
            "Write each backslash that is meant as \\\\."
        )
    slips.append(f"JSON does not know \\{min(wrong)}; its backslash was kept.")
    return source.replace('\\"', '"').replace("\\'", "'")


def _as_json(found: re.Match[str]) -> str:
    if found[1] is None:
        return '\\"'
    return "'" if found[1] == "'" else found[0]


def _never_closed() -> Refusal:
    return Refusal("The JSON ends inside of a string: it was cut off, so it was not run. Make it shorter.")


def _unclear(source: str) -> Refusal:
    shown = source if len(source) <= 40 else f"...{source[-37:]}"
    return Refusal(f'It is not clear where the string {shown!r} ends. Inside of a string write each quote as \\".')
