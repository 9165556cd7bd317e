"""Calls whose parameters stand in tags that no call has: `<params><arguments><city>Oslo</city></arguments></params>`.

They are read for the right form that the model is shown, and never run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.conversion import convert_argument, parameters_taking_tags
from toolwire.protocols.reading.incoming import match_end
from toolwire.protocols.reading.markup import OPENING, attributes, content_end, is_empty, stray_attribute
from toolwire.protocols.reading.tags import parse_tags
from toolwire.protocols.right_call import WRAPPERS_LIMIT
from toolwire.protocols.tool_names import KnownTools
from toolwire.protocols.xml.element import IS_CALL_TAG
from toolwire.vocabulary.calls import ToolCall

_SPACE = re.compile(r"\s*+")


def read_nested_calls(text: str, known: KnownTools) -> list[ToolCall]:
    """Returns the calls of known tools in a text that is nothing but well-formed elements around calls.

    Tags that are no parameters are objects. Empty without such calls, and if a parameter holds tags that it cannot
    take: what is meant is not clear then.
    """
    try:
        elements = _elements(text)
        calls = [_read_one_call(opening, inner, known) for opening, inner in elements or []]
    except Refusal:
        return []
    whole = [call for call in calls if call is not None]
    return whole if len(whole) == len(calls) else []


def _read_one_call(opening: re.Match[str], inner: str, known: KnownTools) -> ToolCall | None:
    parts = _elements(inner) if opening["name"] in IS_CALL_TAG else None
    if parts is None:
        return None
    name = attributes(opening).get("name")
    if name is None and parts and parts[0][0]["name"] == "name":
        name = parse_tags(parts.pop(0)[1]).text.strip()
    tool = known.find_name(name)
    if not tool:
        return None
    schema, given = known.schemas[tool], attributes(opening)
    beside = {key: convert_argument(key, text, schema).value for key, text in given.items() if key != "name"}
    return ToolCall(tool, {**beside, **_arguments(parts, schema, WRAPPERS_LIMIT)})


def _arguments(parts: list[tuple[re.Match[str], str]], schema: Mapping[str, Any], levels: int) -> dict[str, Any]:
    """Returns the value of each tag: a parameter's by the schema, and an object for any other tag with tags inside.

    Raises:
        Refusal: A parameter holds tags that it cannot take.
    """
    takes_tags, found = parameters_taking_tags(schema), dict[str, Any]()
    for opening, inner in parts:
        name = opening["name"]
        if stray_attribute(opening["attributes"], frozenset({"type"})):
            raise Refusal(f"<{name[:40]}> has attributes.")
        if name in found:
            raise Refusal(f"<{name[:40]}> is given twice.")
        element = parse_tags(inner)
        below = _elements(inner) if levels and element.children and name not in takes_tags else None
        if below is not None:
            found[name] = _arguments(below, schema, levels - 1)
        elif name not in takes_tags:
            found[name] = element.text
        elif element.children and not takes_tags[name]:
            raise Refusal(f"<{name[:40]}> holds tags.")
        else:
            found[name] = convert_argument(name, inner if element.children else element.text, schema).value
    return found


def _elements(text: str) -> list[tuple[re.Match[str], str]] | None:
    """Returns the opening tag and the content of each element of a text. None if the text has anything else."""
    found, position = list[tuple[re.Match[str], str]](), match_end(_SPACE, text)
    while position < len(text):
        opening = OPENING.match(text, position)
        if opening is None:
            return None
        start = end = after = opening.end()
        if not is_empty(opening):
            ends = content_end(text, start, opening["name"])
            if ends is None:
                return None
            end, after = ends
        found.append((opening, text[start:end]))
        position = match_end(_SPACE, text, after)
    return found
