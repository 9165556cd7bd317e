"""Suspended calls of tools that have a title. The title is part of the digest that a person approves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolwire import Session, ToolSpec
from toolwire.permission.approval import DecisionRefused

CALLS = "<tool_call><name>look</name></tool_call><tool_call><name>pay</name></tool_call>"
PROGRAM = """target = "x"
[tool_call]
status = "success"
target = "x"
code = '''
print(look())
print(pay())
'''
"""


class Desk:
    """A desk with two tools, and a list of the calls that ran."""

    def __init__(self, folder: Path, protocol: str) -> None:
        self.ran: list[str] = []
        self._options: dict[str, Any] = {"protocol": protocol, "store": f"sqlite:///{folder / 'runs.db'}"}

    def look(self) -> str:
        """Looks."""
        self.ran.append("look")
        return "looked"

    def pay(self) -> str:
        """Pays."""
        self.ran.append("pay")
        return "paid"

    def session(self, title: str | None) -> Session:
        """A new session whose `pay` has this title."""
        pay = ToolSpec.from_function(self.pay, permission="confirm", title=title)
        return Session([self.look, pay], **self._options)


@pytest.fixture(params=["xml", "attp"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return Desk(tmp_path, request.param)


def suspended(desk: Desk, title: str | None) -> tuple[str, list[dict[str, Any]]]:
    """A run that waits for a decision on `pay`, and the approval of it."""
    session = desk.session(title)
    turn = session.run_turn(PROGRAM if session.protocol.name == "attp" else CALLS)
    assert turn.suspended is not None
    return turn.suspended.run_id, [{"request_id": one.id, "verdict": "approve"} for one in turn.suspended.pending]


def test_a_suspended_call_of_a_tool_with_a_title_resumes(desk: Desk) -> None:
    run_id, decisions = suspended(desk, "Pay a bill")
    done = desk.session("Pay a bill").run_resume(run_id, decisions)
    assert (done.suspended, desk.ran, "paid" in done.text) == (None, ["look", "pay"], True)


@pytest.mark.parametrize("earlier", [None, "Look at a bill"], ids=["before titles were in digests", "another title"])
def test_an_approval_of_another_title_runs_nothing_and_the_run_still_ends(desk: Desk, earlier: str | None) -> None:
    # Older stores have the digest that a tool without a title has today.
    run_id, decisions = suspended(desk, earlier)
    with pytest.raises(DecisionRefused) as refused:
        desk.session("Pay a bill").run_resume(run_id, decisions)
    assert refused.value.code == "tool_changed"
    done = desk.session("Pay a bill").run_resume(run_id)
    assert (done.suspended, desk.ran) == (None, ["look"])
    assert "the tool or its arguments have changed since approval was requested" in done.text


def test_an_older_run_resumes_if_its_tool_gives_up_the_title(desk: Desk) -> None:
    run_id, decisions = suspended(desk, None)
    with pytest.raises(DecisionRefused, match="is not the tool that was shown"):
        desk.session("Pay a bill").run_resume(run_id, decisions)
    done = desk.session(None).run_resume(run_id, decisions)
    assert (done.suspended, desk.ran) == (None, ["look", "pay"])
