"""A streamed reply, put together to what the provider would have sent whole."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolwire.protocols.base import Refusal
from toolwire.protocols.native.fields import fields
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.unread_parts import unreadable
from toolwire.protocols.reading.repair import read_arguments
from toolwire.protocols.reading.strict_json import load_json
from toolwire.protocols.streaming import StreamEvent
from toolwire.vocabulary.calls import Problem, ToolCall

NO_CONTENT = "[no content]"
"""The text of a message in which the model wrote nothing. Providers refuse a message without content."""

INVALID_JSON = "INVALID_JSON"
"""The key under which arguments that are not a JSON object go back to the provider."""

PROBLEMS_LIMIT = 8
"""Maximum number of faults of one stream that are listed. The first ones tell the cause."""

WENT_ON = "The stream went on after the provider had ended the reply. Use a new stream for each reply."

_LEVELS = 6
"""Levels of a delta that are merged. A deeper value replaces the one before it."""

_GROWING = frozenset({"content", "refusal", "reasoning", "reasoning_content", "arguments", "input", "text", "summary"})
"""Texts that arrive in pieces. Any other text, such as a type or a signature, arrives whole."""


class Assembly(ABC):
    """A reply that is still arriving. The calls, the text and the message are read from its `body`."""

    def __init__(self, live: LiveCalls) -> None:
        self.live = live
        self.problems: list[Problem] = []
        """The faults of the stream. A reply with one is refused."""
        self.is_ended = False
        """True after the provider has ended the reply."""

    @abstractmethod
    def knows(self, piece: Mapping[str, Any]) -> bool:
        """True if the piece belongs to a reply of this provider."""

    @abstractmethod
    def add(self, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        """Adds one chunk or event, and yields the events of it."""

    @abstractmethod
    def end(self) -> Iterator[StreamEvent]:
        """Ends the calls that are still open, because nothing more comes."""

    def faults(self) -> list[Problem]:
        """Returns the reasons why the reply so far is refused, whatever it holds."""
        return self.problems

    @abstractmethod
    def body(self) -> dict[str, Any]:
        """Returns the reply so far, as the provider would have sent it whole."""

    def refuse_value(self, where: str, value: Any) -> None:
        """Notes a value that is not what its API has in this field."""
        self.refuse(unreadable(where, value).message)

    def index_in(self, piece: Mapping[str, Any], name: str) -> int | str | None:
        """Returns the number by which the pieces of one part are told from those of others. None without one."""
        index = piece.get(name)
        if isinstance(index, int | str | None):
            return index
        self.refuse_value(name, index)
        return None

    def refuse(self, message: str, *, is_told: bool = False) -> None:
        """Notes a fault of the stream. With `is_told`, it is reported and the reply is read."""
        problem = Problem(message=message, repaired=is_told)
        if problem not in self.problems and len(self.problems) < PROBLEMS_LIMIT:
            self.problems.append(problem)


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


def join_pieces(value: Any, levels: int = _LEVELS + 1) -> Any:
    """Returns a copy of the object with its texts joined."""
    if isinstance(value, _Pieces):
        return "".join(value)
    if levels and isinstance(value, dict):
        return {name: join_pieces(item, levels - 1) for name, item in cast("dict[str, Any]", value).items()}
    if levels and isinstance(value, list):
        return [join_pieces(item, levels - 1) for item in cast("list[Any]", value)]
    return value


def join_texts(parts: Iterable[Any], plain: frozenset[str]) -> list[dict[str, Any]]:
    """Returns the parts of a content with neighbouring plain texts joined: a stream cuts a text anywhere.

    A part is plain if it has no other fields than those of `plain`.
    """
    found: list[dict[str, Any]] = []
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, Mapping):
            continue  # a value that the API does not have there
        item = present(part)
        is_plain = isinstance(item.get("text"), str) and item.keys() <= plain
        if is_plain and texts and {**found[-1], "text": ""} == {**item, "text": ""}:
            texts.append(item["text"])
            continue
        if texts:
            found[-1]["text"] = "".join(texts)
        texts = [item["text"]] if is_plain else []
        found.append(item)
    if texts:
        found[-1]["text"] = "".join(texts)
    return found


def present(item: Any, *left_out: str) -> dict[str, Any]:
    """Returns an object without these fields, and without fields that are null. Empty for another value."""
    found = fields(item) or {}
    return {name: value for name, value in found.items() if value is not None and name not in left_out}


def next_call(calls: Iterator[ToolCall]) -> ToolCall:
    """Returns the next call of a reply, whose name and id a call of the message gets."""
    return next(calls, ToolCall(""))


def object_of(text: str) -> dict[str, Any]:
    """Returns the arguments that a model wrote as JSON, for a provider that takes an object only."""
    read = read_arguments(text)[0] if text else {}
    return {INVALID_JSON: text} if read is None else read


def arguments_text(value: Any) -> str:
    """Returns a piece of arguments as text. Some servers send an object in place of its JSON."""
    return value if isinstance(value, str) else "" if value is None else _dump(value)


def are_same_arguments(one: Any, other: Any) -> bool:
    """True if two arguments are equal, whatever spaces their JSON has."""
    texts = arguments_text(one), arguments_text(other)
    try:
        return texts[0] == texts[1] or load_json(texts[0]) == load_json(texts[1])
    except (ValueError, Refusal):
        return False


def as_object(value: Any) -> Mapping[str, Any]:
    """Returns arguments as the object that a request takes."""
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    return object_of(value) if isinstance(value, str) else {} if value is None else {INVALID_JSON: _dump(value)}


def object_text(arguments: Any) -> str:
    """Returns arguments as the JSON object that a request takes: as the model wrote them, if they are one."""
    if not isinstance(arguments, str):
        return _dump(arguments)
    try:
        is_object = isinstance(load_json(arguments), dict)
    except (ValueError, Refusal):
        is_object = False
    return arguments if is_object else _dump(object_of(arguments))


def _dump(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return json.dumps({INVALID_JSON: f"a {type(value).__name__} that JSON cannot hold"})
