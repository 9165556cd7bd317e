"""Which stores `toolwire serve` prunes, and a server without a store."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp import Client
from tests.cli.command_line import Ended, run_here
from tests.journal.database.test_memory import names_in
from tests.journal.world import done, started
from tests.patience import until
from toolwire import Retention, Store, ToolServer
from toolwire.cli.commands.serve_command import SERVED

TOOLS = """
from toolwire import tool

@tool(permission="confirm")
def pay(amount: int) -> str:
    "Pays."
    return f"paid {amount}"
"""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Ended, Any]]:
    """Serves tools, and looks at the store while they are served."""
    (tmp_path / "tools.py").write_text(TOOLS)

    def serve(*words: str, look: Callable[[ToolServer], Any] = lambda _: None) -> tuple[Ended, Any]:
        seen: list[Any] = []
        monkeypatch.setattr(ToolServer, "run_stdio", lambda server: seen.append(look(server)))
        return run_here("serve", "--tools", str(tmp_path / "tools.py"), *words), *seen

    return serve


def retention_of(server: ToolServer) -> Retention | None:
    pruner = server._store._database.pruner
    return None if pruner is None else pruner.retention


def test_a_store_that_the_command_makes_is_pruned_from_then_on(
    served: Callable[..., tuple[Ended, Any]], tmp_path: Path
) -> None:
    new = ("--store", str(tmp_path / "new.db"))
    assert served(*new, look=retention_of) == (Ended(code=0, stdout="", stderr=""), SERVED)
    with Store.open(f"sqlite:///{tmp_path}/new.db") as store:
        done(started(store).finish(()))
    assert served(*new, look=retention_of)[1] == SERVED
    assert served(*new, "--retention", "runs=1", look=retention_of)[1] == Retention(runs_days=1)
    assert served(*new, "--retention", "none", look=retention_of)[1] is None
    assert Retention(runs_days=30, log_days=365, results_days=7) == SERVED


def test_an_older_store_keeps_everything_and_a_line_says_what_would_go(
    served: Callable[..., tuple[Ended, Any]], tmp_path: Path
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/old.db") as store:
        done(started(store).finish(()))

    def wait_for_line(server: ToolServer) -> Retention | None:
        said: Any = sys.stderr
        until(lambda: "would delete" in said.getvalue())
        return retention_of(server)

    old = str(tmp_path / "old.db")
    line = (
        f"the store keeps everything; `toolwire store prune --retention runs=30,log=365,results=7 --store {old}` would "
        "delete 0 runs, the whole results of 0 runs, 0 long results, 0 rows of the log: 0 bytes\n"
    )
    assert served("--store", old, look=wait_for_line) == (Ended(code=0, stdout="", stderr=line), None)
    assert served("--store", old, "--retention", "runs=3", look=retention_of)[1] == Retention(runs_days=3)


async def test_a_server_without_a_store_leaves_approvals_to_its_client(
    served: Callable[..., tuple[Ended, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    servers: list[ToolServer] = []
    ended, _ = served("--store", "none", look=servers.append)
    assert (ended, servers[0]._store) == (Ended(code=0, stdout="", stderr=""), None)
    async with Client(servers[0].in_memory()) as client:
        refused = await client.call_tool("pay", {"amount": 5})
    assert refused.is_error
    assert "a person has to allow it, and no answer came" in str(refused.content)
    assert names_in(empty) == []
    ended, _ = served("--store", "none", "--retention", "none", look=servers.append)
    assert (ended, servers[1]._store) == (Ended(code=0, stdout="", stderr=""), None)
    wrong, *_ = served("--store", "none", "--retention", "runs=3")
    assert (wrong.code, wrong.stderr.splitlines()[0]) == (2, "toolwire: --retention is for a store")
