"""The page on testing: its examples run, one after the other, with the results in their comments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT

PAGE = (ROOT / "docs" / "testing.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_give_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {"__name__": "testing_page"}
    for block in BLOCKS:
        exec(compile(block, "docs/testing.md", "exec", dont_inherit=True), found)
    (said,) = re.findall(r"^unknown  # '(.*)'$", PAGE, re.MULTILINE)
    assert found["unknown"] == said
    assert found["answer"] == "warm\n"
    assert "answer  # 'warm\\n'" in PAGE
    assert (tmp_path / "weather.json").exists()
    assert len(BLOCKS) == 3
