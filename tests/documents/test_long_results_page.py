"""The page on long results: its examples run, one after the other, with the results in their comments."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.architecture.source import ROOT
from toolwire.builtin.background_calls import WAIT_LIMIT_S
from toolwire.facade.background import KEPT_LIMIT, RUNNING_LIMIT
from toolwire.journal.spill import BYTES_LIMIT, ENTRIES_LIMIT

PAGE = (ROOT / "docs" / "long_results.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_give_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "long_results_page"}
    for block in BLOCKS:
        exec(compile(block, "docs/long_results.md", "exec", dont_inherit=True), names)
    said = "\n".join(line for block in BLOCKS for line in re.findall(r"(?:^|  )# (.*)$", block, re.MULTILINE))
    assert capsys.readouterr().out == f"{said}\n"
    assert len(BLOCKS) == 2


def test_the_page_gives_the_limits() -> None:
    for said in (
        f"{BYTES_LIMIT // 1024 // 1024} MiB and {ENTRIES_LIMIT} results",
        f"{RUNNING_LIMIT} run at once",
        f"{KEPT_LIMIT} results are kept",
        f"wait up to {WAIT_LIMIT_S} s",
    ):
        assert said in PAGE
