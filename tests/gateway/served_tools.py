"""Tools for tests of servers. `toolwire serve --tools` loads this file too, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from toolwire import CallContext, ToolRegistry, ToolSpec

EVERY_BLOCK: list[Any] = [
    {"type": "text", "text": "words", "annotations": {"audience": ["user"], "priority": 0.5}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
    {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}},
    {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside", "mimeType": "text/plain"}},
    {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAEC"}},
    {"type": "resource_link", "uri": "file:///log.txt", "name": "log", "description": "The log"},
]

HARD_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"short": {"$anchor": "short", "type": "string", "maxLength": 8}},
    "properties": {
        "kind": {"type": "string", "enum": ["a", "b"], "x-mcp-header": "Kind"},
        "size": {"type": "integer"},
        "name": {"$ref": "#/$defs/short"},
    },
    "required": ["kind"],
    "if": {"properties": {"kind": {"const": "b"}}},
    "then": {"required": ["size"]},
}


def note(file: str, text: str) -> None:
    with Path(file).open("a") as opened:
        opened.write(text)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    print("printed while it ran")
    return a + b


def show() -> Any:
    """Shows blocks of every kind."""
    return EVERY_BLOCK


def fail() -> str:
    """Fails."""
    raise OSError("the disk is full")


async def count(upto: int, context: CallContext) -> str:
    """Counts, and says how far it is."""
    for number in range(1, upto + 1):
        await context.progress(number, upto, f"at {number}")
    return f"counted to {upto}"


async def wait(mark: str) -> str:
    """Waits until it is cancelled, and says so in a file."""
    note(f"{mark}.begun", "")
    try:
        await asyncio.Event().wait()
    finally:
        note(f"{mark}.cancelled", "")
    return ""


def nap(mark: str) -> str:
    """Waits for a file."""
    Path(f"{mark}.begun").touch()
    while not Path(f"{mark}.go").exists():
        time.sleep(0.01)
    return "rested"


def process() -> int:
    """Shows the number of its process."""
    return os.getpid()


def die() -> str:
    """Ends its process at once."""
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def pay(amount: int, record: str) -> str:
    """Pays, and adds a line to a file."""
    note(record, f"{amount}\n")
    return f"paid {amount}"


async def book(day: str, record: str, context: CallContext) -> str:
    """Books a table."""
    guests = await context.ask(f"How many guests on {day}?", {"type": "integer", "minimum": 1, "maximum": 12})
    name = await context.ask("For whom?")
    note(record, f"{guests} {name}\n")
    return f"a table for {guests}, for {name}"


def new_registry(**options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    for tool in (add, show, fail, count, wait, nap, process, die, book):
        registry.register(tool)
    registry.register(pay, permission="confirm")
    hard = ToolSpec.from_jsonschema(
        name="hard", description="", input_schema=HARD_SCHEMA, function=lambda **given: given
    )
    registry.register(hard, "files/hard")
    return registry


registry = new_registry()
__all__ = ["registry"]
