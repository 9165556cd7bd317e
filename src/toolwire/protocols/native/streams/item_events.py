"""A streamed response of OpenAI's Responses API, put together from its events.

The same arguments and texts come several times: in pieces, whole in a `done` event, in the item's end, and in the
response's end. They must agree, because a call runs once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolwire.protocols.native.assembly import WENT_ON, Assembly, are_same_arguments, arguments_text
from toolwire.protocols.native.fields import field_in, fields, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.written import WrittenCall
from toolwire.protocols.streaming import StreamEvent, TextDelta
from toolwire.vocabulary.calls import Problem

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled", "error"})

_OF_A_CALL = frozenset(
    {"type", "id", "call_id", "name", "arguments", "status", "parsed_arguments", "namespace", "created_by"}
)
"""The fields of a call."""

_TWICE = "The stream gives the arguments of the call of {!r} twice."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Where the text of an event belongs in its item."""

    list: str
    """The item's field that holds the parts."""
    place: str
    """The event's field with the part's index in that list."""
    kind: str
    """The type of the part."""
    item: str
    """The type of the item."""
    text: str
    """The field of the part, and of the event that gives the text whole."""


_PARTS = {
    "response.output_text": _Part(
        list="content", place="content_index", kind="output_text", item="message", text="text"
    ),
    "response.refusal": _Part(list="content", place="content_index", kind="refusal", item="message", text="refusal"),
    "response.reasoning_text": _Part(
        list="content", place="content_index", kind="reasoning_text", item="reasoning", text="text"
    ),
    "response.reasoning_summary_text": _Part(
        list="summary", place="summary_index", kind="summary_text", item="reasoning", text="text"
    ),
}
_PARTS_BY_KIND = {part.kind: part for part in _PARTS.values()}
_PART_ENDS = frozenset({"response.content_part.done", "response.reasoning_summary_part.done"})


@dataclass(slots=True, eq=False, kw_only=True)
class _Item:
    """An output item that is still arriving."""

    index: Any
    data: dict[str, Any]
    """The item as its start or its end gave it."""
    begun: str = ""
    """The arguments with which a call began."""
    arguments: list[str] = field(default_factory=list[str])
    """The pieces of a call's arguments."""
    texts: dict[tuple[_Part, int], list[str]] = field(default_factory=dict[tuple[_Part, int], list[str]])
    """The pieces of each part's text."""
    is_ended: bool = False

    @property
    def is_call(self) -> bool:
        return text_in(self.data, "type") == "function_call"

    def has_two_arguments(self) -> bool:
        """True if the item began with other arguments than came in pieces."""
        return bool(self.begun and self.arguments) and not are_same_arguments(self.begun, "".join(self.arguments))

    def whole(self) -> dict[str, Any]:
        """Returns the item so far."""
        found = dict(self.data)
        if text_in(found, "type") == "message":
            found.setdefault("role", "assistant")
        if self.is_call and not field_in(found, "arguments"):
            found["arguments"] = "".join(self.arguments)
        for name in {part.list for part, _ in self.texts}:
            if not items_in(found, name):
                places = sorted((place, part.kind, part) for part, place in self.texts if part.list == name)
                found[name] = [_text_part(part, "".join(self.texts[part, place])) for place, _, part in places]
        return found if self.is_ended else {**found, "status": "in_progress"}

    def call(self) -> WrittenCall:
        return call_in(self.whole())


def call_in(item: Any) -> WrittenCall:
    """Returns the call of an item as the model wrote it."""
    arguments = field_in(item, "arguments")
    return WrittenCall(
        name=text_in(item, "name"),
        id=text_in(item, "call_id"),
        arguments="" if arguments is None else arguments,
        beside={key: value for key, value in item.items() if key not in _OF_A_CALL},
    )


class ItemAssembly(Assembly):
    """The response so far."""

    def __init__(self, live: LiveCalls) -> None:
        super().__init__(live)
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._newest: dict[Any, _Item] = {}
        self._has_begun = False
        self._response: dict[str, Any] = {}

    def knows(self, piece: Mapping[str, Any]) -> bool:
        return text_in(piece, "type").startswith("response.") or text_in(piece, "type") == "error"

    def add(self, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        kind = text_in(piece, "type")
        event, _, phase = kind.rpartition(".")
        if self.is_ended and self.knows(piece):
            self.refuse(WENT_ON)
        elif kind == "response.created":
            if self._has_begun:
                self.refuse("A second response began in the stream. Use a new stream for each reply.")
            self._has_begun = True
        elif kind == "response.output_item.added":
            yield from self._begin(piece, self._item_of(piece))
        elif kind == "response.output_item.done":
            yield from self._end_item(piece, self._item_of(piece))
        elif event == "response.function_call_arguments":
            yield from self._add_arguments(piece, is_whole=phase == "done")
        elif event in _PARTS:
            yield from self._add_text(piece, _PARTS[event], is_whole=phase == "done")
        elif kind in _PART_ENDS and (part := _PARTS_BY_KIND.get(text_in(inner(piece, "part"), "type"))):
            yield from self._add_text({**piece, **inner(piece, "part")}, part, is_whole=True)
        elif kind in _ENDS:
            yield from self._finish(kind, piece)

    def _item_of(self, piece: Mapping[str, Any]) -> Mapping[str, Any]:
        item = fields(field_in(piece, "item"))
        if item is None:
            self.refuse_value("item", field_in(piece, "item"))
        return item or {}

    def end(self) -> Iterator[StreamEvent]:
        for item in self._items:
            yield from self._show_end(item)

    def faults(self) -> list[Problem]:
        twice = [item for item in self._items if item.is_call and item.has_two_arguments()]
        messages = [_TWICE.format(text_in(item.data, "name")) for item in twice]
        return [*self.problems, *(Problem(message=message, repaired=False) for message in messages)]

    def body(self) -> dict[str, Any]:
        indexes = [item.index for item in self._items]
        is_numbered = all(isinstance(index, int) for index in indexes)
        items = sorted(self._items, key=lambda item: item.index) if is_numbered else self._items
        output = [self._with_arguments(item) for item in items_in(self._response, "output")]
        output = output or [item.whole() for item in items]
        return {**self._response, "object": "response", "output": output}

    def _with_arguments(self, item: Any) -> Any:
        """Returns an item of the response's end, with the arguments of the stream if the end has none."""
        streamed = self._by_id.get(text_in(item, "call_id") or text_in(item, "id"))
        if streamed is None or not streamed.is_call or field_in(item, "arguments"):
            return item
        return {**item, "arguments": streamed.call().arguments}

    def _find(self, index: Any, *ids: str) -> _Item | None:
        """Returns the item with one of these ids, else the newest one of this output index that has no id."""
        given = [identity for identity in ids if identity]
        known = next((self._by_id[identity] for identity in given if identity in self._by_id), None)
        if known is not None:
            return known
        newest = self._newest.get(index)
        return None if newest is None or (given and text_in(newest.data, "id", "call_id")) else newest

    def _begin(self, piece: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        begun = arguments_text(field_in(data, "arguments"))
        item = _Item(index=self.index_in(piece, "output_index"), data=dict(data), begun=begun)
        for identity in {text_in(data, "id"), text_in(data, "call_id")} - {""}:
            if identity in self._by_id:
                self.refuse(f"Two output items of the stream have the id {identity!r}.")
            self._by_id[identity] = item
        self._items.append(item)
        self._newest[item.index] = item
        yield from self._show(item)

    def _end_item(self, piece: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[StreamEvent]:
        item = self._find(self.index_in(piece, "output_index"), text_in(data, "id"), text_in(data, "call_id"))
        if item is None or (item.is_ended and not text_in(data, "id", "call_id")):
            # Some servers send an item at its end alone.
            yield from self._begin(piece, data)
            item = self._items[-1]
        before = item.whole()
        if _differ(before, data):
            self.refuse(f"The stream gives the call of {text_in(before, 'name')!r} twice, and not the same.")
        item.data, item.is_ended = {**item.data, **data}, True
        if item.is_call and not field_in(data, "arguments"):
            item.data["arguments"] = before.get("arguments")
        yield from self._show(item)
        yield from self._show_end(item)

    def _add_arguments(self, piece: Mapping[str, Any], *, is_whole: bool) -> Iterator[StreamEvent]:
        index, identity = self.index_in(piece, "output_index"), text_in(piece, "item_id")
        item = self._find(index, identity)
        text = arguments_text(field_in(piece, "arguments" if is_whole else "delta"))
        if item is None or not item.is_call:
            self.refuse(f"The stream has arguments for the output item {identity or index!r}, which is no call of it.")
            return
        known = arguments_text(item.call().arguments) if is_whole or item.is_ended else ""
        if is_whole and (not text or are_same_arguments(known, text)):
            return
        if known:
            self.refuse(_TWICE.format(text_in(item.data, "name")))
            return
        item.arguments.append(text)
        yield from self.live.add_arguments(item, text)

    def _add_text(self, piece: Mapping[str, Any], part: _Part, *, is_whole: bool) -> Iterator[StreamEvent]:
        item = self._find(self.index_in(piece, "output_index"), text_in(piece, "item_id"))
        if item is None:
            item = _Item(index=self.index_in(piece, "output_index"), data={"type": part.item})
            self._items.append(item)
            self._newest[item.index] = item
        kind, name = text_in(item.data, "type"), part.text if is_whole else "delta"
        text = field_in(piece, name)
        if kind not in ("", part.item):
            self.refuse(f"The stream adds a part of the type {part.kind!r} to an output item of the type {kind!r}.")
            return
        if not isinstance(text, str | None):
            self.refuse_value(name, text)
            return
        place = field_in(piece, part.place)
        texts = item.texts.setdefault((part, place if isinstance(place, int) else 0), [])
        if text and is_whole and texts and text != "".join(texts):
            self.refuse("The stream gives a text twice, and not the same. The pieces were read.", is_told=True)
        if not text or (is_whole and texts):
            return
        texts.append(text)
        if part.kind == "output_text":
            yield TextDelta(text=text)

    def _finish(self, kind: str, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        self.is_ended = True
        if kind == "error":
            self._response = {"status": "failed", "error": piece.get("error") or dict(piece)}
        else:
            self._response = {**inner(piece, "response"), "status": kind.removeprefix("response.")}
        output = items_in(self._response, "output")
        calls = [item for item in output if text_in(item, "type") == "function_call"]
        for item in [item for item in self._items if item.is_call and output]:
            if not _has_same(item.whole(), calls):
                name = text_in(item.data, "name")
                self.refuse(f"The call of {name!r} is not in the response's end as it was in the stream.")
        for item in self._items if kind == "response.completed" else ():
            item.is_ended = True
            if text_in(item.data, "status") == "in_progress":
                item.data["status"] = "completed"
        if output and not self._items:
            for index, item in enumerate(output):
                yield from self._end_item({"output_index": index}, fields(item) or {})
        yield from self.end()

    def _show(self, item: _Item) -> Iterator[StreamEvent]:
        if item.is_call and (name := text_in(item.data, "name")):
            yield from self.live.start(item, name=name, id=text_in(item.data, "call_id"))

    def _show_end(self, item: _Item) -> Iterator[StreamEvent]:
        if item.is_call:
            yield from self.live.end(item, item.call())


def _text_part(part: _Part, text: str) -> dict[str, Any]:
    return {"type": part.kind, **({"annotations": []} if part.kind == "output_text" else {}), part.text: text}


def _differ(before: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    """True if an item says something else of its call at its end than before."""
    names = ("type", "name", "call_id", "arguments")
    if "function_call" not in (text_in(before, "type"), text_in(data, "type")):
        return False
    return any(
        before.get(name) and data.get(name) and before[name] != data[name]
        for name in names
        if name != "arguments" or not are_same_arguments(before.get(name), data.get(name))
    )


def _has_same(call: Mapping[str, Any], calls: Sequence[Any]) -> bool:
    """True if one of the calls in the response's end is this one."""
    return any(text_in(one, "name") == text_in(call, "name") and not _differ(call, one) for one in calls)
