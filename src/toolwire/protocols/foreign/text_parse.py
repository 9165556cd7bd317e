"""Parsing of XML and JSON replies: first in their own format, then in others where the reading is unambiguous.

An answer is text without the shape of a call. Text that looks like an unread call of a known tool is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from toolwire.protocols.base import OWN_RESULT, REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.foreign.call_shapes import (
    blank_quotations,
    find_call_shape,
    has_mark,
    is_call_like,
)
from toolwire.protocols.foreign.foreign_calls import ForeignCalls, read_foreign
from toolwire.protocols.foreign.leftovers import refuse_lost_argument, refuse_mark, rest_of
from toolwire.protocols.foreign.meant_calls import in_right_form, strip_fence
from toolwire.protocols.outgoing import is_ending
from toolwire.protocols.reading.call_forms import MADE_UP, find_made_up_result
from toolwire.protocols.reading.incoming import line_of, match_end
from toolwire.protocols.reading.strict_json import load_json, load_prefix
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import Problem, Reply, ToolCall

_Read = Callable[[str | bytes, KnownTools], Reply]
_Render = Callable[[Sequence[ToolCall]], str]

_RESULT = re.compile(r"<tool_response>(.*?)(?:</tool_response>|\Z)", re.DOTALL)
"""A result as a JSON model reads it."""
_SPACE = re.compile(r"\s*+")

_UNREAD = "This has the shape of a call of a tool, and is not in the form that calls are read from. "
_SHOWN = "This call is not in the form that calls are read from. In that form it is:\n"
_BY_ITSELF = "Write each call in that form, by itself."
_LEFT = "The text beside the calls has the shape of a call, and was not run. Write each call on a line of its own."
_READ = "The call is not in the form that was asked for; it was read."


def settle_reply(own: Reply, given: str | bytes, known: KnownTools, read_other: _Read, render: _Render) -> Reply:
    """Returns the reading of a reply: `own`, which is that of its own format, or the calls of another format.

    `read_other` reads one other format. A reply that is nothing but calls is shown in a refusal as `render` writes
    them.
    """
    if own.failure is not None:
        return own
    text = _reply_text(given)
    if not text or (own.calls and not own.text):
        return own
    names = known.is_named_in(text)
    if not (has_mark(text) or own.calls or (names and not own.is_refused)):
        return own
    try:
        if own.calls:
            return _with_leftovers(own, text, known)
        found = _read_other_formats(text, known, read_other if names and not own.is_refused else None)
        if found is not None:
            return replace(found, thought=own.thought)
        if not own.is_refused:
            _check_answer(own.text, text, known, render)
    except Refusal as refusal:
        return own if own.is_refused else Reply(thought=own.thought, text=own.text, problems=(refusal.problem,))
    return own


def refuse_call_shape(text: str, known: KnownTools, form: str, render: _Render) -> None:
    """Refuses a text that contains the shape of a call.

    `form` tells the model what to write. A reply that is nothing but calls is shown to it as `render` writes them.

    Raises:
        Refusal: The text contains the shape of a call.
    """
    place = find_call_shape(blank_quotations(text), known) if known.is_named_in(text) else None
    if place is not None:
        refuse_with_right_form(text, known, render, place=line_of(text, place))
        raise Refusal(f"{_UNREAD}{form}", place=line_of(text, place), text=text)
    if known.schemas:
        refuse_mark(blank_quotations(text), form)


def shows_right_form(reply: Reply) -> bool:
    """True if the refusal of the reply shows its calls in the right form."""
    return any(problem.message.startswith(_SHOWN) for problem in reply.problems)


def refuse_with_right_form(text: str, known: KnownTools, render: _Render, *, place: str = "") -> None:
    """Refuses a reply that is nothing but calls in no readable form, and shows them as `render` writes them.

    Raises:
        Refusal: The reply is nothing but such calls.
    """
    shown = in_right_form(text, known, render)
    if shown:
        raise Refusal(f"{_SHOWN}{shown}", place=place, text=text)


def _with_leftovers(reply: Reply, text: str, known: KnownTools) -> Reply:
    """Reports an unread call in the prose beside the calls. Calls in fences are reported by the parser itself.

    Raises:
        Refusal: A part of a call is left beside the calls.
    """
    if any(problem.is_loss for problem in reply.problems):
        return reply
    rest = rest_of(text, reply.calls, has_fences=False)
    if find_call_shape(rest, known) is None:
        refuse_lost_argument(rest, reply.calls, known)
        return reply
    return replace(reply, problems=(*reply.problems, Problem(message=_LEFT, repaired=True, is_loss=True)))


def _read_other_formats(text: str, known: KnownTools, read_other: _Read | None) -> Reply | None:
    """Returns the calls in another format. None if there are none, or if a shape of a call is left beside them.

    Raises:
        Refusal: A part of a call is left beside them.
    """
    other = None if read_other is None else read_other(text, known)
    if other is not None and other.calls and all(call.name in known.schemas for call in other.calls):
        found = replace(other, problems=(Problem(message=_READ, repaired=True), *other.problems))
    else:
        foreign = read_foreign(text, blank_quotations(text), known)
        found = None if foreign is None else _reply(text, foreign)
    if found is None or any(problem.message == OWN_RESULT for problem in found.problems):
        return found
    rest = rest_of(text, found.calls, has_fences=True)
    refuse_lost_argument(rest, found.calls, known)
    return found if find_call_shape(rest, known) is None else None


def _reply(text: str, found: ForeignCalls) -> Reply:
    note = Problem(message=_READ, repaired=True, place=line_of(text, found.spans[0][0]))
    around, position = list[str](), 0
    for start, end in (*found.spans, (len(text), len(text))):
        around.append(text[position:start].strip())
        position = end
    return Reply(calls=found.calls, text="\n".join(filter(None, around)), problems=(note, *found.problems))


def _check_answer(said: str, text: str, known: KnownTools, render: _Render) -> None:
    """Refuses an answer that is an unread call, or a result that the model made up.

    JSON is refused only if the whole value is a call, a list of calls or an envelope of calls.
    """
    value = _json_in(said)
    if tool := find_made_up_result(_results_in(strip_fence(said)), known):
        raise Refusal(MADE_UP.format(tool), place="line 1")
    if value is None:
        refuse_call_shape(text, known, _BY_ITSELF, render)
    if is_call_like(_json_in(strip_fence(said)), known):
        refuse_with_right_form(text, known, render, place="line 1")
        raise Refusal(f"{_UNREAD}{_BY_ITSELF}", place="line 1")


def _json_in(text: str) -> Any:
    """Returns the JSON value of the text; None if it is not JSON."""
    try:
        return load_json(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, Refusal):
        return None


def _results_in(text: str) -> list[Any]:
    """Returns the JSON values that the text is, or those between tags if it is nothing but results.

    The line that says how to end may follow them, as where the model reads results. Empty for any other text.
    """
    body, _, last = text.rstrip().rpartition("\n")
    text = body if is_ending(last) else text
    if not _RESULT.sub("", text).strip():
        return [_json_in(found) for found in _RESULT.findall(text)]
    return _values_in(text.strip())


def _values_in(text: str) -> list[Any]:
    """Returns the JSON values that the text is, one behind the other. Empty if it has anything else."""
    values, position = list[Any](), 0
    try:
        while position < len(text):
            value, end = load_prefix(text, position)
            values.append(value)
            position = match_end(_SPACE, text, end)
    except (ValueError, Refusal):
        return []
    return values


def _reply_text(given: str | bytes) -> str:
    """Returns the reply's text, or an empty text if it is too long. Invalid UTF-8 is replaced."""
    if len(given) > REPLY_LIMIT_BYTES:
        return ""
    return given.decode("utf-8", "replace") if isinstance(given, bytes) else given
