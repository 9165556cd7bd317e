"""The calls that an unreadable reply seems to make: shown to the model in the right form, and never run.

The readers are generous here, because the model decides. Only a reply that is nothing but calls is read: in a text
around them they may be quoted, and a page that the model quotes must not become a call in the right form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from toolwire.protocols.base import Refusal
from toolwire.protocols.fillers import FILLER, is_filler
from toolwire.protocols.foreign.call_shapes import blank_quotations, fences, is_all, is_fence_line
from toolwire.protocols.foreign.foreign_calls import read_foreign
from toolwire.protocols.reading.call_forms import NAME_KEYS, find_made_up_result, misspelt_name
from toolwire.protocols.reading.conversion import convert_argument
from toolwire.protocols.reading.incoming import match_end
from toolwire.protocols.reading.markup import OPENING, attributes, is_empty
from toolwire.protocols.right_call import RightCall, has_blank, load_with_blanks
from toolwire.protocols.tool_names import KnownTools
from toolwire.protocols.xml.nested_calls import read_nested_calls
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.errors import Unrepresentable

SHOWN_LIMIT = 2_000
"""Maximum number of characters of the calls that are shown. A model finds its mistake in a short text."""

_DEPTH = 4
_SPACE = re.compile(r"\s*+")


def in_right_form(text: str, known: KnownTools, render: Callable[[Sequence[ToolCall]], str]) -> str:
    """Returns the calls of known tools that the reply seems to make, as `render` writes them.

    Empty without any, and if arguments are missing or wrong: only the form of a call that can run is right.
    """
    calls = [_right(call, known) for call in meant_calls(text, known)]
    whole = [call for call in calls if call is not None]
    if not whole or len(whole) < len(calls):
        return ""
    try:
        shown = render(whole).strip()
    except Unrepresentable:
        return ""
    return shown if len(shown) <= SHOWN_LIMIT else ""


def meant_calls(text: str, known: KnownTools) -> list[ToolCall]:
    """Returns the calls of known tools that the reply seems to make, with their arguments as they are written.

    Empty unless the reply is nothing but such calls. Programs are left to their own readers.
    """
    calls = _calls_in_text(strip_fence(text).strip(), known)
    is_known = all(call.name in known.schemas and call.name != CODE_EXECUTION for call in calls)
    return calls if is_known else []


def _right(call: ToolCall, known: KnownTools) -> ToolCall | None:
    right = RightCall.of(known.by_name[call.name], call.arguments, kept_limit=SHOWN_LIMIT)
    if right is None or has_blank(right.arguments):
        return None
    lacking = known.properties(call.name).keys() - right.arguments.keys()
    if any(misspelt_name(key, lacking) for key in call.arguments.keys() - right.arguments.keys()):
        return None  # without this argument it would be another call
    return ToolCall(call.name, right.arguments)


def strip_fence(text: str) -> str:
    """Returns the content of the one fence that is the whole text, or the text."""
    found = fences(text)
    if len(found) != 1 or not is_all(text, found[0][0], found[0][1]):
        return text
    lines = text.strip().split("\n")
    return "\n".join(lines[1:-1] if is_fence_line(lines[-1]) else lines[1:])


def _calls_in_text(text: str, known: KnownTools) -> list[ToolCall]:
    try:
        foreign = read_foreign(text, blank_quotations(text), known)
    except Refusal:
        foreign = None
    if foreign is not None:
        return list(foreign.calls) if len(foreign.spans) == 1 and is_all(text, *foreign.spans[0]) else []
    if nested := read_nested_calls(text, known):
        return nested
    text = _between_marks(text)
    return list(_in_json(text, known) if text[:1] in ("{", "[") else _in_attributes(text, known))


def _between_marks(text: str) -> str:
    """Returns the JSON between the marks of calls, if the text has nothing else; any other text unchanged."""
    opening, end = FILLER.match(text), max(text.rfind("}"), text.rfind("]")) + 1
    start = 0 if opening is None else opening.end()
    return text[start:end] if start < end and is_filler(text[end:]) else text


def _in_json(text: str, known: KnownTools) -> Iterator[ToolCall]:
    try:
        value = load_with_blanks(text)
    except (json.JSONDecodeError, Refusal):
        return
    yield from _of_value(value, known, _DEPTH)


def _of_value(value: Any, known: KnownTools, depth: int) -> Iterator[ToolCall]:
    """Finds a tool's name under a usual key, with the arguments beside or below it, or as the key of its arguments."""
    if isinstance(value, list) and depth:
        for item in cast("list[Any]", value):
            yield from _of_value(item, known, depth - 1)
    if not isinstance(value, dict) or not depth:
        return
    node = cast("dict[str, Any]", value)
    if find_made_up_result(node, known):
        return
    for key in NAME_KEYS:
        if tool := known.find_name(node[key]) if isinstance(node.get(key), str) else "":
            yield ToolCall(tool, {name: item for name, item in node.items() if name != key})
            return
    for key, item in node.items():
        tool = known.find_name(key)
        if tool and isinstance(item, dict):
            yield ToolCall(tool, cast("dict[str, Any]", item))
        else:
            yield from _of_value(item, known, depth - 1)


def _in_attributes(text: str, known: KnownTools) -> list[ToolCall]:
    """Reads empty tags that are tools, with the arguments as attributes. Any other text has no calls."""
    calls, position = list[ToolCall](), 0
    while position < len(text):
        found = OPENING.match(text, position)
        tool = known.find_name(found["name"]) if found and is_empty(found) else ""
        if found is None or not tool:
            return []
        schema = known.schemas[tool]
        values = {name: convert_argument(name, given, schema).value for name, given in attributes(found).items()}
        calls.append(ToolCall(tool, values))
        position = match_end(_SPACE, text, found.end())
    return calls
