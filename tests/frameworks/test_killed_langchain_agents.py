"""A process that is killed before LangGraph saves: nothing is paid twice, and each doubt is asked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.frameworks.killed_langchain_agent import resume, run
from toolwire import Store


def paid(folder: Path) -> list[str]:
    return (folder / "paid").read_text().split() if (folder / "paid").exists() else []


def save_approval(folder: Path, out: Any) -> dict[str, Any]:
    """Saves an approval of all that waits, and returns the first request."""
    requests = {asked.id: asked.value["requests"] for asked in out["__interrupt__"]}
    decisions = {
        asked: [{"request_id": request["id"], "verdict": "approve"} for request in of] for asked, of in requests.items()
    }
    (folder / "decisions.json").write_text(json.dumps(decisions))
    return next(iter(requests.values()))[0]


def go_on_and_die(url: str, folder: Path, dies_at: str) -> int:
    script = [sys.executable, "-m", "tests.frameworks.killed_langchain_agent", url, str(folder), dies_at]
    return subprocess.run(script, check=False).returncode


def test_a_doubt_is_asked(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    store = opened()
    save_approval(tmp_path, run(store, tmp_path, {"messages": "Go."}))
    assert go_on_and_die(url, tmp_path, "effect") == -signal.SIGKILL
    assert paid(tmp_path) == ["5"]
    # The decision of the payment is not that of the doubt, given again or not.
    for out in (resume(store, tmp_path), run(store, tmp_path, None)):
        assert "may have run" in save_approval(tmp_path, out)["text"]
        assert paid(tmp_path) == ["5"]
    assert resume(store, tmp_path)["messages"][-1].content == "done: paid 5"
    assert paid(tmp_path) == ["5", "5"]


def test_what_ended_is_not_run_again(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    store = opened()
    save_approval(tmp_path, run(store, tmp_path, {"messages": "Go."}))
    assert go_on_and_die(url, tmp_path, "save") == -signal.SIGKILL
    assert resume(store, tmp_path)["messages"][-1].content == "done: paid 5"
    assert paid(tmp_path) == ["5"]


def test_of_two_equal_calls_with_one_id_the_second_alone_is_in_doubt(
    url: str, opened: Callable[[], Store], tmp_path: Path
) -> None:
    store = opened()
    out = run(store, tmp_path, {"messages": "Go."}, payments=2)
    assert len(out["__interrupt__"]) == 2
    save_approval(tmp_path, out)
    assert go_on_and_die(url, tmp_path, "second") == -signal.SIGKILL
    assert paid(tmp_path) == ["5", "5"]
    for out in (resume(store, tmp_path), run(store, tmp_path, None)):
        [doubt] = out["__interrupt__"]
        assert "may have run" in doubt.value["requests"][0]["text"]
        assert paid(tmp_path) == ["5", "5"]
    save_approval(tmp_path, out)
    told = resume(store, tmp_path)["messages"][-3:-1]
    assert [message.content for message in told] == ["paid 5", "paid 5"]
    assert paid(tmp_path) == ["5", "5", "5"]
