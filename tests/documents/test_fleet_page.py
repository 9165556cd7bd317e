"""The blocks and commands of docs/fleet.md, docs/fleet_engines.md and docs/fleet_running.md run as they are written.

tests/fleet/test_celery.py runs the files for Celery.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.documents.pages import blocks_of, files_of, run_blocks, text_of
from tests.fleet.app import call, lines, session_for, tools
from tests.fleet.commands import parse_command
from tests.fleet.conftest import bare_url as bare_url
from tests.fleet.conftest import done_file as done_file
from tests.fleet.conftest import server as server
from tests.fleet.runners import RunnerProcess
from tests.fleet.test_deploy import check_kubernetes
from tests.forks import forked
from tests.patience import PATIENCE_S, until
from toolwire import Session, Store
from toolwire.fleet import ProcrastinateQueue
from toolwire.fleet.figures import Figures
from toolwire.fleet.runner_server import PLACES

PAGE, ENGINES, RUNNING = "docs/fleet.md", "docs/fleet_engines.md", "docs/fleet_running.md"
REPLY = "<tool_call><name>look_up</name><params><name>tea</name></params></tool_call>"
URL = "postgresql://user@host/database"


def shell_blocks(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The words of each command of toolwire in the shell blocks of a page."""
    return [
        shlex.split(line, comments=True)[1:]
        for block in shell_blocks(page)
        for line in block.splitlines()
        if line.startswith("toolwire ")
    ]


def test_a_worker_started_as_the_page_says_answers(bare_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(blocks_of(PAGE)[0])
    migrate, work = (
        [word.replace(URL, bare_url) for word in words] for words in commands(PAGE) if words[0] == "worker"
    )
    work = work[: work.index("--health")]
    toolwire = [sys.executable, "-m", "toolwire"]
    subprocess.run([*toolwire, *migrate], cwd=tmp_path, check=True, timeout=PATIENCE_S)
    worker = subprocess.Popen([*toolwire, *work], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        assert run_blocks(PAGE)["ask"](bare_url, REPLY) == "tea: found"
    finally:
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("words", [*commands(PAGE), *commands(RUNNING)], ids=" ".join)
def test_each_command_is_one_that_toolwire_has(words: list[str]) -> None:
    parse_command(words)


def test_the_page_names_each_figure() -> None:
    shown = set(re.findall(r"^# TYPE (\w+)", Figures(places=1, runner_places=1).text(), re.MULTILINE))
    named = set(re.findall(r"`(toolwire_\w+)`", text_of(RUNNING)))
    assert {name.removesuffix("_total") for name in named} == shown


def test_the_periodic_task_of_the_page_submits(bare_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("\n".join(blocks_of(PAGE)))
    file = files_of(PAGE)["schedule.py"]
    assert '"0 6 * * *"' in file
    # The sixth column is the second.
    (tmp_path / "schedule.py").write_text(file.replace('"0 6 * * *"', '"* * * * * *"'))
    ProcrastinateQueue().migrate(bare_url)
    work = next(block for block in shell_blocks(PAGE) if block.startswith("procrastinate ")).split()
    worker = subprocess.Popen(
        [sys.executable, "-m", *work],
        cwd=tmp_path,
        env={**os.environ, "STORE_URL": bare_url, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        stderr=subprocess.DEVNULL,
    )
    try:
        with Store.open(bare_url) as store:
            until(lambda: len(store.ready()) >= 2)
            assert {run.conversation for run in store.ready()} == {"reports"}
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(PATIENCE_S)


def test_the_job_of_kubernetes_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    (job,) = re.findall(r"^```yaml\n(.*?)^```$", text_of(PAGE), re.MULTILINE | re.DOTALL)
    file.write_text(job)
    assert check_kubernetes(file).returncode == 0


def work(url: str) -> None:
    """Works as the page does."""
    run_blocks(ENGINES)["work"](url, session_for)


def test_the_bare_loop_ends_each_run(tmp_path: Path, done_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DONE_FILE", str(done_file))
    monkeypatch.setenv("TOOLWIRE_KEY", bytes(32).hex())
    url = f"sqlite:///{tmp_path}/runs.db"
    loop = forked(work, url)
    try:
        with Store.open(url) as store:
            session = Session(tools(), protocol="openai", store=store)
            for name in ("a", "b"):
                session.run_wait(session.run_submit(call("note", name=name)), timeout_s=PATIENCE_S)
    finally:
        loop.kill()
        loop.join()
    assert lines(done_file) == ["note a", "note b"]


def test_each_file_for_an_engine_can_be_read() -> None:
    files = files_of(ENGINES)
    assert [*files] == [
        "store.py",
        *(f"{engine}_runs.py" for engine in ("celery", "temporal", "ray", "dramatiq", "docket")),
    ]
    for name, text in files.items():
        compile(text, name, "exec")
        assert len(text.splitlines()) <= 30


def test_a_runner_with_certificates_made_as_the_page_says_runs_a_program(tmp_path: Path) -> None:
    make = next(block for block in shell_blocks(RUNNING) if block.startswith("openssl "))
    make = make.replace("DNS:$name", "IP:127.0.0.1")
    subprocess.run(["sh", "-e", "-c", make], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S)
    options = next(words for words in commands(RUNNING) if words[0] == "runner")[1:]
    files = [str(tmp_path / word) if word.endswith((".pem", ".key")) else word for word in options]
    runner = RunnerProcess(tmp_path / "said", *(word.replace("0.0.0.0:8443", "127.0.0.1:0") for word in files))
    try:
        cert, key, ca = (str(tmp_path / name) for name in ("worker.pem", "worker.key", "ca.pem"))
        assert run_blocks(RUNNING)["run_elsewhere"]([runner.address], cert, key, ca) == 12
    finally:
        runner.kill()


def test_the_page_says_how_many_programs_a_runner_takes() -> None:
    assert f"It takes {PLACES} programs at a time." in text_of(RUNNING)


def test_each_line_that_a_failure_looks_like_is_one_that_toolwire_says() -> None:
    section = text_of(RUNNING).partition("## What failures look like\n")[2].partition("\n## ")[0]
    looks = [row.split("|")[1] for row in section.splitlines() if row.startswith("| ")]
    said = [line for look in looks for line in re.findall(r"`(.+?)`", look) if " " in line]
    source = "\n".join(file.read_text("utf-8") for file in (ROOT / "src/toolwire").rglob("*.py"))
    # Names and numbers are put in when the line is said.
    given = r"\bR\b|URL|HOST|\d+ s|'process'|\.\.\.|: reason"
    parts = [part.strip(" ():") for line in said for part in re.split(given, line)]
    assert len(said) >= 9
    assert [part for part in parts if part not in source] == []


def test_a_principal_keeps_its_store() -> None:
    store_of = run_blocks(RUNNING)["store_of"]
    chosen = {name: store_of(name, ["a", "b", "c"]) for name in map(str, range(100))}
    assert set(chosen.values()) == {"a", "b", "c"}
    assert chosen == {name: store_of(name, ["a", "b", "c"]) for name in chosen}
