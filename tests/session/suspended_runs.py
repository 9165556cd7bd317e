"""Suspended runs as they are saved, and the key that they are signed with."""

from __future__ import annotations

from pathlib import Path

from toolwire.journal.run import RunStart, SuspendedRun
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.values import digest

FIXTURES = Path(__file__).parent / "fixtures" / "suspended"
KEY = bytes(range(32))
NOW = 1_800_000_000.0
PAY = "sha256:" + "a1" * 32
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def request(number: int, **arguments: object) -> ApprovalRequest:
    return ApprovalRequest(
        id=f"a_{number:032x}",
        call_id=f"r_9f/{number}",
        tool="bank/pay",
        arguments=arguments,
        reasons=("rule:spend-confirm",),
        caller=Caller(principal="user:42"),
        run_id="r_9f",
        tool_digest=PAY,
        arguments_digest=digest(arguments),
        effects=("spend",),
        taints=("untrusted",),
        arguments_schema=SCHEMA,
        expires_at=NOW + 86_400.0,
    )


def view(*pending: ApprovalRequest, run_id: str = "r_9f", rev: int = 7) -> SuspendedRun:
    start = RunStart(
        run_id=run_id,
        reply={},
        protocol="",
        caller=Caller(principal="user:42"),
        policy_digest="sha256:" + "b2" * 32,
        tools={"bank/pay": PAY},
        engine="0.1.0",
        created_at=NOW,
        expires_at=NOW + 30 * 86_400.0,
    )
    return SuspendedRun(start=start, rev=rev, head=12, root="sha256:" + "c3" * 32, pending=pending)


VIEWS = {
    "one_request": view(request(1, amount=5)),
    "parallel_requests": view(*(request(number, amount=number) for number in range(1, 4))),
    "every_json_type": view(
        request(
            1,
            amount=-5,
            text='Zoë \u202e "quoted" \\ \n\t\x00 \U0001f4b8',
            large=10**40,
            real=[0.1, 1.0, 1e300, -0.0],
            nested={"a": {"b": [[], {}, None, True, False]}, "": 0},
        )
    ),
    "nothing_pending": view(),
}
