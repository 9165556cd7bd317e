"""Where users of an index look: the source distribution has the pages and examples, and the README has no dead link."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.architecture.source import ROOT
from tests.patience import PATIENCE_S


def test_the_source_distribution_has_the_pages_and_the_examples(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=4 * PATIENCE_S)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(
        ["git", "ls-files", "docs", "examples"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    assert {"docs/README.md", "docs/built_in/README.md", "examples/openai_agent.py"} <= shipped
    assert {name for name in listed if name} - shipped == set()
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "LICENSE"} <= shipped


def test_the_readme_has_no_link_that_an_index_cannot_follow() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_pages_that_the_readme_names_are_there() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    named = set(re.findall(r"`((?:docs|benchmarks)/[\w/]+\.md|[A-Z]+\.md)`", text))
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
