"""A model that plays a script, for tests of what asks models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

from toolwire.models.model import Price, Request, Usage
from toolwire.protocols import get
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError

Replies = Iterable[Any] | Callable[[Request], Any]
"""Replies in their order, or a function that gives the reply to a request."""


class ScriptedModel:
    """A model that replies by a script, in any protocol.

    A reply is a text, a list of calls as `(name, arguments)`, or an exception, which is raised.

    Attributes:
        protocol: The name of the calling format.
        price: As of any model.
        requests: The requests that it was given, in order.
    """

    def __init__(
        self, replies: Replies, *, protocol: str = "openai", price: Price | None = None, usage: Usage | None = None
    ) -> None:
        """`usage` is that of each reply; None: 100 tokens of the request and 10 of the reply.

        Raises:
            ConfigurationError: There is no such protocol.
        """
        self.protocol = protocol
        self.price = price
        self.requests: list[Request] = []
        if isinstance(replies, str):
            raise ConfigurationError(f"ScriptedModel({replies!r:.40}): give a list of replies, each a text or calls")
        self._protocol = get(protocol)
        self._replies = replies if callable(replies) else iter(replies)
        self._usage = Usage(input=100, output=10) if usage is None else usage
        self._calls = 0

    async def stream(self, request: Request, /) -> AsyncGenerator[Any]:
        """Yields the next reply in one piece, and its usage.

        Raises:
            ConfigurationError: The script has no more replies.
        """
        self.requests.append(request)
        said = self._replies(request) if callable(self._replies) else next(self._replies, _END)
        if said is _END:
            raise ConfigurationError(f"the script of ScriptedModel has no reply to request {len(self.requests)}")
        if isinstance(said, BaseException):
            raise said
        yield self._usage
        for piece in self._pieces(said):
            yield piece

    def _pieces(self, said: Any) -> list[Any]:
        calls: list[ToolCall] = []
        if not isinstance(said, str):
            for name, arguments in said:
                self._calls += 1
                calls.append(ToolCall(name, arguments, id=f"call_{self._calls}"))
        if not self._protocol.is_native:
            return [said if isinstance(said, str) else self._protocol.render(calls)]
        return _PIECES[self.protocol](said if isinstance(said, str) else None, self._protocol.render(calls))


_END = object()


def _chat(text: str | None, message: Any) -> list[Any]:
    delta = {"role": "assistant", "content": text}
    if text is None:
        delta = {**message, "tool_calls": [{**call, "index": at} for at, call in enumerate(message["tool_calls"])]}
    choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls" if text is None else "stop"}
    return [{"choices": [choice]}]


def _responses(text: str | None, items: Any) -> list[Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    said: list[Any] = [{"type": "message", "role": "assistant", "status": "completed", "content": [part]}]
    whole: dict[str, Any] = {"status": "completed", "output": items if text is None else said}
    return [{"type": "response.completed", "response": whole}]


def _anthropic(text: str | None, message: Any) -> list[Any]:
    blocks = message["content"] if text is None else [{"type": "text", "text": text}]
    events: list[Any] = [{"type": "message_start", "message": {"role": "assistant", "content": []}}]
    for at, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    reason = "tool_use" if text is None else "end_turn"
    return [*events, {"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


def _gemini(text: str | None, content: Any) -> list[Any]:
    said = content if text is None else {"role": "model", "parts": [{"text": text}]}
    return [{"candidates": [{"content": said, "finish_reason": "STOP"}]}]


_PIECES: dict[str, Callable[[str | None, Any], list[Any]]] = {
    "openai": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
"""The stream of one reply in each native protocol, from its text, or its message with calls."""
