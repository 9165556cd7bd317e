"""Tools of ten parameters, and replies that call the first of them, for measuring what the others cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolwire import ToolSpec
from toolwire.protocols import get, names
from toolwire.vocabulary.calls import ToolCall

PROTOCOLS = names()
PROSE = "I look at it first.\n"


def tools(count: int) -> list[ToolSpec]:
    """New tools with ten parameters each."""
    return [ToolSpec.from_function(function(number), name=f"tool_{number}") for number in range(count)]


def function(number: int) -> Callable[..., str]:
    """A new function with ten parameters."""

    def tool(
        a: int,
        b: str = "b",
        c: float = 1.5,
        d: bool = True,
        e: list[str] | None = None,
        f: dict[str, int] | None = None,
        g: int | None = None,
        h: str | None = None,
        i: list[int] | None = None,
        j: str = "j",
    ) -> str:
        """Looks at a thing.

        Args:
            a: The number of the thing.
            b: The name of the thing.
            j: The language of the answer.
        """
        return f"{number}: {a}, {b}, {c}, {d}, {e}, {f}, {g}, {h}, {i}, {j}"

    tool.__name__ = f"tool_{number}"
    return tool


def reply(protocol: str) -> Any:
    """A reply that calls `tool_0`, as a model writes it."""
    return get(protocol).render([ToolCall("tool_0", {"a": 3, "b": "x"}, id="c1")])


def text_reply(protocol: str) -> str:
    """The same call after a sentence. A native protocol gets the reply as it is."""
    return PROSE + reply(protocol)


def read_stream(protocol: str, among: list[ToolSpec]) -> Any:
    """Reads the reply of a text protocol in pieces."""
    stream = get(protocol).stream(among)
    text = reply(protocol)
    for start in range(0, len(text), 16):
        stream.feed(text[start : start + 16])
    return stream.reply()
