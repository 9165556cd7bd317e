"""A streamed content of Gemini's API, put together from its responses. Each call comes whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolwire.protocols.native.assembly import WENT_ON, Assembly, present
from toolwire.protocols.native.fields import field_in, fields, inner, items_in, text_in
from toolwire.protocols.native.live_calls import LiveCalls
from toolwire.protocols.native.written import WrittenCall
from toolwire.protocols.streaming import StreamEvent, TextDelta

PLAIN = frozenset({"text", "thought"})
"""Fields of a part of text alone. Such parts can be joined; a part with a signature must stay apart."""

_OF_A_PART = frozenset(
    {"function_call", "functionCall", "text", "thought", "thought_signature", "thoughtSignature", "part_metadata"}
)
_OF_A_CALL = frozenset({"id", "name", "args", "partial_args", "partialArgs", "will_continue", "willContinue"})
"""The fields of a part with a call, and of the call."""

_KNOWN = frozenset(
    {"candidates", "prompt_feedback", "promptFeedback", "usage_metadata", "usageMetadata", "modelVersion", "error"}
)


class PartAssembly(Assembly):
    """The response so far. Only its first candidate is put together."""

    def __init__(self, live: LiveCalls) -> None:
        super().__init__(live)
        self._parts: list[Any] = []
        self._content: dict[str, Any] = {}
        """Fields of the content beside its parts."""
        self._rest: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._others: list[dict[str, Any]] = []

    def knows(self, piece: Mapping[str, Any]) -> bool:
        return not _KNOWN.isdisjoint(piece) and not items_in(piece, "choices")

    def add(self, piece: Mapping[str, Any]) -> Iterator[StreamEvent]:
        if not isinstance(field_in(piece, "candidates"), list | None):
            self.refuse_value("candidates", piece["candidates"])
        candidates = [one for one in items_in(piece, "candidates") if self._is_first(one)]
        candidate = candidates[0] if candidates else None
        parts = self._parts_of(candidate)
        if self.is_ended and any(part.get("text") != "" for part in map(present, parts)):
            self.refuse(WENT_ON)
            return
        self._others.extend(present(one) for one in items_in(piece, "candidates") if one is not candidate)
        for part in parts:
            self._parts.append(present(part) if isinstance(part, Mapping) else part)
            yield from self._show(part)
        self._candidate.update({k: v for k, v in present(candidate).items() if k != "content"})
        blocked = word_in(inner(piece, "prompt_feedback", "promptFeedback"), "block_reason", "blockReason")
        if blocked:
            self._rest["promptFeedback"] = {"blockReason": blocked}
        if error := field_in(piece, "error"):
            self._rest["error"] = error
        if blocked or error or word_in(candidate, "finish_reason", "finishReason"):
            self.is_ended = True

    def end(self) -> Iterator[StreamEvent]:
        yield from ()

    def body(self) -> dict[str, Any]:
        content = {**self._content, "role": "model", "parts": self._parts}
        return {**self._rest, "candidates": [{**self._candidate, "content": content}, *self._others]}

    def _is_first(self, candidate: Any) -> bool:
        """True for the first alternative, which is the only one that is read."""
        if not isinstance(candidate, Mapping):
            self.refuse_value("candidates", candidate)
        return field_in(candidate, "index") in (None, 0)

    def _parts_of(self, candidate: Any) -> list[Any]:
        content = field_in(candidate, "content")
        for where, value, kind in (("content", content, Mapping), ("parts", field_in(content, "parts"), list)):
            if not isinstance(value, kind | None):
                self.refuse_value(where, value)
        self._content.update({key: value for key, value in present(content).items() if key != "parts"})
        return items_in(content, "parts")

    def _show(self, part: Any) -> Iterator[StreamEvent]:
        call = call_in(part)
        if call is not None:
            key = len(self._parts)
            yield from self.live.start(key, name=call.name, id=call.id)
            yield from self.live.end(key, call)
        elif not field_in(part, "thought") and (text := text_in(part, "text")):
            yield TextDelta(text=text)


def call_in(part: Any) -> WrittenCall | None:
    """Returns the call of a part; None for any other part."""
    call = field_in(part, "function_call", "functionCall")
    if call is None:
        return None
    arguments = field_in(call, "args")
    return WrittenCall(
        name=text_in(call, "name"),
        id=text_in(call, "id"),
        arguments={} if arguments is None else arguments,
        beside={
            **{key: value for key, value in part.items() if key not in _OF_A_PART},
            **{key: value for key, value in (fields(call) or {}).items() if key not in _OF_A_CALL},
        },
    )


def word_in(value: Any, *names: str) -> str:
    """Returns the word of the first of these names that is present. Empty if none is."""
    found = field_in(value, *names)
    # An SDK enum is a str by value, but str() of it gives another text.
    return str(getattr(found, "value", found)) if isinstance(found, str) else ""
