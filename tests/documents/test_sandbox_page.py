"""The page on limits of the sandbox: its code runs, its table is true, its figures are the code's."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

from tests.architecture.source import ROOT
from toolwire import ToolRegistry
from toolwire.sandbox.admission import LIVE_CAP, QUEUE_CAP
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.zygote import RUNS_PER_ZYGOTE

PAGE = (ROOT / "docs/limitations/sandbox.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
REFUSED = re.findall(r"^\| `(.+)` \| (\w+Error) \|$", PAGE, re.MULTILINE)


@pytest.fixture
def names() -> dict[str, Any]:
    """The names that the page's examples define, run one after the other."""
    found: dict[str, Any] = {"__name__": "page"}
    for block in BLOCKS:
        exec(compile(block, "sandbox.md", "exec"), found)
    return found


@pytest.mark.parametrize(("program", "error"), REFUSED)
def test_what_it_says_cannot_be_done_comes_to_that_error(program: str, error: str) -> None:
    result = ToolRegistry().run_program(program, source_checks=False)
    assert result.error is not None
    assert result.error.type == error


def test_its_table_is_read_whole() -> None:
    assert len(REFUSED) == 10


def test_a_program_learns_what_it_says(names: dict[str, Any]) -> None:
    assert re.fullmatch(r"<module 'math' (from '/.+'|\(built-in\))>\n", names["paths"].stdout)
    assert names["paths"].value == sys.executable
    learned = names["registry"].run_program("dict(random._os.environ)", source_checks=False)
    assert (learned.status, learned.value) == ("finished", {})


def test_a_call_that_its_program_left_is_told_of_as_it_says(names: dict[str, Any]) -> None:
    assert (names["tried"], names["left"].for_model) == (
        [],
        "done\n[not run, because the program ended or gave the call up first: report. Await a call to run it.]",
    )


def test_addresses_are_the_same_in_two_runs() -> None:
    registry = ToolRegistry()
    assert registry.run_program("id(math)").value == registry.run_program("id(math)").value


def test_a_tool_lends_a_program_the_hosts_rights(names: dict[str, Any]) -> None:
    assert names["leaked"].value == "Name:"


def test_its_figures_are_those_of_the_code() -> None:
    limits = Limits()
    assert f"{LIVE_CAP} run at once, {QUEUE_CAP} wait" in PAGE
    assert f"{LIVE_CAP} x {limits.memory_mb} MiB of memory and every processor busy for {limits.cpu_s} s" in PAGE
    assert f"(up to {RUNS_PER_ZYGOTE:,})" in PAGE
    assert limits.calls == 1000
    assert f"`Limits(cleanup_s={limits.cleanup_s:g})`" in PAGE
    assert f"and {limits.outstanding_calls} at once" in PAGE


def test_every_path_that_it_names_exists() -> None:
    paths = re.findall(r"`((?:tests|src|docs)/[\w./-]+)`", PAGE)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
