"""A process that goes through a run and dies at a chosen moment, by a signal that nothing can catch."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, cast

from tests.conftest import IN_WASM
from tests.session.till import calls, program
from toolwire import ApprovalRequest, CallContext, Decision, Session, ToolSpec, Turn
from toolwire.journal.database.work import Work
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.store import Store
from toolwire.permission.approval import DecisionRefused

KEY = bytes(32)
CODE = """
total = price("tea")
print(pay(total))
print(send(total + 1))
print(move(total + 3))
print(post(total + 4))
print(pay(total + 2))
"""
MADE = [
    ("pay", {"amount": 3}),
    ("send", {"amount": 4}),
    ("price", {"thing": "tea"}),
    ("move", {"amount": 6}),
    ("post", {"amount": 7}),
    ("pay", {"amount": 5}),
]
EFFECTS = [("pay", 3), ("send", 4), ("price", 3), ("move", 6), ("post", 7), ("pay", 5)]
"""The tool and the amount of each call of `MADE`, and of each call of `CODE`."""
DOUBT = "it may have run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One process's part of a run."""

    url: str
    effects: str
    """The file that records the real effects."""
    run_id: str = ""
    """The run to go on with; empty for a new one."""
    dies_at: int = 0
    """The moment to die at, counted from 1; 0: never."""
    is_program: bool = False


class Moments:
    """Counts the moments around effects and records, and ends the process at one of them."""

    def __init__(self, dies_at: int) -> None:
        self.dies_at = dies_at
        self.count = 0

    def passed(self) -> None:
        self.count += 1
        if self.count == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


def go(attempt: Attempt, answer: Any) -> None:
    """Runs the attempt to its end, or to its death; `answer` gets the run's id, and then how it ended."""
    moments = Moments(attempt.dies_at)
    watch(moments)
    tools = _tools(Path(attempt.effects), moments)
    with Store.open(attempt.url, key=KEY) as store:
        protocol = "attp" if attempt.is_program else "openai"
        runner = "wasm" if IN_WASM and attempt.is_program else None
        session = Session(tools, protocol=protocol, store=store, approver=_approver, runner=runner)
        _announce(answer)
        if attempt.run_id:
            turn = asyncio.run(session.resume(attempt.run_id))
        else:
            turn = asyncio.run(session.turn(program(CODE) if attempt.is_program else calls(*MADE)))
        answer.send(_summary(turn, moments))


def suspended(attempt: Attempt, count: int) -> list[str]:
    """The ids of that many runs, each of which waits for a payment of its own amount."""
    tools = _tools(Path(attempt.effects), Moments(0))
    with Store.open(attempt.url, key=KEY) as store:
        # Each in a conversation of its own: one process at a time works on a conversation.
        sessions = [Session(tools, protocol="openai", store=store) for _ in range(count)]
        replies = [calls(("pay", {"amount": place})) for place in range(count)]
        turns = [asyncio.run(session.turn(reply)) for session, reply in zip(sessions, replies, strict=True)]
    return [turn.suspended.run_id for turn in turns if turn.suspended is not None]


def resumed(attempt: Attempt, run_ids: list[str]) -> list[str]:
    """The outcome of each run that was approved and resumed here: its payment, or the reason of the refusal."""
    tools = _tools(Path(attempt.effects), Moments(0))
    with Store.open(attempt.url, key=KEY) as store:
        session = Session(tools, protocol="openai", store=store)
        return [asyncio.run(_resumed(session, store, run_id)) for run_id in run_ids]


def resume_all(attempt: Attempt, run_ids: list[str], answer: Any) -> None:
    """The same, told to another process."""
    answer.send(resumed(attempt, run_ids))


async def _resumed(session: Session, store: Store, run_id: str) -> str:
    decisions = [{"request_id": request.id, "verdict": "approve"} for request in store.pending(run_id)]
    try:
        turn = await session.resume(run_id, decisions)
    except DecisionRefused as refused:
        return refused.code
    return turn.results[0].text.partition(" ")[0]


def happened(effects: Path) -> list[dict[str, Any]]:
    """The effects, in order, a torn last line left out."""
    if not effects.exists():
        return []
    return [json.loads(line) for line in effects.read_text("utf-8").splitlines(keepends=True) if line.endswith("\n")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The faults that kills caused in one run."""

    lost: int = 0
    """Calls that the turn calls done and that had no effect."""
    hidden: int = 0
    """Calls that had an effect, and neither their result nor a doubt says so."""
    doubled: int = 0
    """Effects more than their tool allows: a second one, or for a keyed tool a second key."""
    doubts: int = 0
    """Calls of which the turn says that they may have run."""
    doubted_and_done: int = 0
    """Calls in doubt that had an effect."""


def damage(effects: list[dict[str, Any]], end: dict[str, Any], *, is_program: bool) -> Damage:
    """The faults of a run with this end and these effects."""
    done = Counter((effect["tool"], effect["amount"]) for effect in effects)
    keys = {effect["key"] for effect in effects if effect["tool"] == "send"}
    doubled = sum(count - 1 for (tool, _), count in done.items() if tool in ("pay", "move", "post"))
    doubled += max(0, len(keys) - 1)
    if is_program:
        # A doubt is an error in the program, which ends it; a program that reached its end has made all its calls.
        is_doubt = any(DOUBT in text for text in end["texts"])
        is_success = end["kinds"] == ["success"]
        missing = sum(not done[effect] for effect in EFFECTS)
        return Damage(
            lost=missing if is_success else 0,
            hidden=0 if is_success or is_doubt else max(1, len(done)),
            doubled=doubled,
            doubts=is_doubt,
        )
    lost = hidden = doubts = doubted_and_done = 0
    for effect, kind, text in zip(EFFECTS, end["kinds"], end["texts"], strict=True):
        if DOUBT in text:
            doubts, doubted_and_done = doubts + 1, doubted_and_done + done[effect]
        elif kind == "success":
            lost += not done[effect]
        else:
            hidden += done[effect]
    return Damage(lost=lost, hidden=hidden, doubled=doubled, doubts=doubts, doubted_and_done=doubted_and_done)


def _announce(answer: Any) -> None:
    """Tells the id of a new run when its start is durable: nothing of it has run until then."""
    write = RunLedger._send

    @wraps(write)
    def send(ledger: RunLedger, work: Work) -> None:
        if ledger._opening is not None and ledger._started is not None:
            ledger._started.add_done_callback(lambda _: answer.send(ledger.run_id))
        write(ledger, work)

    RunLedger._send = send  # type: ignore[method-assign]


def _approver(request: ApprovalRequest) -> Decision:
    if request.attempt > 1:
        return Decision(verdict="deny", reason=DOUBT)
    return Decision(verdict="approve")


def _tools(effects: Path, moments: Moments) -> list[Any]:
    def note(tool: str, amount: int, key: str = "") -> None:
        moments.passed()
        line = json.dumps({"tool": tool, "amount": amount, "key": key}) + "\n"
        descriptor = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
        os.close(descriptor)
        moments.passed()

    def pay(amount: int) -> str:
        """Pays."""
        note("pay", amount)
        return f"paid {amount}"

    def send(amount: int, context: CallContext) -> str:
        """Sends, and recognises by its key a text that it has sent."""
        note("send", amount, context.idempotency_key)
        return f"sent {amount}"

    def price(thing: str) -> int:
        """Looks a price up."""
        note("price", len(thing))
        return len(thing)

    def move(amount: int, context: CallContext) -> str:
        """Moves, and keeps the key beside the effect."""
        note("move", amount, context.idempotency_key)
        return f"moved {amount}"

    def post(amount: int, context: CallContext) -> str:
        """Posts under a key that its owner can look for."""
        note("post", amount, context.idempotency_key)
        return f"posted {amount}"

    def find(key: str) -> str:
        """Looks for the key in the effects of the tools."""
        return "done" if any(effect["key"] == key for effect in happened(effects)) else "not_done"

    return [
        ToolSpec.from_function(pay, permission="confirm", effects=["spend"]),
        ToolSpec.from_function(send, idempotent="key", effects=["send"]),
        ToolSpec.from_function(price, idempotent="natural", effects=["read"]),
        ToolSpec.from_function(move, reconcile=find, effects=["write"]),
        ToolSpec.from_function(post, idempotent="key", reconcile=find, effects=["send"]),
    ]


def watch(moments: Moments) -> None:
    """Makes moments of each thing that is asked of the ledger: before it, once it is under way, once it is durable."""
    for name in ("ask", "decide", "begin", "settle", "settle_with_end", "finish", "suspend", "release"):
        setattr(RunLedger, name, _watched(getattr(RunLedger, name), moments))


def _watched(method: Callable[..., Any], moments: Moments) -> Callable[..., Any]:
    @wraps(method)
    def watched(*given: Any, **more: Any) -> Any:
        moments.passed()
        found = method(*given, **more)
        moments.passed()
        if isinstance(found, Future):
            cast("Future[Any]", found).add_done_callback(lambda _: moments.passed())
        return found

    return watched


def _summary(turn: Turn, moments: Moments) -> dict[str, Any]:
    return {
        "texts": [result.text for result in turn.results],
        "kinds": [result.failure.kind if result.failure else "success" for result in turn.results],
        "suspended": turn.suspended is not None,
        "moments": moments.count,
    }
