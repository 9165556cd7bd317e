"""The parser for one XML call. It is a scanner without a DTD, without entity expansion and without a tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.incoming import line_of
from toolwire.protocols.reading.markup import (
    CDATA,
    CDATA_END,
    CLOSING,
    OPENING,
    attributes,
    is_empty,
    stray_attribute,
)
from toolwire.protocols.reading.strict_json import KEY_LIMIT
from toolwire.protocols.xml.element import (
    BLOCK_TAGS,
    CALL_TAGS,
    CLOSES_BLOCK,
    IS_CALL_TAG,
    NAMED_TAGS,
    CallTag,
    ElementReader,
    Repairs,
)

_OF_A_CALL = frozenset({"name", "id", "type", "index"})
_OF_A_VALUE = frozenset({"type", "xml:space"})
"""Attributes that are no arguments: of the element around a call, and of the elements in it."""

_IS_BLOCK = re.compile(BLOCK_TAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawParameter:
    """A parameter as written."""

    name: str
    text: str
    """The unchanged value, with CDATA sections joined."""
    is_json: bool
    """True if the parameter has `type="json"`."""
    position: int
    """The position of its tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """A call as written."""

    name: str
    parameters: tuple[RawParameter, ...]
    """The parameters in order, each name once."""
    start: int
    end: int
    """The start of the call, and the position after it."""
    is_nested: bool
    """True if a value held CDATA within CDATA. A loose `]]>` after the call would then belong to that value."""


Known = Callable[[str], Mapping[str, bool]]
"""Returns the names of a tool's parameters; empty for an unknown tool. True: it takes tags as a list or object."""


class CallReader:
    """Reads one call. Make a new reader for each call."""

    def __init__(self, text: str, known: Known, repairs: Repairs, tag: CallTag) -> None:
        """`tag` is the name of the element around a call that the model was told."""
        self._tag: str = tag
        self._text = text
        self._known = known
        self._repairs = repairs
        self._elements = ElementReader(text, repairs)
        self._tool: str | None = None
        self._parameters: dict[str, RawParameter] | None = None
        self._is_named_by_attribute = False
        self._is_without_block = False
        """True if the parameters are directly in the element around the call."""

    def read_wrapped(self, start: int, position: int) -> RawCall:
        """Reads the call whose opening tag extends from `start` to `position`.

        Raises:
            Refusal: The call cannot be read.
        """
        self._take_name_attribute(start)
        self._refuse_attributes(OPENING.match(self._text, start), _OF_A_CALL)
        while True:
            position = self._elements.skip(position)
            if found := CLOSING.match(self._text, position):
                position = self._take_closing(found)
                return self._call(start, position)
            found = OPENING.match(self._text, position)
            if found and found["name"] == "name" and self._is_tool_name():
                position = self._take_name(found)
            elif found and _IS_BLOCK.fullmatch(found["name"]) and self._parameters is None:
                position = self._take_block(found)
            elif found and self._is_loose_parameter(found):
                position = self._take_loose_parameter(found)
            elif self._tool is not None and self._parameters is not None and not self._is_left_over(found):
                self._repairs.note(f"<{self._tag}> is not closed.", start)
                return self._call(start, position)
            else:
                raise self._refusal_at(position, start)

    def read_bare(self, start: int, position: int, name: str) -> RawCall:
        """Reads a call without the element around it. Its `<params>` begins at `position`.

        Raises:
            Refusal: The call cannot be read.
        """
        self._set_tool(name, start)
        opening = OPENING.match(self._text, position)
        if opening is None:
            raise self._refusal_at(position, start)
        end = self._take_block(opening)
        closing = CLOSING.match(self._text, self._elements.skip(end))
        if closing and closing[1] in IS_CALL_TAG:
            end = closing.end()
        self._repairs.note(f"<{self._tag}> is missing around the call.", start)
        return self._call(start, end)

    def _call(self, start: int, end: int) -> RawCall:
        if self._tool is None:
            raise Refusal("The call has no <name>. Name the tool first.", place=line_of(self._text, start))
        # An attribute such as `id` is the call's own, unless a parameter that the call lacks has this name.
        lacking = self._elements.names.keys() - (self._parameters or {}).keys() - {"name"}
        self._refuse_attributes(OPENING.match(self._text, start), _OF_A_CALL - lacking)
        if self._parameters is None:
            self._repairs.note("The call has no <params>; it was read as one without arguments.", start)
        return RawCall(
            name=self._tool,
            parameters=tuple((self._parameters or {}).values()),
            start=start,
            end=end,
            is_nested=self._elements.is_nested,
        )

    def _take_closing(self, found: re.Match[str]) -> int:
        if found[1] != self._tag:
            if self._tool is None or self._parameters is None:
                raise self._stray_tag_refusal(found)
            self._repairs.note(f"{found[0]} closes <{self._tag}>.", found.start())
        return found.end()

    def _take_name_attribute(self, start: int) -> None:
        opening = OPENING.match(self._text, start)
        if opening is None:
            return
        self._tag = opening["name"]
        name = attributes(opening).get("name")
        if name is not None:
            self._set_tool(name, start)
            self._is_named_by_attribute = True
            self._repairs.note(f"The name was read from the attribute of <{self._tag}>.", start)

    def _refuse_attributes(self, opening: re.Match[str] | None, allowed: AbstractSet[str], tag: str = "") -> None:
        """Refuses a tag with an attribute that may be an argument: it would be lost. `tag` is that of a parameter."""
        stray = "" if opening is None else stray_attribute(opening["attributes"], allowed)
        if opening is None or not stray:
            return
        form = f"Write the value between <{tag}> and </{tag}>." if tag else "Write each argument in a tag of its own."
        raise Refusal(
            f"<{opening['name']}> holds {stray[:40]!r}, where no argument is read. {form}",
            place=line_of(self._text, opening.start()),
        )

    def _is_tool_name(self) -> bool:
        """True if a `<name>` in the call is the tool's name, and not a parameter called `name`."""
        if self._tool is None:
            return True
        return self._is_named_by_attribute and self._parameters is None and "name" not in self._elements.names

    def _is_loose_parameter(self, opening: re.Match[str]) -> bool:
        """True if a tag directly in the element around the call is a parameter."""
        is_block = _IS_BLOCK.fullmatch(opening["name"]) and opening["name"] not in self._elements.names
        return self._tool is not None and not is_block and (self._parameters is None or self._is_without_block)

    def _is_left_over(self, opening: re.Match[str] | None) -> bool:
        """True if a second block of parameters follows, or a parameter outside of the block."""
        return opening is not None and (
            opening["name"] in self._elements.names or _IS_BLOCK.fullmatch(opening["name"]) is not None
        )

    def _take_name(self, opening: re.Match[str]) -> int:
        self._refuse_attributes(opening, _OF_A_VALUE)
        name, end = self._elements.value("name", opening, "name")
        if "<" in name:
            raise Refusal(
                f"<name> holds {name[:40]!r}. Write a tool's name in it.", place=line_of(self._text, opening.start())
            )
        if self._is_named_by_attribute and name.strip() != self._tool:
            raise Refusal(
                f"The call names two tools, in <{self._tag}> and in <name>. Write one <name>.",
                place=line_of(self._text, opening.start()),
            )
        self._set_tool(name, opening.start())
        return end

    def _take_loose_parameter(self, opening: re.Match[str]) -> int:
        if not self._is_without_block:
            self._is_without_block = True
            self._repairs.note("<params> is missing around the parameters.", opening.start())
        return self._take_parameter(opening)

    def _set_tool(self, name: str, position: int) -> None:
        self._tool = name.strip()
        if not self._tool or len(self._tool) > KEY_LIMIT:
            what = "is empty" if not self._tool else f"has more than {KEY_LIMIT} characters"
            raise Refusal(f"<name> {what}. Write a tool's name in it.", place=line_of(self._text, position))
        self._elements.names = self._known(self._tool)

    def _take_block(self, opening: re.Match[str]) -> int:
        tag = opening["name"]
        if tag != "params":
            self._repairs.note(f"<{tag}> was read as <params>.", opening.start())
        self._refuse_attributes(opening, _OF_A_VALUE)
        self._parameters = {}
        if is_empty(opening):
            return opening.end()
        position = self._elements.skip(opening.end())
        while not (closing := CLOSING.match(self._text, position)):
            found = OPENING.match(self._text, position)
            if found is None:
                raise self._refusal_at(position, opening.start())
            position = self._elements.skip(self._take_parameter(found))
        return self._block_end(closing, tag)

    def _block_end(self, closing: re.Match[str], tag: str) -> int:
        if closing[1] == tag:
            return closing.end()
        if closing[1] in IS_CALL_TAG:
            self._repairs.note(f"<{tag}> is not closed.", closing.start())
            return closing.start()
        following = CLOSES_BLOCK.match(self._text, closing.end())
        if following is None or following["name"] not in IS_CALL_TAG:
            raise self._stray_tag_refusal(closing)
        self._repairs.note(f"{closing[0]} closes <{tag}>.", closing.start())
        return closing.end()

    def _take_parameter(self, opening: re.Match[str]) -> int:
        tag, given = opening["name"], attributes(opening)
        name = given.get("name", tag) if tag in NAMED_TAGS else tag
        if len(name) > KEY_LIMIT:
            raise Refusal(
                f"A parameter's name has more than {KEY_LIMIT} characters.", place=line_of(self._text, opening.start())
            )
        is_named = tag in NAMED_TAGS or given.get("name") == tag
        self._refuse_attributes(opening, _OF_A_VALUE | {"name"} if is_named else _OF_A_VALUE, tag)
        parameters = self._parameters = self._parameters or {}
        if name in parameters:
            raise Refusal(
                f"<{name}> is given twice in one call. Write it once; write a list as JSON.",
                place=line_of(self._text, opening.start()),
            )
        repairs = len(self._repairs.problems)
        text, end = self._elements.value(tag, opening, name)
        find_place = partial(line_of, self._text, opening.start())
        refuse_unclear_end(tag, text, find_place, is_repaired=len(self._repairs.problems) > repairs)
        refuse_lone_end(tag, self._text[opening.end() : end], find_place)
        parameters[name] = RawParameter(
            name=name, text=text, is_json=given.get("type") == "json", position=opening.start()
        )
        return end

    def _refusal_at(self, position: int, start: int) -> Refusal:
        text = self._text
        if self._elements.is_end(position):
            return Refusal(
                "The call is not complete: the reply ends in the middle of it. Make it shorter.",
                place=line_of(text, start),
            )
        if text[position] == "{":
            return Refusal(
                "The call is JSON. Write <name> and <params>, each argument in a tag of its own.",
                place=line_of(text, start),
            )
        found = " ".join(text[position : position + 40].split())
        return Refusal(
            f"{found!r} stands where a tag of the call should be. Put each value into CDATA in its parameter's tag.",
            place=line_of(text, position),
        )

    def _stray_tag_refusal(self, closing: re.Match[str]) -> Refusal:
        return Refusal(f"{closing[0]} closes nothing here. Leave it out.", place=line_of(self._text, closing.start()))


_NAMES_TOOL = re.compile(r"\s*+<name>[^<>]{1,300}+</name>")
_BEGINS_BLOCK = re.compile(rf"\s*+<(?:{BLOCK_TAGS})(?:\s[^<>]*+)?+>")
_BEGINS_TAG = re.compile(r"\s*+<[^\W\d]")


def begins_call(text: str, start: int, position: int, known: Known) -> bool:
    """True if a `<call>` from `start` to `position` is one of a tool. XML of other kinds may have such elements.

    A call begins with `<name>`, or has a name as an attribute and the parameters inside.
    """
    if _NAMES_TOOL.match(text, position):
        return True
    opening = OPENING.match(text, start)
    name = None if opening is None else attributes(opening).get("name")
    if name is None:
        return False
    return _BEGINS_BLOCK.match(text, position) is not None or bool(known(name) and _BEGINS_TAG.match(text, position))


_END_AND_TAG = re.compile(r"\]\]>\s*+</")
_DOUBLE_END = re.compile(r"\]\]>\s*+\]\]>(?!\s*+<!\[CDATA\[)")


def refuse_unclear_end(tag: str, value: str, find_place: Callable[[], str], *, is_repaired: bool) -> None:
    """Refuses a repaired value that holds its own closing tag, or the end of CDATA before one.

    Raises:
        Refusal: The value may be that of several tags.
    """
    if is_repaired and (f"</{tag}>" in value or _END_AND_TAG.search(value)):
        raise Refusal(
            f"It is not clear where the value of <{tag}> ends. Put it into CDATA and close that by ]]>.",
            place=find_place(),
        )


def refuse_lone_end(tag: str, written: str, find_place: Callable[[], str]) -> None:
    """Refuses a parameter whose text has an end of CDATA without its beginning, or two ends in a row.

    Raises:
        Refusal: It is not clear whether the value was cut.
    """
    if (CDATA_END in written and CDATA not in written) or _DOUBLE_END.search(written):
        raise Refusal(f"It is not clear where the CDATA of <{tag}> begins and ends. Write it once.", place=find_place())


_MARK_BEHIND = re.compile(rf"<!\[CDATA\[|</?(?:{CALL_TAGS})(?:\s[^<>]*+)?+>")


def end_of_unread(text: str, position: int) -> int | None:
    """Returns the end of a call that cannot be read. None if the end is unclear.

    The end is clear if the next call tag outside of CDATA is a closing one. Otherwise the scanner could take a part of
    the unread call's values for a call.
    """
    while mark := _MARK_BEHIND.search(text, position):
        if mark[0] != CDATA:
            return mark.end() if mark[0].startswith("</") else None
        end = text.find(CDATA_END, mark.end())
        if end < 0:
            return None
        position = end + len(CDATA_END)
    return None
