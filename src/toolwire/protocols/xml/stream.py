"""Streaming of XML replies. Text is reported at once; calls are read when they are complete.

Arguments are reported piece by piece only while the call is well-formed. After the first mistake in a call, nothing
more is reported: a repair needs the rest of the reply. The same holds for a list or object written as tags. `reply()`
then reads the whole reply as `parse` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from toolwire.protocols.reading.incoming import THINKING, match_end
from toolwire.protocols.reading.markup import CDATA, CDATA_END, CLOSING, OPENING, attributes, expand_references
from toolwire.protocols.streaming import ArgumentsDelta, CallEnded, CallStarted, StreamEvent, TextDelta
from toolwire.protocols.text_stream import Parse, TextStream
from toolwire.protocols.tool_names import KnownTools
from toolwire.protocols.xml.call_reader import begins_call
from toolwire.protocols.xml.element import BLOCK_TAGS, CALL_TAGS, NAMED_TAGS, CallTag
from toolwire.protocols.xml.parse import parameters_of, read_xml

_HELD_MAX = 512
"""Maximum number of characters held back while a call may begin. No valid tag or code span is longer."""

_QUOTING = r"tool_results?|tool_responses?|function_results?|observation|code|pre|example|blockquote|fail"
_MARK = re.compile(
    rf"""
      <(?P<think>{THINKING})>
    | (?P<call><(?P<tag>{CALL_TAGS})(?:\s[^<>]*+)?+>)
    | (?P<bare><name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})>)
    | <(?P<quoting>{_QUOTING})(?:\s[^<>]*+)?+>
    | (?P<comment><!--)
    | (?P<cdata><!\[CDATA\[)
    | (?P<over></(?:{THINKING})>|<!(?:DOCTYPE|ENTITY)\b)
    | (?P<wrapper></?tool_calls>)
    """,
    re.VERBOSE,
)
_BEGUN = re.compile(
    rf"<(?:[!?/]?[\w.\-\[]*+(?:[\s/][^<>]*+)?+|name>[^<>]*+(?:</?[a-z]*+(?:>\s*+(?:<(?:{BLOCK_TAGS}|[a-z]*+)?+)?+)?+)?+)\Z"
)
_FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)[^\n`]*+\n")
_SPAN = re.compile(r"(`{1,2})(?!`)[^`\n]*+\1(?!`)")
_ORDINARY = re.compile(r"[^<`~\n]++|\n")
_SPACE = re.compile(r"\s*+")
_NAME = re.compile(r"<name>([^<>]{1,300}+)</name>")
_BLOCK = re.compile(rf"<({BLOCK_TAGS})>")
_QUOTES = "\"'“‘«「『"


class XmlStream(TextStream):
    """Parses one reply while it arrives. Use it once, from one reader."""

    _protocol: ClassVar[str] = "xml"

    def __init__(self, parse: Parse, known: KnownTools, *, marks_end: bool, tag: CallTag) -> None:
        super().__init__(parse, known, marks_end=marks_end)
        self._parameters_of = parameters_of(known)
        self._own_tag: CallTag = tag
        self._call_tag = ""
        """The tag around the call that is read; the session's own for a call without one."""
        self._held = ""
        self._events: list[StreamEvent] = []
        self._step: Callable[[], bool] = self._outside
        self._call: list[str] | None = None
        self._index = 0
        self._block = self._tag = self._parameter = self._closing = ""
        self._line_start = ""
        self._last = ""
        self._is_blank = True
        self._has_sections = False
        self._is_fenced = False

    def _add(self, text: str) -> list[StreamEvent]:
        self._events = []
        self._held += text
        while self._held and self._step():
            pass
        return self._events

    # Each step consumes the beginning of the held text, and returns True if another step may follow at once.

    def _outside(self) -> bool:
        held = self._held
        if found := _ORDINARY.match(held):
            return self._say(found.end())
        if held[0] in "`~":
            return self._backquote()
        mark = _MARK.match(held)
        if mark is None:
            is_begun = len(held) < _HELD_MAX and _BEGUN.match(held) is not None
            return False if is_begun else self._say(1)
        kind = mark.lastgroup or ""
        if kind in {"call", "bare"}:
            return self._begin_call(mark, kind)
        if kind == "wrapper":
            return self._take(mark.end())
        if kind == "over":
            return self._go_quiet()
        closings = {"comment": "-->", "cdata": CDATA_END}
        self._closing = closings.get(kind) or f"</{mark[kind]}>"
        self._has_sections = kind == "quoting" and mark["quoting"].startswith(("tool_", "function_", "observation"))
        if kind == "think" or mark["quoting"] == "fail":
            self._step = self._unsaid
            return self._take(mark.end())
        self._step = self._pass_quotation
        return self._say(mark.end())

    def _backquote(self) -> bool:
        held = self._held
        has_line_end = "\n" in held or len(held) >= _HELD_MAX
        if not self._line_start.strip() and (held.startswith(("```", "~~~")) or held in {"`", "``", "~", "~~"}):
            fence = _FENCE.match(held)
            if fence is None:
                return self._say(1) if has_line_end else False
            if self._is_blank or self._is_fenced:
                self._is_fenced = True
                return self._take(fence.end())
            self._closing = f"\n{fence[1]}"
            self._say(fence.end() - 1)
            self._step = self._pass_quotation
            return True
        if span := _SPAN.match(held):
            if span.end() == len(held) and not has_line_end:
                return False  # another backquote may follow
            return self._say(span.end())
        return self._say(1) if has_line_end or held[0] == "~" else False

    def _unsaid(self) -> bool:
        """Skips thinking and a failure's message. They are reported with the complete reply."""
        end = self._held.find(self._closing)
        if end < 0:
            kept = len(self._closing) - 1
            self._held = self._held[-kept:]
            return False
        self._step = self._outside
        return self._take(end + len(self._closing))

    def _pass_quotation(self) -> bool:
        """Passes on quoted text, in which no call counts."""
        end = self._held.find(self._closing)
        section = self._held.find(CDATA) if self._has_sections else -1
        if section >= 0 and not 0 <= end < section:
            self._step = self._pass_quoted_section
            return self._say(section + len(CDATA))
        if end >= 0:
            self._step = self._outside
            return self._say(end + len(self._closing))
        return self._say_all_but(max(len(self._closing), len(CDATA)))

    def _pass_quoted_section(self) -> bool:
        end = self._held.find(CDATA_END)
        if end < 0:
            return self._say_all_but(len(CDATA_END))
        self._step = self._pass_quotation
        return self._say(end + len(CDATA_END))

    def _begin_call(self, mark: re.Match[str], kind: str) -> bool:
        self._call_tag = mark["tag"] or self._own_tag
        if self._line_start.lstrip(" ").startswith(">") or (self._last and self._last in _QUOTES):
            self._closing, self._has_sections = f"</{self._call_tag}>" if kind == "call" else "</params>", False
            self._step = self._pass_quotation
            return self._say(mark.end())
        following = self._held[mark.end() :].lstrip()
        if kind == "call" and not following and len(self._held) < _HELD_MAX:
            return False
        if kind == "call" and following[:1] != "<":
            return self._say(mark.end())
        is_other = self._call_tag != self._own_tag and self._call_tag != "tool_call"
        if is_other and not begins_call(self._held, mark.start(), mark.end(), self._parameters_of):
            # XML of other kinds may have elements named `call`.
            is_begun = len(self._held) < _HELD_MAX and _BEGUN.match(following) is not None
            return False if is_begun else self._say(mark.end())
        self._call = []
        self._step = self._head
        return self._take(mark.end()) if kind == "call" else True

    def _head(self) -> bool:
        """Reads `<name>` and `<params>`."""
        self._take(match_end(_SPACE, self._held))
        if name := _NAME.match(self._held):
            block = _BLOCK.match(self._held, match_end(_SPACE, self._held, name.end()))
            if block is not None:
                self._events.append(CallStarted(index=self._index, name=self._known.name(name[1].strip())))
                self._block = block[1]
                self._step = self._between
                return self._take(block.end())
        return self._wait() if not self._held or _BEGUN.match(self._held) else self._go_quiet()

    def _between(self) -> bool:
        """Reads the start of a parameter, or the end of the parameters."""
        self._take(match_end(_SPACE, self._held))
        if closing := CLOSING.match(self._held):
            if closing[1] != self._block:
                return self._go_quiet()
            self._step = self._tail
            return self._take(closing.end())
        if opening := OPENING.match(self._held):
            self._tag = opening["name"]
            given = attributes(opening)
            self._parameter = given.get("name", self._tag) if self._tag in NAMED_TAGS else self._tag
            is_empty = (opening["attributes"] or "").endswith("/")
            self._step = self._between if is_empty else self._value
            return self._take(opening.end())
        return self._wait() if not self._held or _BEGUN.match(self._held) else self._go_quiet()

    def _value(self) -> bool:
        start = match_end(_SPACE, self._held)
        if self._held.startswith(CDATA, start):
            self._step = self._section
            return self._take(start + len(CDATA))
        if CDATA.startswith(self._held[start : start + len(CDATA)]):
            return self._wait()
        self._step = self._loose
        return True

    def _section(self) -> bool:
        end = self._held.find(CDATA_END)
        if end >= 0:
            self._tell(end)
            self._step = self._behind_section
            return self._take(len(CDATA_END))
        free = len(self._held) - len(CDATA_END) + 1
        if free > 0:
            self._tell(free)
        return False

    def _behind_section(self) -> bool:
        start = match_end(_SPACE, self._held)
        if self._held.startswith(CDATA, start):
            self._tell(start)
            self._step = self._section
            return self._take(len(CDATA))
        return self._end_of_value(start) if self._held[start : start + 1] in ("", "<") else self._text_behind()

    def _text_behind(self) -> bool:
        """Reads text between a section and the next one, or the end of the value."""
        end = self._held.find("<")
        text = None if end < 0 else expand_references(self._held[:end])
        if text is None:
            return self._wait() if end < 0 else self._go_quiet()
        self._tell(end, text)
        return True

    def _loose(self) -> bool:
        """Reads a value outside of CDATA.

        It is held from its first `&` until its end, which decides how to decode it.
        """
        end = self._held.find("<")
        reference = self._held.find("&", 0, len(self._held) if end < 0 else end)
        if reference >= 0:
            self._tell(reference)
            if end < 0:
                return self._wait()
            text = self._held[: end - reference]
            self._tell(len(text), text if (value := expand_references(text)) is None else value)
        else:
            self._tell(len(self._held) if end < 0 else end)
        return bool(self._held) and self._behind_section()

    def _end_of_value(self, start: int) -> bool:
        closing = f"</{self._tag}>"
        if self._held.startswith(closing, start):
            self._step = self._between
            return self._take(start + len(closing))
        rest = self._held[start : start + len(CDATA)]
        is_begun = closing.startswith(self._held[start:]) or (CDATA.startswith(rest) and len(rest) < len(CDATA))
        return self._wait() if is_begun else self._go_quiet()

    def _tail(self) -> bool:
        """Reads the closing tag of the call, or ends the call if it is missing."""
        start, closing = match_end(_SPACE, self._held), f"</{self._call_tag}>"
        if self._held.startswith(closing, start):
            self._take(start + len(closing))
        elif closing.startswith(self._held[start : start + len(closing)]) and len(self._held) - start < len(closing):
            return self._wait()
        self._end_call()
        return True

    def _end_call(self) -> None:
        read = read_xml("".join(self._call or []), self._known, tag=self._own_tag)
        self._events.append(CallEnded(index=self._index, call=read.calls[0] if len(read.calls) == 1 else None))
        self._index += 1
        self._call = None
        self._step = self._outside

    def _wait(self) -> bool:
        """Waits for more text, up to the length of the longest valid tag."""
        return self._go_quiet() if len(self._held) >= _HELD_MAX else False

    def _go_quiet(self) -> bool:
        self._step = self._quiet
        return True

    def _quiet(self) -> bool:
        self._held = ""
        return False

    def _tell(self, end: int, text: str | None = None) -> None:
        """Reports the beginning of the held text as part of a value, or reports `text` in its place."""
        if not end:
            return
        source = self._held[:end]
        self._events.append(ArgumentsDelta(index=self._index, text=text or source, parameter=self._parameter))
        self._take(end)

    def _say(self, end: int) -> bool:
        """Reports the beginning of the held text as text."""
        text = self._held[:end]
        self._events.append(TextDelta(text=text))
        self._is_blank = self._is_blank and not text.strip()
        _, break_, line = text.rpartition("\n")
        self._line_start = (line if break_ else self._line_start + line)[:8]
        self._last = text[-1]
        return self._take(end)

    def _say_all_but(self, kept: int) -> bool:
        free = len(self._held) - kept + 1
        if free > 0:
            self._say(free)
        return False

    def _take(self, end: int) -> bool:
        if self._call is not None:
            self._call.append(self._held[:end])
        self._held = self._held[end:]
        return True
