"""Programs of submitted runs run at runners, and a worker without one takes no run."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.fleet.app import call, lines
from tests.fleet.runners import RunnerProcess
from tests.fleet.test_worker import Start, page, session
from tests.patience import PATIENCE_S, until
from toolwire.journal.store import Store


def test_runs_are_taken_once_a_runner_can_be_used(
    store: Store, start_worker: Start, done_file: Path, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"unix:{tmp_path}/runner"
    worker = start_worker("--runner", address, "--trust", "kernel+namespaces", "--health", f"127.0.0.1:{port}")
    made = session(store)
    run_id = made.run_submit(call("code_execution", code="note(name='a')"))
    reason = f"no runner can be used: {address}: No such file or directory"
    until(lambda: page(port, "readyz") == (503, f"{reason}\n"))
    assert f"no run is taken yet: {reason}" in worker.said()
    assert store.run(run_id).status == "queued"
    runner = RunnerProcess(tmp_path / "runner said", "--listen", address)
    try:
        result = made.run_wait(run_id, timeout_s=PATIENCE_S).results[0]
        assert result.metadata["isolation"]["report"]["claimed"].endswith(f"by the runner {address}")
        assert lines(done_file) == ["note a"]
        until(lambda: page(port, "readyz") == (200, "ready\n"))
        assert "toolwire_runner_places 128\n" in page(port, "metrics")[1]
        runner.send(signal.SIGTERM)
        assert runner.wait() == 0
        # It says nothing of the connections that looked whether it is there.
        assert len(runner.said().splitlines()) == 2
        until(lambda: page(port, "readyz")[0] == 503)
    finally:
        runner.kill()


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("--runner", "r1"), "'r1' is not the address of a runner: write HOST:PORT, or unix:PATH"),
    (("--runner", "r1:8443"), "r1:8443 needs mutual TLS"),
    (("--runner", "r1:8443", "--insecure"), "others than this machine reach r1:8443"),
    (("--cert", "w.pem"), "give a list of addresses"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_wrong_runners_are_refused_in_one_line(options: tuple[str, ...], said: str, start_worker: Start) -> None:
    code, text = start_worker(*options).wait()
    assert code == 2
    assert said in text
    assert "Traceback" not in text
