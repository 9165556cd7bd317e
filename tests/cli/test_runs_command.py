"""`toolwire runs`: the runs of a store on the command line."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.cli.command_line import Ended, run_here
from toolwire import Session, Store, ToolSpec
from toolwire.journal.run import RunStatus


@pytest.mark.parametrize("status", get_args(RunStatus))
def test_runs_of_each_status_can_be_listed(store: str, status: str) -> None:
    Store.open(f"sqlite:///{store}").close()
    listed = run_here("runs", "list", "--status", status)
    assert listed == Ended(code=0, stdout="", stderr="there are no such runs\n")


def test_a_run_that_is_put_back_and_waits_for_a_person_says_so(store: str) -> None:
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    with Store.open(f"sqlite:///{store}") as opened:
        asking = Session([ToolSpec.from_function(pay, permission="confirm")], protocol="xml", store=opened)
        run_id = asking.run_turn("<tool_call><name>pay</name><params><amount>5</amount></params></tool_call>").run_id
    ended = run_here("runs", "requeue", run_id)
    assert (ended.code, ended.stderr) == (
        0,
        f"A person has to decide first: toolwire approvals list --run {run_id}\n",
    )
