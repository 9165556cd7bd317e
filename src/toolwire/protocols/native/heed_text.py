"""A native reply whose text is a call: it is refused or read, and never passes for an answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from toolwire.protocols.native.written import make_call_id
from toolwire.protocols.text_calls import read_text_calls
from toolwire.vocabulary.calls import Problem, Reply, ToolCall

_READ = "The call stands in the text of the reply; it was read."
_QUOTED = "The text holds what looks like a call of a tool, with other text around it. It was not run."


def heed_text_calls(reply: Reply, tools: Iterable[Any], form: str, *, reads: bool) -> Reply:
    """Returns an answer as it is, unless its text is nothing but calls of known tools.

    Such a reply is refused with the `form` of the provider's calls. With `reads`, its calls are read and get ids.
    """
    if not reply.text or reply.is_refused or reply.failure is not None or reply.ended not in ("stop", "calls"):
        return reply
    found = read_text_calls(reply.text, tools)
    if found.has_quoted_calls or (reply.calls and found.calls):
        note = Problem(message=_QUOTED, repaired=True, is_loss=True)
        return replace(reply, problems=(*reply.problems, note))
    if reply.calls:
        return reply
    if found.calls and reads:
        notes = (Problem(message=_READ, repaired=True), *found.problems)
        calls = tuple(_with_id(index, call) for index, call in enumerate(found.calls))
        return replace(reply, calls=calls, text="", problems=(*reply.problems, *notes), ended="calls")
    unread = tuple(problem for problem in found.problems if not problem.repaired)
    if not found.calls and not unread:
        return reply
    named = " and ".join(dict.fromkeys(repr(call.name) for call in found.calls)) or "a tool"
    message = f"The text is a call of {named}, and a text is never run. Make the call as {form}, not in the text."
    return replace(reply, problems=(*reply.problems, Problem(message=message, repaired=False), *unread))


def _with_id(index: int, call: ToolCall) -> ToolCall:
    identity = make_call_id(index, call.name, call.arguments)
    return ToolCall(call.name, call.arguments, id=identity, raw_text=call.raw_text)
