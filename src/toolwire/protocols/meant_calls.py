"""The calls that an unreadable reply seems to make: shown to the model in the right form, and never run.

The readers are generous here, because the model decides. Only a reply that is nothing but calls is read: in a text
around them they may be quoted, and a page that the model quotes must not become a call in the right form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolwire.protocols.base import Refusal
from toolwire.protocols.call_shapes import fences, is_all, named, unquoted
from toolwire.protocols.foreign import read_foreign
from toolwire.protocols.reading.incoming import match_end
from toolwire.protocols.reading.repair import decode_json_texts
from toolwire.protocols.reading.strict_json import load_json
from toolwire.protocols.tool_names import KnownTools
from toolwire.protocols.xml.conversion import convert_argument
from toolwire.protocols.xml.markup import OPENING, attributes, is_empty
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.errors import Unrepresentable

SHOWN_LIMIT = 2_000
"""Maximum number of characters of the calls that are shown. A model finds its mistake in a short text."""

_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action", "recipient_name")
_ARGUMENTS = ("arguments", "parameters", "params", "args", "kwargs", "input", "tool_input", "tool_args")
_DEPTH = 4
_SPACE = re.compile(r"\s*+")


def in_right_form(text: str, known: KnownTools, render: Callable[[Sequence[ToolCall]], str]) -> str:
    """Returns the calls of known tools that the reply seems to make, as `render` writes them. Empty without any."""
    calls = _meant(_unfenced(text).strip(), known)
    if not calls or any(call.name not in known.schemas or call.name == CODE_EXECUTION for call in calls):
        return ""
    try:
        shown = render(calls).strip()
    except Unrepresentable:
        return ""
    return shown if len(shown) <= SHOWN_LIMIT else ""


def _unfenced(text: str) -> str:
    found = fences(text)
    if len(found) != 1 or not is_all(text, found[0][0], found[0][1]):
        return text
    lines = text.strip().split("\n")
    return "\n".join(lines[1:-1] if lines[-1].lstrip().startswith(("`", "~")) else lines[1:])


def _meant(text: str, known: KnownTools) -> list[ToolCall]:
    try:
        foreign = read_foreign(text, unquoted(text), known)
    except Refusal:
        return []
    if foreign is not None:
        return list(foreign.calls) if len(foreign.spans) == 1 and is_all(text, *foreign.spans[0]) else []
    return list(_in_json(text, known) if text[:1] in ("{", "[") else _in_attributes(text, known))


def _in_json(text: str, known: KnownTools) -> Iterator[ToolCall]:
    try:
        value = load_json(text)
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
    for key in _NAMES:
        if tool := named(node[key], known) if isinstance(node.get(key), str) else "":
            others = {name: item for name, item in node.items() if name != key}
            inner = [others[name] for name in _ARGUMENTS if isinstance(others.get(name), dict)]
            yield _call(tool, inner[0] if len(inner) == 1 else others, known)
            return
    for key, item in node.items():
        tool = named(key, known)
        if tool and isinstance(item, dict):
            yield _call(tool, cast("dict[str, Any]", item), known)
        else:
            yield from _of_value(item, known, depth - 1)


def _in_attributes(text: str, known: KnownTools) -> list[ToolCall]:
    """Reads empty tags that are tools, with the arguments as attributes. Any other text has no calls."""
    calls, position = list[ToolCall](), 0
    while position < len(text):
        found = OPENING.match(text, position)
        tool = named(found["name"], known) if found and is_empty(found) else ""
        if found is None or not tool:
            return []
        schema = known.schemas[tool]
        values = {name: convert_argument(name, given, schema).value for name, given in attributes(found).items()}
        calls.append(_call(tool, values, known))
        position = match_end(_SPACE, text, found.end())
    return calls


def _call(tool: str, given: Mapping[str, Any], known: KnownTools) -> ToolCall:
    schema = known.schemas[tool]
    parameters = cast("Mapping[str, Any]", schema.get("properties") or {})
    arguments, _ = decode_json_texts({name: value for name, value in given.items() if name in parameters}, schema)
    return ToolCall(tool, arguments)
