"""A streamed message of Anthropic's API, put together from its events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.protocols.native.assembly import WENT_ON, Assembly, grow, join_pieces
from toolwire.protocols.native.fields import field_in, fields, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.written import WrittenCall
from toolwire.protocols.reading.repair import read_arguments
from toolwire.protocols.streaming import StreamEvent, TextDelta

_EVENTS = frozenset(
    {"message_start", "ping", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"}
    | {"message_stop", "error"}
)
_HARMLESS = frozenset({"ping", "message_stop"})
"""Events that say nothing new after the end."""

_DELTAS = {
    "text_delta": ("text", "text"),
    "citations_delta": ("text", "citation"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
}
"""The kind of block that a delta belongs to, and its field. A delta with the text of arguments belongs to others."""

_OF_A_CALL = frozenset({"type", "id", "name", "input", "caller", "cache_control"})
"""The fields of a call."""

_NO_INPUT = frozenset({"text", "thinking", "redacted_thinking"})


@dataclass(slots=True, eq=False, kw_only=True)
class _ContentBlock:
    """A content block that is still arriving."""

    index: Any
    data: dict[str, Any]
    pieces: list[str] = field(default_factory=list[str])
    """The pieces of a call's arguments."""
    is_ended: bool = False
    kind: str = field(init=False)

    def __post_init__(self) -> None:
        self.kind = text_in(self.data, "type")

    def has_two_inputs(self) -> bool:
        """True if the block began with other arguments than came later."""
        begun = self.data.get("input")
        if not begun or not self.pieces:
            return False
        text = "".join(self.pieces)
        return begun != text and begun != read_arguments(text)[0]

    def whole(self) -> dict[str, Any]:
        found = join_pieces(self.data)
        return {**found, "input": "".join(self.pieces)} if self.pieces else found


def call_in(block: Any) -> WrittenCall:
    """Returns the call of a block as the model wrote it."""
    given = field_in(block, "input")
    return WrittenCall(
        name=text_in(block, "name"),
        id=text_in(block, "id"),
        arguments="" if given is None else given,
        beside={key: value for key, value in block.items() if key not in _OF_A_CALL},
    )


class BlockAssembly(Assembly):
    """The message so far."""

    def __init__(self, live: LiveCalls) -> None:
        super().__init__(live)
        self._blocks: list[_ContentBlock] = []
        self._newest: dict[Any, _ContentBlock] = {}
        self._has_begun = False
        self._end: dict[str, Any] = {}

    def knows(self, piece: Mapping[str, Any]) -> bool:
        return text_in(piece, "type") in _EVENTS

    def add(self, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        kind = text_in(piece, "type")
        if self.is_ended:
            if kind in _EVENTS - _HARMLESS:
                self.refuse(WENT_ON)
            return
        match kind:
            case "message_start":
                if self._has_begun:
                    self.refuse("A second message began in the stream. Use a new stream for each reply.")
                self._has_begun = True
                self._take_message(inner(piece, "message"))
            case "content_block_start":
                yield from self._begin(self.index_in(piece, "index"), field_in(piece, "content_block"))
            case "content_block_delta":
                yield from self._add_delta(self.index_in(piece, "index"), field_in(piece, "delta"))
            case "content_block_stop":
                yield from self._stop(self.index_in(piece, "index"))
            case "message_delta":
                self._end.update({key: value for key, value in inner(piece, "delta").items() if value is not None})
            case "message_stop":
                self.is_ended = True
                self._check_ends()
                yield from self.end()
            case "error":
                self._end["error"], self.is_ended = piece.get("error") or dict(piece), True
            case _:
                pass  # pings, and the SDK's `text` and `input_json` events, which repeat a delta

    def end(self) -> Iterator[StreamEvent]:
        for block in self._blocks:
            yield from self._show_end(block)

    def body(self) -> dict[str, Any]:
        indexes = [block.index for block in self._blocks]
        blocks = self._blocks
        if all(isinstance(index, int) for index in indexes) and len(set(indexes)) == len(indexes):
            blocks = sorted(blocks, key=lambda block: block.index)
        content = [block.whole() for block in blocks]
        return {"type": "message", "role": "assistant", "content": content, **self._end}

    def _take_message(self, message: Mapping[str, Any]) -> None:
        """Takes what a message holds when it begins, which is nothing from the provider itself."""
        content = field_in(message, "content")
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else items_in(message, "content"):
            self._blocks.append(_ContentBlock(index=None, data=dict(fields(block) or {}), is_ended=True))
        if reason := text_in(message, "stop_reason"):
            self._end["stop_reason"] = reason

    def _check_ends(self) -> None:
        """Checks that each block has ended before the message. A call may lack its last arguments."""
        for block in [] if self.problems else self._blocks:
            if not block.is_ended:
                is_told = block.kind != "tool_use"
                self.refuse(f"The block {block.index} of the stream has not ended before its message.", is_told=is_told)

    def _begin(self, index: Any, data: Any) -> Iterator[StreamEvent]:
        if not isinstance(data, Mapping):
            self.refuse_value("content_block", data)
            return
        data = cast("Mapping[str, Any]", data)
        earlier = self._newest.get(index)
        if earlier is not None and not earlier.is_ended:
            self.refuse(f"Two blocks of the stream have the index {index}, and the first has not ended.")
        block = self._newest[index] = _ContentBlock(index=index, data=dict(data))
        if block.kind == "text":
            block.data.setdefault("text", "")
        self._blocks.append(block)
        if block.kind == "tool_use" and (name := text_in(data, "name")):
            yield from self.live.start(block, name=name, id=text_in(data, "id"))
        elif block.kind == "text" and (text := text_in(data, "text")):
            yield TextDelta(text=text)

    def _add_delta(self, index: Any, delta: Any) -> Iterator[StreamEvent]:
        block = self._newest.get(index)
        kind = text_in(delta, "type")
        if fields(delta) is None:
            self.refuse_value("delta", delta)
        elif block is None:
            self.refuse(f"The stream adds to the block {index}, which has not begun.")
        elif block.is_ended:
            self.refuse(f"The stream adds to the block {index}, which has ended.")
        elif _is_misplaced(block, kind, delta):
            self.refuse(f"The stream adds {kind!r} to the block {index}, which is of the type {block.kind!r}.")
        elif kind not in _DELTAS and block.kind in _NO_INPUT:
            self.refuse(f"The stream adds {kind!r} to the block {index}, which was not read.", is_told=True)
        elif kind in _DELTAS and not isinstance(value := field_in(delta, _DELTAS[kind][1]), str | Mapping):
            self.refuse_value(_DELTAS[kind][1], value)
        else:
            yield from self._grow(block, kind, delta)

    def _grow(self, block: _ContentBlock, kind: str, delta: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if kind == "citations_delta":
            block.data["citations"] = [*items_in(block.data, "citations"), delta.get("citation")]
            return
        given = delta.get("partial_json")
        if text := given if isinstance(given, str) else "" if given is None else json.dumps(given, default=str):
            block.pieces.append(text)
            yield from self.live.add_arguments(block, text)
        for name, value in delta.items():
            if name not in ("type", "partial_json") and isinstance(value, str):
                grow(block.data, name, value)
        if block.kind == "text" and (text := text_in(delta, "text")):
            yield TextDelta(text=text)

    def _stop(self, index: Any) -> Iterator[StreamEvent]:
        block = self._newest.get(index)
        if block is None:
            self.refuse(f"The stream ends the block {index}, which has not begun.")
        elif not block.is_ended:
            block.is_ended = True
            if block.has_two_inputs():
                self.refuse(f"The stream gives the arguments of the block {index} twice.")
            yield from self._show_end(block)

    def _show_end(self, block: _ContentBlock) -> Iterator[StreamEvent]:
        whole = block.whole()
        if block.kind == "tool_use":
            yield from self.live.end(block, call_in(whole))


def _is_misplaced(block: _ContentBlock, kind: str, delta: Mapping[str, Any]) -> bool:
    """True if a delta does not belong into its block. All that is added to a call must be understood."""
    if kind in _DELTAS:
        return block.kind != _DELTAS[kind][0]
    if block.kind == "tool_use":
        return "partial_json" not in delta
    return "partial_json" in delta and block.kind in _NO_INPUT
