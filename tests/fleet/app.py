"""What a worker of the tests runs: tools that write each of their calls to a file."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

from toolwire import Session, ToolRegistry, ToolSpec
from toolwire.journal.run import RunInfo
from toolwire.journal.store import Store


def note(name: str) -> str:
    """Writes a name."""
    _write(f"note {name}")
    return name


def pay(amount: int) -> int:
    """Pays."""
    _write(f"pay {amount}")
    return amount


async def wait(name: str, seconds: float) -> str:
    """Waits."""
    _write(f"begin {name}")
    await asyncio.sleep(seconds)
    _write(f"end {name}")
    return name


async def rest(name: str, seconds: float) -> str:
    """Waits after the other calls of its reply, and not beside them."""
    return await wait(name, seconds)


async def stall(name: str) -> str:
    """Waits for ever at its first attempt."""
    is_first = f"begin {name}" not in lines(_done_file())
    _write(f"begin {name}")
    if is_first:
        await asyncio.sleep(1000)
    _write(f"end {name}")
    return name


def tools() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(note)
    registry.register(pay, permission="confirm")
    registry.register(ToolSpec.from_function(wait, idempotent="natural"))
    registry.register(ToolSpec.from_function(rest, idempotent="natural"), parallel=False)
    registry.register(ToolSpec.from_function(stall, idempotent="natural"))
    registry.enable_code_execution()
    return registry


def session_for(run: RunInfo, store: Store) -> Session:
    if run.caller.principal == "broken" and "mended" not in lines(_done_file()):
        raise ValueError("there is no such principal")
    if run.caller.principal == "stuck":
        time.sleep(1000)
    return Session(tools(), protocol=run.protocol, store=store, caller=run.caller, conversation=run.conversation)


def call(name: str, /, **arguments: Any) -> dict[str, Any]:

    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def _done_file() -> Path:
    return Path(os.environ["DONE_FILE"])


def _write(line: str) -> None:
    with _done_file().open("a") as file:
        file.write(f"{line} {time.time():.3f}\n")


def lines(file: Path) -> list[str]:
    """What was done, without the times."""
    return [line.rpartition(" ")[0] for line in file.read_text().splitlines()]
