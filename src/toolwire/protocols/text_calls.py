"""Calls in the text of a native reply: the provider did not read them, so the text may not pass for an answer.

The readers of the text protocols read them. A text is calls only if nothing else stands in it. An answer may quote a
call, explain one, or be JSON that resembles one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from toolwire.protocols.base import REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.fillers import is_filler
from toolwire.protocols.foreign.call_shapes import blank_quotations, find_call_shape
from toolwire.protocols.foreign.leftovers import find_mark
from toolwire.protocols.foreign.meant_calls import strip_fence
from toolwire.protocols.reading.call_forms import NAME_KEYS, calls_of
from toolwire.protocols.reading.incoming import behind_thinking, match_end
from toolwire.protocols.reading.strict_json import load_json
from toolwire.protocols.text_formats import JSON_TEXT
from toolwire.protocols.tool_names import KnownTools, as_known_tools
from toolwire.vocabulary.calls import CODE_EXECUTION, Problem, ToolCall

_SIGN = re.compile(r"[{<(\[]|\bAction\b")
"""Every form of a call has a bracket, or is an action with plain text."""
_THOUGHT = re.compile(r"\s*+Thought:[^\n]*+\n(?=\s*+Action\b)")
_BEGINNING = re.compile(r"(?:\s|[{\[(\"'*`]|<[^<>\n]{0,64}>|```\w*+)*+")
"""The marks that may stand before the tool's name in a text that is nothing but a call."""
_PROSE_BEHIND = re.compile(r"(?:</[^<>]{0,64}>|/>|[|｜]>|[\]})`])\s*+(?:[.!?]\s|[^\s\]})>`<,;:.!?\"'])[^\]})>`<]*+\Z")
"""Text behind the last closing mark."""
_CUT_MARK = re.compile(r"\s*+</?[\w|｜]*+\Z")
"""A tag at the end of the text that is not closed."""
_ARGUMENT_KEYS = frozenset(
    {"arguments", "argument", "parameters", "params", "args", "kwargs", "input", "action_input", "tool_input"}
    | {"tool_args", "tool_arguments", "tool_parameters"}
)
_BESIDE = frozenset({"id", "type", "index", "call_id", "status", "tool_call_id"})
_ENVELOPES = frozenset(
    {"function", "function_call", "functionCall", "tool_call", "tool_calls", "function_calls"} | {"calls", "actions"}
)
_UNREAD = "The text is a call of a tool, and is not in a form that calls are read from."


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCalls:
    """The calls that stand in a text."""

    calls: tuple[ToolCall, ...] = ()
    """The calls in order, if the text is nothing but calls of known tools that can be read."""
    problems: tuple[Problem, ...] = ()
    """The repairs of the calls, or the reason why a text that is nothing but calls cannot be read."""
    has_quoted_calls: bool = False
    """True if calls of known tools stand in the text with prose around them. They may be quoted."""


_NOTHING = TextCalls()


def read_text_calls(text: str, tools: Iterable[Any]) -> TextCalls:
    """Returns the calls that a text without thinking consists of.

    An ordinary answer costs one search for brackets and one for each tool's name.
    """
    text = behind_thinking(text)
    if len(text) > REPLY_LIMIT_BYTES or not _SIGN.search(text):
        return _NOTHING
    known = as_known_tools(tools)
    if not known.is_named_in(text):
        return _NOTHING
    body = text[match_end(_THOUGHT, text) :].strip()
    try:
        value = load_json(strip_fence(body))
    except json.JSONDecodeError:
        return _in_text(body, known)
    except Refusal as refusal:
        return _find_unread_calls(body, (refusal.problem,), known)
    return _in_json(value, body, known)


def _in_json(value: Any, raw: str, known: KnownTools) -> TextCalls:
    """Returns the calls of a text that is one JSON value. A value with anything beside a call is an answer."""
    if not _is_call(value, known):
        return _NOTHING
    try:
        found = calls_of(value, raw, known, is_marked=False)
    except Refusal as refusal:
        return TextCalls(problems=(refusal.problem,))
    if found is None or any(call.name not in known.schemas for call in found.calls):
        return TextCalls(problems=(Problem(message=_UNREAD, repaired=False),))
    return TextCalls(calls=found.calls, problems=found.problems)


def _is_call(value: Any, known: KnownTools) -> bool:
    """True if a JSON value is a call of a known tool, or an envelope or list of such calls, and nothing else."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return bool(items) and all(isinstance(item, dict) and _is_call(item, known) for item in items)
    if not isinstance(value, dict):
        return False
    node = cast("dict[str, Any]", value)
    named_by = [key for key in node if key in NAME_KEYS and isinstance(node[key], str)]
    arguments = [key for key in node if key in _ARGUMENT_KEYS]
    inner = [key for key in node if key in _ENVELOPES and isinstance(node[key], dict | list)]
    if len(inner) == 1 and not node.keys() - {inner[0]} - _BESIDE:
        return _is_call(node[inner[0]], known)
    if len(named_by) != 1 or not arguments or node.keys() - {named_by[0], *arguments} - _BESIDE:
        return False
    return bool(known.find_name(node[named_by[0]])) and not any(_is_schema(node[key]) for key in arguments)


def _is_schema(arguments: Any) -> bool:
    """True if the value describes the parameters of a tool instead of giving them."""
    if not isinstance(arguments, dict):
        return False
    node = cast("dict[str, Any]", arguments)
    return node.get("type") == "object" and isinstance(node.get("properties"), dict)


def _in_text(text: str, known: KnownTools) -> TextCalls:
    reply = JSON_TEXT.read(text, known)
    if not reply.calls:
        return _find_unread_calls(text, reply.problems, known) if reply.is_refused else _NOTHING
    if not any(call.name in known.schemas for call in reply.calls) or _is_code(reply.calls):
        return _NOTHING
    is_whole = is_filler(_CUT_MARK.sub("", reply.text)) and not any(problem.is_loss for problem in reply.problems)
    if not is_whole or any(call.name not in known.schemas for call in reply.calls):
        return TextCalls(has_quoted_calls=True)
    return TextCalls(calls=reply.calls, problems=reply.problems)


def _is_code(calls: tuple[ToolCall, ...]) -> bool:
    """True if the text is a block of code. In a native reply it is an answer: the user may have asked for it."""
    return len(calls) == 1 and calls[0].name == CODE_EXECUTION and calls[0].raw_text.startswith(("`", "~"))


def _find_unread_calls(text: str, problems: tuple[Problem, ...], known: KnownTools) -> TextCalls:
    plain = blank_quotations(text)
    place, mark = find_call_shape(plain, known), find_mark(plain)
    if place is None and mark is None:
        return _NOTHING
    place = min(found for found in (place, mark.start() if mark else None) if found is not None)
    # Text that begins with a bracket has no prose before the call, and a closing mark may be cut.
    begins_so = text.startswith(("{", "[", "<")) or match_end(_BEGINNING, text) >= place
    is_whole = begins_so and not _PROSE_BEHIND.search(_CUT_MARK.sub("", text))
    return TextCalls(problems=problems) if is_whole else TextCalls(has_quoted_calls=True)
