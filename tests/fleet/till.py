"""What a worker runs while processes are killed: tools that write each of their effects to a file, and what they did.

Half of the runs are programs, and some need the approval of a person.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.session.till import calls, program
from toolwire import CallContext, Session, ToolSpec
from toolwire.journal.run import RunInfo
from toolwire.journal.store import Store

EFFECTS_FILE = "EFFECTS_FILE"
"""The variable that names the file."""
SLOW_S = "SLOW_S"
"""The variable that says how long each tool takes."""


def price(number: int) -> int:
    """Looks a price up."""
    _work()
    return number


def send(number: int, context: CallContext) -> str:
    """Sends, and recognises by its key what it has sent."""
    _note("send", number, context.idempotency_key)
    _work()
    return f"sent {number}"


def pay(number: int) -> str:
    """Pays."""
    _note("pay", number)
    _work()
    return f"paid {number}"


def wire(number: int) -> str:
    """Wires money if a person approves it."""
    _note("wire", number)
    _work()
    return f"wired {number}"


def tools() -> list[ToolSpec]:
    return [
        ToolSpec.from_function(price, idempotent="natural", effects=["read"]),
        ToolSpec.from_function(send, idempotent="key", effects=["send"], permission="auto"),
        ToolSpec.from_function(pay, effects=["spend"], permission="auto"),
        ToolSpec.from_function(wire, effects=["spend"], permission="confirm"),
    ]


def session_for(run: RunInfo, store: Store) -> Session:
    return Session(tools(), protocol=run.protocol, store=store, caller=run.caller, conversation=run.conversation)


def session(number: int, store: Store | None) -> Session:
    """The session of a job: those with an odd number are programs."""
    return Session(tools(), protocol="attp" if number % 2 else "openai", store=store)


def reply(number: int, *, approved: int) -> Any:
    """What the model says in that job. Each of the first `approved` jobs needs an approval."""
    names = ["price", "send", "pay", *(["wire"] if number < approved else [])]
    if number % 2:
        return program("\n".join(f"{name}(number={number})" for name in names))
    return calls(*((name, {"number": number}) for name in names))


def effects_in(file: Path) -> list[dict[str, Any]]:
    """What the tools did, in order."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def doubled(effects: Sequence[dict[str, Any]]) -> int:
    """Effects more than their tool allows: a second payment, or what was sent under a second key."""
    paid = Counter((effect["tool"], effect["number"]) for effect in effects if effect["tool"] != "send")
    keys = {(effect["number"], effect["key"]) for effect in effects if effect["tool"] == "send"}
    sent = Counter(number for number, _ in keys)
    return sum(count - 1 for count in (*paid.values(), *sent.values()))


def _note(tool: str, number: int, key: str = "") -> None:
    line = json.dumps({"tool": tool, "number": number, "key": key}) + "\n"
    descriptor = os.open(os.environ[EFFECTS_FILE], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def _work() -> None:
    time.sleep(float(os.environ.get(SLOW_S, "0")))
