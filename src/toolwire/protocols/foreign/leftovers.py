"""Marks of a call that no reader took. A reply with such a mark is refused: a call or an argument would be lost.

A mark is a token or tag that only calling formats have, whatever tool it is about. Beside a call that was read, a key
of arguments and a tag of a parameter are marks too, and punctuation that joins the call to other text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolwire.protocols.base import Refusal
from toolwire.protocols.fillers import CLOSES, FENCE_MARK, FILLERS, LABEL, OPENS
from toolwire.protocols.foreign.call_shapes import blank_quotations, without_closed_fences, without_quoting_fences
from toolwire.protocols.reading.incoming import line_of
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import ToolCall

_WORD = r"[^|｜<>\n]{0,32}(?:tool|function|call|plugin|action|constrain|python_tag)[^|｜<>\n]{0,32}"
_WRAPPER = r"tool_calls?|function_calls?|tool_use|toolcall|invoke"
_MARK = re.compile(
    rf"""
      <[|｜]{_WORD}[|｜]?> | <\w{{0,32}}(?:tool|function|call)\w{{0,32}}\|> | \[TOOL_CALLS\] | \[ARGS\](?=\s*+\{{)
    | ✿(?:FUNCTION|ARGS)✿ | </?[|｜]DSML[|｜] | <(?:start|end)_function_call>
    | (?<!\w[ ])</?(?:\w{{1,16}}:)?(?:{_WRAPPER})(?:[ ][^<>\n]*+)?+>
    | </?(?:\w{{1,16}}:)?(?:invoke|parameter)[ ][^<>\n]*+> | </?arg_(?:key|value)> | <(?:function|parameter)=[^<>\n]*+>
    | <call>(?=\s*+<name>) | </(?:params|parameters|arguments|args)>\s*+</call>
    | </(?:function|(?:\w{{1,16}}:)?parameter)> | (?<!\w[ ])Action[ ]Input
    | \bfunctools(?=["'\s]*+[\[{{])
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_CALL_FENCE = re.compile(r"`{3}tool_(?:code|calls?)\b", re.IGNORECASE)
_ARGUMENT = re.compile(
    r"[\"“](?:name|arguments|parameters|params|args|kwargs|input|action_input|tool_input)[\"”]\s*+[:：]"
    r"|</?(?:params|(?P<tag>\w[\w.\-]{0,255}+))\s*+>"
)
_OBJECT = re.compile(r"^[ \t]*+\{\s*+[\"“](?P<key>\w[\w.\-]{0,255}+)[\"”]\s*+[:：]", re.MULTILINE)
"""The beginning of an object on a line of its own. With a parameter that the call lacks, it may be its arguments."""
_FILLER_PARTS = re.compile(
    rf"(?P<open>{OPENS})|(?P<close>{CLOSES})|(?:\s++|[,;]|{FENCE_MARK}|{LABEL}|<function=[^<>\s]++>)",
    re.VERBOSE | re.IGNORECASE,
)
_CUT = "\0"
"""Stands in the rest of a reply in place of a call that was read."""
_JOINED = re.compile(
    rf"""
      (?:[\[{{(,=}}]|[\"'”][ \t]*+[:：])[ \t]*+{_CUT}
    | {_CUT}(?: [\s\]}})]*+ (?: [,:]\s*+(?:[\"'“]|\w++\s*+=) | [:=] ) | [ \t]*+[\[{{] | [\"'“(\w]
      | [ \t]*+(?:\w++[ \t]*+=|[\"'“][^\"'”\n]{{1,64}}+[\"'”][ \t]*+[:,]) )
    """,
    re.VERBOSE,
)
"""Punctuation that joins a call to the text before or behind it: the call may have been only a part."""
_LEFT = "{!r} stands beside the call and belongs to no call that could be read. Write each call by itself."
_JOINT = "The text beside the call may be a part of it. Write each call on lines of its own."
_UNREAD = "{!r} belongs to a call, and no call could be read there. "
_SHOWN = 40
"""Maximum number of characters of a mark in a message."""


def find_mark(plain: str) -> re.Match[str] | None:
    """Returns a mark of a call in a text with all quoted parts blanked. None without one."""
    return _CALL_FENCE.search(plain) or _MARK.search(without_closed_fences(plain))


def refuse_mark(plain: str, form: str) -> None:
    """Refuses an answer that has the mark of a call. `plain` is its text with all quoted parts blanked.

    Raises:
        Refusal: It has a mark. The message ends with `form`, which tells the model what to write.
    """
    if found := find_mark(plain):
        raise Refusal(_UNREAD.format(found[0].strip()[:_SHOWN]) + form, place=line_of(plain, found.start()))


def rest_of(text: str, calls: Sequence[ToolCall], *, has_fences: bool) -> str:
    """Returns the reply with its calls and the marks around them blanked, and all quoted parts.

    `has_fences` is False if a reader has reported the calls in fences itself; they are blanked too then.

    Raises:
        Refusal: A mark of another call or of a lost argument is left.
    """
    rest = blank_quotations(_without_calls(text, calls))
    if joint := _JOINED.search(rest):
        raise Refusal(_JOINT, place=line_of(rest, joint.start()))
    rest = FILLERS.sub(_without_filler, rest)
    if found := _CALL_FENCE.search(rest):
        raise _refusal_of_mark(found)
    rest = without_quoting_fences(rest) if has_fences else without_closed_fences(rest)
    if found := _MARK.search(rest):
        raise _refusal_of_mark(found)
    return rest


def refuse_lost_argument(rest: str, calls: Sequence[ToolCall], known: KnownTools) -> None:
    """Refuses a reply if the rest beside its calls has a key of arguments, or a tag of one of their parameters.

    Raises:
        Refusal: The rest has such a key or tag.
    """
    tags = {name for call in calls for name in known.properties(call.name)}
    lost = {name for call in calls for name in known.properties(call.name).keys() - call.arguments.keys()}
    for found in _OBJECT.finditer(rest):
        if found["key"] in lost:
            raise _refusal_of_mark(found)
    for found in _ARGUMENT.finditer(rest):
        if found["tag"] is None or found["tag"] in tags:
            raise _refusal_of_mark(found)


def _refusal_of_mark(found: re.Match[str]) -> Refusal:
    return Refusal(_LEFT.format(found[0].strip()[:_SHOWN]), place=line_of(found.string, found.start()))


def _without_calls(text: str, calls: Sequence[ToolCall]) -> str:
    pieces, position = list[str](), 0
    last: str | None = None
    for raw in (call.raw_text for call in calls):
        # The calls of one list share one text, which is the same object.
        start = -1 if raw is last else text.find(raw, position)
        if start < 0:
            continue
        # The lines stay, so that positions name the right ones.
        pieces += [text[position:start], "\n" * raw.count("\n"), _CUT]
        position, last = start + len(raw), raw
    return "".join([*pieces, text[position:]])


def _without_filler(found: re.Match[str]) -> str:
    """Blanks marks beside a call.

    An opening mark with no call behind it stays, and a closing mark with no call before it: it belongs to another call.
    """
    text = found.string
    is_before = text[found.end() : found.end() + 1] == _CUT
    is_behind = text[found.start() - 1 : found.start()] == _CUT
    if not (is_before or is_behind):
        return found[0]
    stays = "" if is_before and is_behind else "close" if is_before else "open"
    return _FILLER_PARTS.sub(lambda part: part[0] if stays and part[stays] else _keep_line_breaks(part[0]), found[0])


def _keep_line_breaks(text: str) -> str:
    return "\n" * text.count("\n") + " "
