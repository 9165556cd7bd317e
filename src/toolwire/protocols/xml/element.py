"""The parser for one element of a call: its tag and its text.

Well-formed elements are read strictly. Others are repaired only if one reading remains, and each repair is reported.
The number of repairs per reply is limited, because each may scan the rest of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, get_args

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import line_of, match_end
from toolwire.protocols.reading.markup import (
    CDATA,
    CDATA_END,
    CLOSING,
    OPENING,
    attributes,
    content_end,
    expand_references,
    is_empty,
    without_sections,
)
from toolwire.vocabulary.calls import Problem

SPLIT_END = "]]]]><![CDATA[>"
"""The form of `]]>` inside a value."""

BLOCK_TAGS = r"params|parameters|arguments|args"
"""Names of the element around the parameters: `params`, and its variants in models' replies."""

CallTag = Literal["tool_call", "call"]
"""Names of the element around a call. Both are read, whichever the prompt shows."""

CALL_TAGS = r"tool_call|call"
IS_CALL_TAG = frozenset[str](get_args(CallTag))
CLOSES_BLOCK = re.compile(rf"\s*+</(?P<name>(?:{BLOCK_TAGS}|{CALL_TAGS}))\s*+>")
NAMED_TAGS = frozenset({"param", "parameter", "argument"})
"""Tags that may give the parameter's name as an attribute, for names that cannot be a tag."""

_SPACE = re.compile(r"(?:\s++|<!--(?:(?!-->).)*+-->)*+", re.DOTALL)
_CDATA_MARK = re.compile(r"<!\[CDATA\[|\]\]>")
_CDATA_START = re.compile(r"\s*+<!\[CDATA\[")
_PLAIN = re.compile(r"[^<]*+")
_END = re.compile(r"\s*+(?:<[^<>]*+)?+\Z")
_TAG = re.compile(r"</?+([^\s<>/]++)")
_ENTITY = re.compile(r"&(?:\w+|#\d+|#x[0-9a-fA-F]+);")
_TAGS_AS_TEXT = "<{}> holds tags outside of CDATA; they were read as text."


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
        self.problems.append(
            Problem(message=message, repaired=True, place=line_of(self._text, position), is_loss=is_loss)
        )

    def _check(self, count: int, limit: int) -> None:
        if count > limit:
            raise Refusal(f"The reply is damaged in more than {limit} places. Write the calls anew, one by one.")


class ElementReader:
    """Reads the elements of one call."""

    def __init__(self, text: str, repairs: Repairs) -> None:
        self.names: Mapping[str, bool] = {}
        """The names of the tool's parameters; empty for an unknown tool. True: it takes tags as a list or object."""
        self._text = text
        self._repairs = repairs
        self.is_nested = False
        """True if a value held CDATA within CDATA. A loose `]]>` after the call would then belong to that value."""

    def value(self, tag: str, opening: re.Match[str], name: str) -> tuple[str, int]:
        """Returns the text of the parameter `name`, and the position after its element.

        The tags of a list or an object are returned as they are.
        """
        position = opening.end()
        if is_empty(opening):
            return "", position
        section = _CDATA_START.match(self._text, position)
        if section:
            return self._sections(tag, section.end())
        tags = self._tags(tag, position, name)
        return self._loose(tag, position) if tags is None else tags

    def _tags(self, tag: str, position: int, name: str) -> tuple[str, int] | None:
        """Reads a value that begins with a tag. None if it is to be read as text."""
        text, start = self._text, self.skip(position)
        if not OPENING.match(text, start) or (self.names and not self.names.get(name)):
            return None
        ends = content_end(text, start, tag)
        if ends is None:
            self._repairs.look()
            return None
        value = text[start : ends[0]]
        if not self.names:
            # The tool is unknown. If it takes a text, this is XML all the same.
            if CDATA not in value:
                return None
            self._repairs.note(_TAGS_AS_TEXT.format(tag), position)
            value = without_sections(value)
        return value, ends[1]

    def _sections(self, tag: str, position: int, *before: str) -> tuple[str, int]:
        """Reads a value in CDATA. `before` is its text before the first section."""
        text, pieces = self._text, list(before)
        while True:
            end = text.find(CDATA_END, position)
            if end < 0:
                raise self._cut(tag, position)
            piece = text[position:end]
            if CDATA in piece and (nested := self._find_nested_ends(tag, position, piece)):
                return "".join([*pieces, text[position : nested[0]]]), nested[1]
            after = end + len(CDATA_END)
            behind, stop = self._text_behind(after)
            if behind is None or not text.startswith(CDATA, stop):
                break
            pieces += [piece, behind]
            position = stop + len(CDATA)
        closing = CLOSING.match(text, self.skip(after))
        if closing and closing[1] == tag:
            return "".join([*pieces, piece]), closing.end()
        closing = CLOSING.match(text, stop)
        if behind is not None and closing and closing[1] == tag:
            return "".join([*pieces, piece, behind]), closing.end()
        value, end = self._mend_cdata(tag, position, piece, after)
        return "".join([*pieces, value]), end

    def _text_behind(self, position: int) -> tuple[str | None, int]:
        """Returns the text between a section and the next tag or section, and its end.

        None for a text that is not well-formed XML: it belongs to a section that `]]>` ended too early.
        """
        stop = match_end(_PLAIN, self._text, position)
        behind = self._text[position:stop]
        return (behind if not behind.strip() else None if self.is_nested else expand_references(behind)), stop

    def _find_nested_ends(self, tag: str, position: int, piece: str) -> tuple[int, int] | None:
        """Returns the ends of a value that contains whole CDATA sections, and of its element. None if it has none.

        In strict XML such a value ends at the first `]]>`, which leaves an extra `]]>` after it.
        """
        self.is_nested = True
        if re.search(rf"</{re.escape(tag)}\s*>", piece[: piece.index(CDATA)]):
            raise Refusal(
                f"The CDATA of <{tag}> is not closed before the next one opens. Close it by ]]>.",
                place=line_of(self._text, position),
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

    def _mend_cdata(self, tag: str, start: int, piece: str, after: int) -> tuple[str, int]:
        """Returns a value whose first `]]>` is not followed by its closing tag, and the end of its element."""
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
        """Returns the end of an element with a misspelt or missing closing tag.

        Raises:
            Refusal: The end is unclear, or the tag of another parameter stands there: one before it may be lost.
        """
        position = self.skip(position)
        closing = CLOSING.match(self._text, position)
        if CLOSES_BLOCK.match(self._text, position) or (closing is None and self._is_named_structure(position)):
            self._repairs.note(f"<{tag}> is not closed.", position)
            return position
        if closing and closing[1] not in self.names and self._is_structure(closing.end()):
            self._repairs.note(f"{closing[0]} closes <{tag}>.", position)
            return closing.end()
        raise self._cut(tag, position) if self.is_end(position) else self._unclear(tag, position)

    def _loose(self, tag: str, position: int) -> tuple[str, int]:
        """Reads a value outside of CDATA, and returns it with the end of its element."""
        text = self._text
        end = match_end(_PLAIN, text, position)
        if text.startswith(CDATA, end) and (before := expand_references(text[position:end])) is not None:
            return self._sections(tag, end + len(CDATA), before)
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
                        place=line_of(text, position),
                    )
                self._refuse_own_tags(tag, value, position)
                self._repairs.note(_TAGS_AS_TEXT.format(tag), position)
                return value, found.end()
        if not text[position:end].strip():
            raise self._unclear(tag, end)
        return text[position:end], self._loose_end(tag, end)

    def _refuse_own_tags(self, tag: str, value: str, position: int) -> None:
        """Refuses a value with a tag of this call in it: a tag before it may be damaged, and then it is no text."""
        own = next((found[1] for found in _TAG.finditer(value) if found[1] in self.names or found[1] == tag), None)
        if own is not None:
            raise Refusal(
                f"The value of <{tag}> holds a tag of the parameter {own[:40]!r}. Close each parameter by its own "
                "tag; put a value with tags into CDATA.",
                place=line_of(self._text, position),
            )

    def _plain(self, tag: str, start: int, end: int) -> str:
        """Returns a value without markup: decoded if it is well-formed XML, else unchanged."""
        text = self._text[start:end]
        value = expand_references(text)
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
            place=line_of(self._text, position),
        )

    def _unclear(self, tag: str, position: int) -> Refusal:
        return Refusal(
            f"It is not clear where the value of <{tag}> ends. Put it into CDATA, and write ]]> in it as {SPLIT_END}.",
            place=line_of(self._text, position),
        )
