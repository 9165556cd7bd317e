"""The assistant's message of a streamed reply, put together from its deltas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from toolwire.protocols.native.fields import fields
from toolwire.protocols.reading.repair import read_arguments
from toolwire.vocabulary.calls import ToolCall

NO_CONTENT = "[no content]"
"""The text of a message in which the model wrote nothing. Providers refuse a message without content."""

INVALID_JSON = "INVALID_JSON"
"""The key under which arguments that are not JSON go back to a provider that takes objects only."""

_LEVELS = 6
"""Levels of a delta that are merged. A deeper value replaces the one before it."""

_GROWING = frozenset({"content", "refusal", "reasoning", "reasoning_content", "arguments", "text", "summary"})
"""Texts that arrive in pieces. Any other text, such as a type or a signature, arrives whole."""


class Assembly(Protocol):
    """A message that is still arriving."""

    def add(self, piece: Mapping[str, Any]) -> None:
        """Adds one chunk or event."""
        ...

    def body(self) -> Any:
        """Returns the message so far, as a whole reply would have it."""
        ...


class _Pieces(list[str]):
    """A text that grows. It is joined once, because joining at every piece takes quadratic time."""


def grow(into: dict[str, Any], name: str, piece: str) -> None:
    """Appends to a text of an object."""
    known = into.get(name)
    if not isinstance(known, _Pieces):
        known = into[name] = _Pieces([known] if isinstance(known, str) else [])
    known.append(piece)


def merge(into: dict[str, Any], delta: Mapping[str, Any], levels: int = _LEVELS) -> None:
    """Adds a delta to an object. An item of a list with an `index` belongs to the earlier item of that index."""
    for name, value in delta.items():
        known = into.get(name)
        if value is None:
            continue
        if isinstance(value, str) and name in _GROWING:
            grow(into, name, value)
        elif levels and isinstance(value, Mapping):
            into[name] = cast("dict[str, Any]", known) if isinstance(known, dict) else {}
            merge(into[name], cast("Mapping[str, Any]", value), levels - 1)
        elif levels and isinstance(value, list):
            into[name] = cast("list[Any]", known) if isinstance(known, list) else []
            _merge_items(into[name], cast("list[Any]", value), levels - 1)
        elif value != "" or known is None:
            into[name] = value


def _merge_items(into: list[Any], items: list[Any], levels: int) -> None:
    for item in items:
        if not isinstance(item, Mapping):
            into.append(item)
            continue
        item = cast("Mapping[str, Any]", item)
        index = item.get("index")
        earlier = next((one for one in into if isinstance(index, int) and _index(one) == index), None)
        if earlier is None:
            into.append(earlier := {})
        merge(earlier, item, levels)


def _index(item: Any) -> Any:
    return cast("dict[str, Any]", item).get("index") if isinstance(item, dict) else None


def whole(value: Any, levels: int = _LEVELS + 1) -> Any:
    """Returns a copy of the object with its texts joined."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if levels and isinstance(value, dict):
        return {name: whole(item, levels - 1) for name, item in cast("dict[str, Any]", value).items()}
    if levels and isinstance(value, list):
        return [whole(item, levels - 1) for item in cast("list[Any]", value)]
    return value


def present(item: Any, *left_out: str) -> dict[str, Any]:
    """Returns an object without these fields, and without fields that are null. Empty for another value."""
    found = fields(item) or {}
    return {name: value for name, value in found.items() if value is not None and name not in left_out}


def next_id(calls: Iterator[ToolCall]) -> str:
    """Returns the id of the next call, for a call of a message that has none. Empty if the reply has no such call."""
    call = next(calls, None)
    return "" if call is None else call.id


def object_of(text: str) -> dict[str, Any]:
    """Returns the arguments that a model wrote as JSON, for a provider that takes an object only."""
    read = read_arguments(text)[0] if text else {}
    return {INVALID_JSON: text} if read is None else read
