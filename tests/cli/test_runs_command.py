"""`toolwire runs`: the runs of a store on the command line."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.cli.command_line import Ended, run_here
from toolwire import Store
from toolwire.journal.run import RunStatus


@pytest.mark.parametrize("status", get_args(RunStatus))
def test_runs_of_each_status_can_be_listed(store: str, status: str) -> None:
    Store.open(f"sqlite:///{store}").close()
    listed = run_here("runs", "list", "--status", status)
    assert listed == Ended(code=0, stdout="", stderr="there are no such runs\n")
