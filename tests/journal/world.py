"""Runs, steps and requests for the tests of the store."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import Future
from typing import Any, TypeVar

from tests.patience import PATIENCE_S
from toolwire.journal.ledger.run_ledger import RunLedger
from toolwire.journal.run import RunStart
from toolwire.journal.store import Store
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.effects import Idempotency
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step, step_of
from toolwire.vocabulary.values import digest

T = TypeVar("T")

_NUMBERS = itertools.count(1)
SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "maximum": 100}},
    "required": ["amount"],
    "additionalProperties": False,
}


def done(future: Future[T]) -> T:
    return future.result(timeout=PATIENCE_S)


def run_start(run_id: str = "", **fields: Any) -> RunStart:
    run_id = run_id or f"r_{next(_NUMBERS)}_{time.time_ns():x}"
    reply = {"text": "", "calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "call_1"}]}
    kept: dict[str, Any] = {
        "protocol": "openai",
        "reply": reply,
        "tools": {"pay": "sha256:tool"},
        "caller": Caller(principal="user:1", agent="helper"),
    }
    return RunStart(run_id=run_id, created_at=1_700_000_000.5, **{**kept, **fields})


def started(store: Store, run_id: str = "", **fields: Any) -> RunLedger:
    return on_record(store, run_start(run_id, **fields))


def on_record(store: Store, run: RunStart) -> RunLedger:
    """The ledger of a new run whose start is on record."""
    ledger = done(store.start(run))
    recorded = ledger.record_start()
    assert recorded is not None
    done(recorded)
    return ledger


def step(key: str = "1", tool: str = "pay", parent: str = "", **arguments: Any) -> Step:
    return step_of(ToolCall(tool, arguments or {"amount": 5}, id=key, parent=parent))


def start(
    of: Step, *, idempotent: Idempotency = "no", is_composite: bool = False, request_id: str = "", attempt: int = 1
) -> Start:
    return Start(
        step=of,
        arguments={"amount": 5},
        arguments_digest=digest({"amount": 5}),
        tool_digest="sha256:tool",
        idempotent=idempotent,
        is_composite=is_composite,
        request_id=request_id,
        attempt=attempt,
    )


def request(ledger: RunLedger, id: str = "", call_id: str = "1", **fields: Any) -> ApprovalRequest:
    kept: dict[str, Any] = {
        "arguments": {"amount": 5},
        "reasons": ("rule confirm 'pay'",),
        "caller": Caller(principal="user:1", agent="helper"),
        "tool_digest": "sha256:tool",
        "arguments_digest": digest({"amount": 5}),
        "arguments_schema": SCHEMA,
        "effects": ("spend",),
        "taints": ("untrusted",),
        "created_at": time.time(),
        "expires_at": time.time() + 3600,
    }
    return ApprovalRequest(
        id=id or f"a_{next(_NUMBERS)}_{time.time_ns():x}",
        call_id=call_id,
        tool="pay",
        run_id=ledger.run_id,
        **{**kept, **fields},
    )


PAID = ToolResult(True, {"paid": 5})
