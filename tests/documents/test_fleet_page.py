"""The blocks of docs/fleet.md run: one process submits, and a worker started as the page says answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.documents.pages import blocks_of, run_blocks, text_of
from tests.fleet.conftest import bare_url as bare_url
from tests.fleet.conftest import server as server
from tests.patience import PATIENCE_S
from toolwire.fleet.figures import Figures

PAGE = "docs/fleet.md"
REPLY = "<tool_call><name>look_up</name><params><name>tea</name></params></tool_call>"


def test_a_worker_started_as_the_page_says_answers(bare_url: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(blocks_of(PAGE)[0])
    commands = re.findall(r"^toolwire (worker .*?)(?: +#.*)?$", text_of(PAGE), re.MULTILINE)
    migrate, work = ([*command.replace("postgresql://user@host/database", bare_url).split()] for command in commands)
    work = work[: work.index("--health")]
    toolwire = [sys.executable, "-m", "toolwire"]
    subprocess.run([*toolwire, *migrate], cwd=tmp_path, check=True, timeout=PATIENCE_S)
    worker = subprocess.Popen([*toolwire, *work], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        assert run_blocks(PAGE)["ask"](bare_url, REPLY) == "tea: found"
    finally:
        worker.terminate()
        assert worker.wait(PATIENCE_S) == 0


def test_the_page_names_each_figure() -> None:
    shown = set(re.findall(r"^# TYPE (\w+)", Figures(places=1).text(), re.MULTILINE))
    named = set(re.findall(r"`(toolwire_\w+)`", text_of(PAGE)))
    assert {name.removesuffix("_total") for name in named} == shown
