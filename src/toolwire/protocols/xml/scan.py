"""A scanner for XML calls in a reply, outside of thinking, results, fences, code spans, comments and quotes.

It makes one pass from left to right. Each mark is examined once, and an unclosed mark is not searched for again.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolwire.protocols.base import CALL_LIMIT, OWN_RESULT, Refusal, too_many_calls
from toolwire.protocols.reading.incoming import THINKING, is_json, line_of
from toolwire.protocols.xml.call_reader import CallReader, Known, RawCall, begins_call, end_of_unread
from toolwire.protocols.xml.element import BLOCK_TAGS, CALL_TAGS, CDATA, CDATA_END, SPLIT_END, CallTag, Repairs
from toolwire.vocabulary.calls import Problem

_MARK = re.compile(
    rf"""
      <(?P<think>{THINKING})>
    | (?P<thought_out></(?:{THINKING})>)
    | (?P<call><(?P<tag>{CALL_TAGS})(?:\s[^<>]*+)?+>)
    | <name>(?P<bare>[^<>]{{1,300}}+)</name>(?P<block>\s*+<(?:{BLOCK_TAGS})(?:\s[^<>]*+)?+>)?+
    | <(?P<result>tool_results?|tool_responses?|function_results?|observation)(?:\s[^<>]*+)?+>
    | <(?P<quoting>code|pre|example|blockquote)(?:\s[^<>]*+)?+>
    | (?P<fail><fail>)
    | (?P<comment><!--)
    | (?P<cdata><!\[CDATA\[)
    | (?P<dtd><!(?:DOCTYPE|ENTITY)\b)
    | (?P<prolog><\?xml\b[^<>]*+>)
    | ^[ ]{{0,3}}(?P<fence>`{{3,}}+|~{{3,}}+)[^\n`]*+$
    | (?P<span>(?P<ticks>`{{1,2}})(?!`)[^`\n]*+(?P=ticks)(?!`))
    """,
    re.VERBOSE | re.MULTILINE,
)
_FENCE_LINE = re.compile(r"^ {0,3}(`{3,}+|~{3,}+)[ \t]*+$", re.MULTILINE)
_FRONT = r"\s*+(?:<\?xml\b[^<>]*+>|<!--(?:(?!-->).)*+-->|<tool_calls>|\s)*+"
_NAMES_TOOL = rf"\s*+<name>[^<>]{{1,300}}+</name>\s*+<(?:{BLOCK_TAGS})"
_BEGINS_CALL: dict[CallTag, re.Pattern[str]] = {
    "tool_call": re.compile(rf"{_FRONT}<(?:tool_call\b[^<>]*+|call>{_NAMES_TOOL}|name|fail)>", re.DOTALL),
    "call": re.compile(rf"{_FRONT}<(?:(?:{CALL_TAGS})(?:[\s/][^<>]*+)?+|name|fail)>", re.DOTALL),
}
"""Matches the beginning of a fence that may hold calls. XML of other kinds may have elements named `call`."""
_OWN_ELEMENT = re.compile(r"<call(?:\s[^<>]*+)?+>.*</call>", re.DOTALL)
_TAG_OR_END = re.compile(r"\s*+(?:[<{]|\Z)")
_BLOCK_CUT = re.compile(r"\s*+(?:<[a-z]*+)?+\Z")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "「": "」", "『": "』"}
_WRAPPERS = re.compile(rf"</?tool_calls>|</(?:{CALL_TAGS})>")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedReply:
    """The parts of a reply."""

    calls: tuple[RawCall, ...]
    text: str
    """The text outside of calls and thinking."""
    thought: str
    """The text in `<think>`."""
    failure: str | None
    """The text in `<fail>`, or None."""
    problems: tuple[Problem, ...]
    """The repairs that were made."""


def scan(text: str, known: Known, *, tag: CallTag, is_strict: bool = True) -> ScannedReply:
    """Returns the calls of a reply, and its text. `tag` is the name of the element around a call in the prompt.

    With `is_strict=False`, an unreadable call is left out and reported in the problems, and the other calls are kept.

    Raises:
        Refusal: A call cannot be read, or may be a quotation.
    """
    if is_json(text):
        # Anything like a call is inside a JSON string here.
        return ScannedReply(calls=(), text=text.strip(), thought="", failure=None, problems=())
    reading = _Scan(text=text, known=known, repairs=Repairs(text), tag=tag, is_strict=is_strict)
    reading.read(0)
    return reading.result()


@dataclass(slots=True, kw_only=True)
class _Scan:
    text: str
    known: Known
    repairs: Repairs
    tag: CallTag
    is_strict: bool
    calls: list[RawCall] = field(default_factory=list[RawCall])
    pieces: list[str] = field(default_factory=list[str])
    """The text outside of calls and thinking."""
    thoughts: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """The start and end of each part of thinking."""
    failure: str | None = None
    dtd: int | None = None
    """The position of a document type declaration."""
    fenced: int | None = None
    """The position of a fence that begins with a call and has text around it."""
    dropped: int | None = None
    """The position of calls that a closing `</think>` turned into thinking."""
    is_over: bool = False
    """True if the model wrote a result itself. The text after it depends on an invented result and is ignored."""
    unclosed: set[str] = field(default_factory=set[str])
    """Closing marks that do not occur in the rest of the text."""
    fence: str | None = None
    """The marks of the fence that is open, in a reply that may be nothing but fences with calls. Else None."""
    fences: int = 1
    """Number of fences in such a reply."""
    is_torn: bool = False
    """True if a line that looks like a fence neither closes the open one nor opens the next."""
    line_start: int = 0
    """The start of the line that was last asked for."""
    taken: int = 0
    """The end of the text that has been classified."""

    def read(self, position: int) -> None:
        self.taken = position
        while mark := _MARK.search(self.text, position):
            position = self._take(mark)
        self._keep(len(self.text))

    def result(self) -> ScannedReply:
        text = _WRAPPERS.sub("", "".join(self.pieces)).strip() if self.calls else "".join(self.pieces).strip()
        self._check(text)
        return ScannedReply(
            calls=tuple(self.calls),
            text=text,
            thought="\n".join(filter(None, (self.text[start:end].strip() for start, end in self.thoughts))),
            failure=self.failure,
            problems=tuple(self.repairs.problems),
        )

    def _check(self, text: str) -> None:
        if self.calls and self.failure is not None:
            raise Refusal("The reply both calls a tool and fails. Write one of them.", text=text)
        if self.calls and self.dtd is not None:
            raise Refusal(
                "The reply declares a document type. Write calls without one; entities are not expanded.",
                place=line_of(self.text, self.dtd),
            )
        if self.calls or self.failure is not None:
            return
        dropped = None if text else self.dropped
        for position, what in ((self.fenced, "in a code fence among other text"), (dropped, "before </think>")):
            if position is not None:
                raise Refusal(
                    f"The call stands {what}, so it may not be meant. Write it by itself.",
                    place=line_of(self.text, position),
                    text=text,
                )
        if self.tag == "call" and _OWN_ELEMENT.fullmatch(text):
            raise Refusal("<call> has no call in it. Write <name> and <params> in it, or the answer without the tag.")
        if not text:
            raise Refusal("The reply is all thinking." if self.thoughts else "The reply is empty.")

    def _take(self, mark: re.Match[str]) -> int:
        """Handles a mark and returns the position to continue from."""
        kind = mark.lastgroup or ""
        steps: dict[str, Callable[[re.Match[str]], int]] = {
            "think": self._think,
            "thought_out": self._thought_out,
            "call": self._call,
            "bare": self._bare,
            "block": self._bare,
            "result": self._result,
            "quoting": self._skip_quotation,
            "fail": self._fail,
            "comment": self._comment,
            "cdata": self._cdata,
            "dtd": self._dtd,
            "prolog": self._prolog,
            "fence": self._fence,
        }
        return steps[kind](mark) if kind in steps else self._span(mark)

    def _keep(self, end: int) -> None:
        """Adds the unclassified text up to `end` to the reply's text."""
        self.pieces.append(self.text[self.taken : end])
        self.taken = end

    def _leave_out(self, start: int, end: int) -> int:
        self._keep(start)
        self.taken = end
        return end

    def _think(self, mark: re.Match[str]) -> int:
        end = self.text.find(f"</{mark['think']}>", mark.end())
        if end < 0 and not self.calls and self.failure is None:
            raise Refusal(
                f"{mark[0]} is never closed, so the reply is all thinking. Close it, then answer.",
                place=line_of(self.text, mark.start()),
            )
        if end < 0:
            return self._leave_out(mark.start(), len(self.text))
        self.thoughts.append((mark.end(), end))
        return self._leave_out(mark.start(), end + len(mark[0]) + 1)

    def _thought_out(self, mark: re.Match[str]) -> int:
        """Handles thinking whose beginning is not in the reply. All text before the mark is thinking."""
        if self.calls:
            self.dropped = self.calls[0].start
            self.repairs.note(f"The text before {mark[0]} was left out, a call too.", mark.start(), is_loss=True)
        self.thoughts = [(0, mark.start())]
        self.calls, self.pieces, self.failure, self.fenced, self.is_over = [], [], None, None, False
        self.taken = mark.end()
        return mark.end()

    def _call(self, mark: re.Match[str]) -> int:
        is_other = mark["tag"] != self.tag and mark["tag"] != "tool_call"
        if not _TAG_OR_END.match(self.text, mark.end()) or (
            is_other and not begins_call(self.text, mark.start(), mark.end(), self.known)
        ):
            return mark.end()  # the tag is only mentioned, or one of another XML
        return self._add(mark.start(), lambda reader: reader.read_wrapped(mark.start(), mark.end()))

    def _bare(self, mark: re.Match[str]) -> int:
        name = mark["bare"]
        if mark["block"] is None:
            if self.known(name) and _BLOCK_CUT.match(self.text, mark.end()):
                raise Refusal(
                    "The call is not complete: the reply ends in the middle of it. Make it shorter.",
                    place=line_of(self.text, mark.start()),
                )
            return mark.end()
        block = mark.start("block") + len(mark["block"]) - len(mark["block"].lstrip())
        return self._add(mark.start(), lambda reader: reader.read_bare(mark.start(), block, name))

    def _add(self, start: int, read: Callable[[CallReader], RawCall]) -> int:
        if self._is_block_quote(start):
            return self._behind(f"</{self.tag}>", start, otherwise=start + 1)
        try:
            call = read(CallReader(self.text, self.known, self.repairs, self.tag))
        except Refusal as refusal:
            if self.is_strict:
                raise
            return self._leave_unread(start, refusal)
        if self._is_quoted(start, call.end):
            return call.end
        if call.is_nested and self._has_loose_end(call.end):
            raise Refusal(
                f"]]> stands behind the call, so a value may have been cut short. Write ]]> in a value as {SPLIT_END}.",
                place=line_of(self.text, call.end),
            )
        self._leave_out(start, call.end)
        if not self.is_over:
            self.calls.append(call)
        if len(self.calls) > CALL_LIMIT:
            raise too_many_calls()
        return call.end

    def _leave_unread(self, start: int, refusal: Refusal) -> int:
        self.repairs.problems.append(refusal.problem)
        end = end_of_unread(self.text, start + 1)
        if end is None:
            self.repairs.note(
                "Where that call ends is not clear; the rest of the reply was left out.", start, is_loss=True
            )
        return self._leave_out(start, len(self.text) if end is None else end)

    def _has_loose_end(self, position: int) -> bool:
        end = self.text.find(CDATA_END, position)
        opening = self.text.find(CDATA, position)
        return end >= 0 and not 0 <= opening < end

    def _is_block_quote(self, start: int) -> bool:
        # Starts at the last known line, because lines may be long and hold many calls.
        self.line_start = max(self.line_start, self.text.rfind("\n", self.line_start, start) + 1)
        return self.text[self.line_start : self.line_start + 8].lstrip(" ").startswith(">")

    def _is_quoted(self, start: int, end: int) -> bool:
        before, after = self.text[start - 1 : start], self.text[end : end + 1]
        return bool(before) and _QUOTES.get(before) == after

    def _result(self, mark: re.Match[str]) -> int:
        """Skips a result that the model repeats or invents. It contains no calls."""
        if self.calls and not self.is_over:
            self.is_over = True
            self.repairs.note(OWN_RESULT, mark.start(), is_loss=True)
        pattern = re.compile(rf"<!\[CDATA\[|</{mark['result']}\s*+>")
        position = mark.end()
        while found := pattern.search(self.text, position):
            if found[0] != CDATA:
                return found.end()
            end = self.text.find(CDATA_END, found.end())
            if end < 0:
                break
            position = end + len(CDATA_END)
        return len(self.text)

    def _skip_quotation(self, mark: re.Match[str]) -> int:
        return self._behind(f"</{mark['quoting']}>", mark.end())

    def _comment(self, mark: re.Match[str]) -> int:
        return self._behind("-->", mark.end())

    def _cdata(self, mark: re.Match[str]) -> int:
        return self._behind(CDATA_END, mark.end(), otherwise=len(self.text))

    def _behind(self, closing: str, position: int, otherwise: int | None = None) -> int:
        if closing not in self.unclosed:
            end = self.text.find(closing, position)
            if end >= 0:
                return end + len(closing)
            self.unclosed.add(closing)
        return position if otherwise is None else otherwise

    def _fail(self, mark: re.Match[str]) -> int:
        behind = self._behind("</fail>", mark.end())
        if behind == mark.end() or self._is_block_quote(mark.start()):
            return mark.end()
        if not self._is_quoted(mark.start(), behind) and self.failure is None:
            self.failure = _without_cdata(self.text[mark.end() : behind - len("</fail>")])
            self._leave_out(mark.start(), behind)
        return behind

    def _dtd(self, mark: re.Match[str]) -> int:
        self.dtd = mark.start() if self.dtd is None else self.dtd
        return mark.end()

    def _prolog(self, mark: re.Match[str]) -> int:
        return self._leave_out(mark.start(), mark.end())

    def _span(self, mark: re.Match[str]) -> int:
        # A backquote in prose and one in a value would otherwise hide the beginning of a call.
        is_crossing = CDATA in mark[0] and CDATA_END not in mark[0]
        return mark.start() + len(mark["ticks"]) if is_crossing else mark.end()

    def _fence(self, mark: re.Match[str]) -> int:
        if self.fence is not None:
            return self._between_fences(mark)
        if self.fenced is None and not self.calls and _BEGINS_CALL["call"].match(self.text, mark.end()):
            before = "".join([*self.pieces, self.text[self.taken : mark.start()]])
            if not before.strip() and self._takes_fences(mark):
                return len(self.text)
            if _BEGINS_CALL[self.tag].match(self.text, mark.end()):
                self.fenced = mark.start()
        return next((found.end() for found in self._closings(mark)), len(self.text))

    def _closings(self, mark: re.Match[str]) -> Iterator[re.Match[str]]:
        lines = _FENCE_LINE.finditer(self.text, mark.end() + 1)
        return (found for found in lines if found[1].startswith(mark["fence"]))

    def _takes_fences(self, mark: re.Match[str]) -> bool:
        """Takes the calls of a reply that is nothing but fences with calls. A fence with other text is a quotation.

        Raises:
            Refusal: A call in such a reply cannot be read.
        """
        last = deque(self._closings(mark), maxlen=1)
        if last and self.text[last[0].end() :].strip():
            return False
        # Truncated, because nothing in the fences may extend beyond the last one.
        text = self.text[: last[0].start()] if last else self.text
        inner = _Scan(text=text, known=self.known, repairs=Repairs(text), tag=self.tag, is_strict=self.is_strict)
        inner.fence = mark["fence"]
        try:
            inner.read(mark.end())
        except Refusal:
            if inner.is_torn or "".join(inner.pieces).strip():
                return False
            raise
        if (
            inner.is_torn
            or _WRAPPERS.sub("", "".join(inner.pieces)).strip()
            or not (inner.calls or inner.failure is not None)
        ):
            return False
        what = "fence around the reply was" if inner.fences == 1 else "fences around the calls were"
        self.repairs.note(f"The code {what} left out.", mark.start())
        self.repairs.problems += inner.repairs.problems
        self.calls, self.failure, self.dtd = inner.calls, inner.failure, inner.dtd
        self.thoughts += inner.thoughts
        self._leave_out(mark.start(), len(self.text))
        return True

    def _between_fences(self, mark: re.Match[str]) -> int:
        """Leaves out a line that closes a fence or opens the next one, where the reply may be fences with calls."""
        is_bare = not mark[0].strip(" `~")
        if not self.fence:
            self.fence, self.fences = mark["fence"], self.fences + 1
        elif is_bare and mark["fence"].startswith(self.fence):
            self.fence = ""
        else:
            self.is_torn = True
        return self._leave_out(mark.start(), mark.end())


def _without_cdata(text: str) -> str:
    text = text.strip()
    if text.startswith(CDATA) and text.endswith(CDATA_END):
        text = text[len(CDATA) : -len(CDATA_END)].replace(SPLIT_END, CDATA_END)
    return text
