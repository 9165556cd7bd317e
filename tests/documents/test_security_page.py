"""`SECURITY.md` names a test for each threat, and each of these tests exists."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT

TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
ROWS = [line.strip("|").split(" | ") for line in TEXT.splitlines() if line.startswith("|")]
THREATS = [row for row in ROWS if row[0].strip() != "threat" and not row[0].startswith("---")]


def test_each_threat_has_a_protection_and_a_test_that_exists() -> None:
    assert len(THREATS) >= 60
    for row in THREATS:
        assert len(row) == 3, row
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row[2])
        assert named, row
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text("utf-8"), f"{path}::{name}"


def test_each_threat_stands_once() -> None:
    names = [row[0].strip() for row in THREATS]
    assert len(names) == len(set(names))


def test_the_pages_that_it_names_exist_and_name_it() -> None:
    for path in re.findall(r"`(docs/[\w/]+\.md)`", TEXT):
        assert (ROOT / path).is_file(), path
    for path in ("README.md", "CONTRIBUTING.md", "docs/README.md"):
        assert "SECURITY.md" in (ROOT / path).read_text("utf-8"), path
