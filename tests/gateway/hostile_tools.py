"""Tools whose results and messages hold lone surrogates and other values that JSON and UTF-8 lack."""

from __future__ import annotations

from typing import Any

from toolwire import CallContext, ToolRegistry, ToolResult

HALF = "caf\udce9"
MENDED = "caf\ufffd"
"""`HALF` as a client receives it."""


def names() -> list[str]:
    """Lists names, of which one is not UTF-8."""
    return ["a.txt", HALF]


def members() -> dict[str, Any]:
    """Gives an object without an output schema."""
    return {HALF: HALF, "n": float("nan")}


def words() -> Any:
    """Gives a text without an output schema."""
    return HALF


def numbers() -> Any:
    """Gives a list without an output schema."""
    return [1, 2]


def picture() -> Any:
    """Gives one block."""
    return {"type": "text", "text": HALF}


def blocks() -> Any:
    """Gives blocks of many kinds."""
    return [
        {"type": "resource", "resource": {"uri": f"file:///{HALF}", "text": HALF, "mimeType": HALF}},
        {"type": "resource_link", "uri": f"file:///{HALF}", "name": HALF, "title": HALF, "description": HALF},
    ]


def fail() -> str:
    """Fails."""
    raise OSError(HALF)


def meta() -> Any:
    """Gives a result with metadata for MCP."""
    return ToolResult(True, "a", metadata={"mcp": {HALF: [HALF, float("inf")]}})


async def report(context: CallContext) -> str:
    """Reports progress."""
    await context.progress(1, float("inf"), HALF)
    await context.progress(float("inf"), None, "beyond")
    return "done"


async def ask(context: CallContext) -> str:
    """Asks a person."""
    return str(await context.ask(f"Which {HALF}?", {"type": "string", "enum": ["a", HALF]}))


def titled(a: str = HALF) -> str:
    """Has a default."""
    return a


def new_registry() -> ToolRegistry:
    registry = ToolRegistry()
    for tool in (names, members, words, numbers, picture, blocks, fail, meta, report, ask, titled):
        registry.register(tool)
    return registry


registry = new_registry()
__all__ = ["registry"]
