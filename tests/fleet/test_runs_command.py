"""`toolwire runs` shows what the workers have to do, and changes it."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.fleet.app import call, tools
from tests.patience import PATIENCE_S
from toolwire import Session
from toolwire.journal.store import Store


def runs(url: str, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "toolwire", "runs", *arguments, "--store", url],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.returncode, done.stdout or done.stderr


def test_a_queued_run_is_listed_put_back_and_cancelled(store: Store, url: str) -> None:
    session = Session(tools(), protocol="openai", store=store, conversation="c-1")
    run_id = session.run_submit(call("note", name="a"))
    code, listed = runs(url, "list", "--status", "queued", "--json")
    assert (code, [run["run_id"] for run in json.loads(listed)]) == (0, [run_id])
    assert runs(url, "requeue", run_id[:10]) == (
        0,
        f"{run_id}: it is due now, and a worker of this store takes it within seconds\n",
    )
    assert runs(url, "cancel", run_id, "--reason", "not needed") == (0, f"{run_id}: stopped\n")
    assert runs(url, "list", "--status", "queued") == (0, "there are no such runs\n")
    code, said = runs(url, "requeue", run_id)
    assert code == 1
    assert "has ended" in said
    assert store.run(run_id).status == "stopped"
