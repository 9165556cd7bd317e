"""The parser for one element of a call: its tag and its text.

Well-formed elements are read strictly. Others are repaired only if one reading remains, and each repair is reported.
The number of repairs per reply is limited, because each may scan the rest of the reply.
"""

from __future__ import annotations

import json
import re

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import line, match_end
from toolwire.vocabulary.calls import Problem

CDATA = "<![CDATA["
CDATA_END = "]]>"
SPLIT_END = "]]]]><![CDATA[>"
"""The form of `]]>` inside a value."""

BLOCK_TAGS = r"params|parameters|arguments|args"
"""Names of the element around the parameters: `params`, and its variants in models' replies."""

_NAME = r"[^\W\d][\w.\-]*+"
OPENING = re.compile(rf"<(?P<name>{_NAME})(?P<attributes>[\s/][^<>]*+)?+>")
CLOSING = re.compile(rf"</({_NAME})\s*+>")
CLOSES_BLOCK = re.compile(rf"\s*+</(?P<name>(?:{BLOCK_TAGS}|tool_call))\s*+>")
NAMED_TAGS = frozenset({"param", "parameter", "argument"})
"""Tags that may give the parameter's name as an attribute, for names that cannot be a tag."""

_SPACE = re.compile(r"(?:\s++|<!--(?:(?!-->).)*+-->)*+", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w.:\-]+)\s*+=\s*+("(?:[^"\\]|\\.)*+"|'[^']*+')""", re.DOTALL)
_CDATA_MARK = re.compile(r"<!\[CDATA\[|\]\]>")
_CDATA_START = re.compile(r"\s*+<!\[CDATA\[")
_PLAIN = re.compile(r"[^<]*+")
_END = re.compile(r"\s*+(?:<[^<>]*+)?+\Z")
_ENTITY = re.compile(r"&(?:\w+|#\d+|#x[0-9a-fA-F]+);")
_REFERENCE = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));")
_NAMED_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_CHARACTER = re.compile("[\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that XML allows."""


def expanded(text: str) -> str | None:
    """Returns text outside of CDATA with the five entities and character references replaced by their characters.

    None if the text is not well-formed XML: a bare `&`, an unknown entity, a character that XML forbids, or `]]>`.
    """
    if CDATA_END in text:
        return None
    pieces, position = list[str](), 0
    while (start := text.find("&", position)) >= 0:
        reference = _REFERENCE.match(text, start)
        character = _character(reference) if reference else ""
        if reference is None or not character:
            return None
        pieces += [text[position:start], character]
        position = reference.end()
    return "".join([*pieces, text[position:]])


def _character(reference: re.Match[str]) -> str:
    """Returns the character of a reference; empty if XML forbids it."""
    named, decimal, hexadecimal = reference.groups()
    if named:
        return _NAMED_CHARACTERS[named]
    number = int(decimal) if decimal else int(hexadecimal, 16)
    character = chr(number) if number < 0x110000 else ""
    return character if _CHARACTER.fullmatch(character) else ""


class Repairs:
    """The repairs of one reply."""

    LIMIT = 32
    """Maximum number of reported repairs."""

    LOOK_LIMIT = 12
    """Maximum number of scans of the rest of the reply. One scan takes 2 ms in a reply of 64 KiB."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._looks = 0
        self.problems: list[Problem] = []

    def look(self) -> None:
        """Counts one scan of the rest of the reply.

        Raises:
            Refusal: The scan limit is exceeded.
        """
        self._looks += 1
        self._check(self._looks, self.LOOK_LIMIT)

    def note(self, message: str, position: int, *, is_loss: bool = False) -> None:
        """Reports a repair.

        Raises:
            Refusal: The repair limit is exceeded.
        """
        self._check(len(self.problems) + 1, self.LIMIT)
        self.problems.append(Problem(message=message, repaired=True, place=line(self._text, position), is_loss=is_loss))

    def _check(self, count: int, limit: int) -> None:
        if count > limit:
            raise Refusal(f"The reply is damaged in more than {limit} places. Write the calls anew, one by one.")


class ElementReader:
    """Reads the elements of one call."""

    def __init__(self, text: str, repairs: Repairs) -> None:
        self.names: frozenset[str] = frozenset()
        """The names of the tool's parameters; empty for an unknown tool."""
        self._text = text
        self._repairs = repairs
        self.is_nested = False
        """True if a value held CDATA within CDATA. A loose `]]>` after the call would then belong to that value."""

    def value(self, tag: str, opening: re.Match[str]) -> tuple[str, int]:
        """Returns the text of an element, and the position after the element."""
        position = opening.end()
        if is_empty(opening):
            return "", position
        section = _CDATA_START.match(self._text, position)
        return self._sections(tag, section.end()) if section else self._loose(tag, position)

    def _sections(self, tag: str, position: int) -> tuple[str, int]:
        text, pieces = self._text, list[str]()
        while True:
            end = text.find(CDATA_END, position)
            if end < 0:
                raise self._cut(tag, position)
            piece = text[position:end]
            if CDATA in piece and (nested := self._nested(tag, position, piece)):
                return "".join([*pieces, text[position : nested[0]]]), nested[1]
            after = end + len(CDATA_END)
            again = _CDATA_START.match(text, after)
            if again is None:
                break
            pieces += [piece, text[after : again.end() - len(CDATA)]]
            position = again.end()
        closing = CLOSING.match(text, self.skip(after))
        if closing and closing[1] == tag:
            return "".join([*pieces, piece]), closing.end()
        value, end = self._mended(tag, position, piece, after)
        return "".join([*pieces, value]), end

    def _nested(self, tag: str, position: int, piece: str) -> tuple[int, int] | None:
        """Returns the ends of a value that contains whole CDATA sections, and of its element. None if it has none.

        In strict XML such a value ends at the first `]]>`, which leaves an extra `]]>` after it.
        """
        self.is_nested = True
        if re.search(rf"</{re.escape(tag)}\s*>", piece[: piece.index(CDATA)]):
            raise Refusal(
                f"The CDATA of <{tag}> is not closed before the next one opens. Close it by ]]>.",
                place=line(self._text, position),
            )
        self._repairs.look()
        depth = 1
        for mark in _CDATA_MARK.finditer(self._text, position):
            depth += 1 if mark[0] == CDATA else -1
            if not depth:
                closing = CLOSING.match(self._text, self.skip(mark.end()))
                if closing is None or closing[1] != tag or not self._is_structure(closing.end()):
                    return None
                self._repairs.note(f"CDATA inside the CDATA of <{tag}> was read as text.", position)
                return mark.start(), closing.end()
        return None

    def _mended(self, tag: str, start: int, piece: str, after: int) -> tuple[str, int]:
        """Reads a value whose first `]]>` is not followed by its closing tag.

        Returns it with the end of its element.
        """
        self._repairs.look()
        for found in re.compile(rf"\]\]>\s*+</{re.escape(tag)}\s*+>").finditer(self._text, after):
            if self._is_structure(found.end()):
                value = self._text[start : found.start()]
                if SPLIT_END in value:
                    break
                self.is_nested = True
                self._repairs.note(f"]]> inside the CDATA of <{tag}> was read as text.", after - len(CDATA_END))
                return value, found.end()
        if self.is_nested or re.search(rf"</{re.escape(tag)}\s*>", piece):
            raise self._unclear(tag, after)
        return piece, self._loose_end(tag, after)

    def _loose_end(self, tag: str, position: int) -> int:
        """Returns the end of an element with a wrong or missing closing tag.

        Raises:
            Refusal: The end is unclear.
        """
        position = self.skip(position)
        closing = CLOSING.match(self._text, position)
        if CLOSES_BLOCK.match(self._text, position) or (closing is None and self._is_named_structure(position)):
            self._repairs.note(f"<{tag}> is not closed.", position)
            return position
        if closing and self._is_structure(closing.end()):
            self._repairs.note(f"{closing[0]} closes <{tag}>.", position)
            return closing.end()
        raise self._cut(tag, position) if self.is_end(position) else self._unclear(tag, position)

    def _loose(self, tag: str, position: int) -> tuple[str, int]:
        """Reads a value outside of CDATA, and returns it with the end of its element."""
        text = self._text
        end = match_end(_PLAIN, text, position)
        closing = CLOSING.match(text, end)
        if closing and closing[1] == tag:
            # Unless a tag follows, this closing tag may be part of the value.
            follows = self.skip(closing.end())
            if follows >= len(text) or text[follows] == "<":
                return self._plain(tag, position, end), closing.end()
        self._repairs.look()
        for found in re.compile(rf"</{re.escape(tag)}\s*+>").finditer(text, position):
            if self._is_structure(found.end()):
                value = text[position : found.start()]
                if CDATA in value or CDATA_END in value:
                    raise Refusal(
                        f"Text stands beside the CDATA of <{tag}>. Put the whole value into CDATA.",
                        place=line(text, position),
                    )
                self._repairs.note(f"<{tag}> holds tags outside of CDATA; they were read as text.", position)
                return value, found.end()
        return text[position:end], self._loose_end(tag, end)

    def _plain(self, tag: str, start: int, end: int) -> str:
        """Returns a value without markup: decoded if it is well-formed XML, else unchanged."""
        text = self._text[start:end]
        value = expanded(text)
        if value is not None:
            return value
        if found := _ENTITY.search(text):
            message = f"{found[0][:40]} in <{tag}> was left as it is: the value is not well-formed XML text."
            self._repairs.note(message, start + found.start())
        return text

    def _is_structure(self, position: int) -> bool:
        """True if the text here can only follow a parameter: the end of its block, or another parameter.

        For an unknown tool, any tag may be a parameter.
        """
        if CLOSES_BLOCK.match(self._text, position):
            return True
        found = OPENING.match(self._text, self.skip(position))
        return found is not None and (not self.names or self._is_known(found))

    def _is_named_structure(self, position: int) -> bool:
        found = OPENING.match(self._text, position)
        return found is not None and self._is_known(found)

    def _is_known(self, opening: re.Match[str]) -> bool:
        tag = opening["name"]
        return tag in self.names or (tag in NAMED_TAGS and "name" in attributes(opening))

    def skip(self, position: int) -> int:
        return match_end(_SPACE, self._text, position)

    def is_end(self, position: int) -> bool:
        """True if only the beginning of a tag, or nothing, remains."""
        return _END.match(self._text, position) is not None

    def _cut(self, tag: str, position: int) -> Refusal:
        return Refusal(
            f"<{tag}> is never closed: the reply ends in the middle of the call. Make it shorter.",
            place=line(self._text, position),
        )

    def _unclear(self, tag: str, position: int) -> Refusal:
        return Refusal(
            f"It is not clear where the value of <{tag}> ends. Put it into CDATA, and write ]]> in it as {SPLIT_END}.",
            place=line(self._text, position),
        )


def is_empty(opening: re.Match[str]) -> bool:
    """True for an empty-element tag such as `<limit/>`."""
    return (opening["attributes"] or "").endswith("/")


def attributes(opening: re.Match[str]) -> dict[str, str]:
    return {name: _attribute(value) for name, value in _ATTRIBUTE.findall(opening["attributes"] or "")}


def _attribute(quoted: str) -> str:
    """Returns an attribute's text. Names that need escapes use those of JSON."""
    if quoted[0] == '"' and "\\" in quoted:
        try:
            return str(json.loads(quoted))
        except ValueError:
            pass
    return quoted[1:-1]
