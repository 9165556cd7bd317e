"""The documents at the top name only files and targets that exist."""

from __future__ import annotations

import re

import pytest

from tests.architecture.source import ROOT

DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
PATH = re.compile(r"`((?:src|tests|examples|benchmarks|scripts|docs)/[\w./-]+)`")
TARGET = re.compile(r"`make ([a-z-]+)`")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_a_document_names_exists(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert [path for path in PATH.findall(text) if "NAME" not in path and not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_make_target_that_a_document_names_exists(name: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert [target for target in TARGET.findall((ROOT / name).read_text("utf-8")) if target not in targets] == []


def test_the_hooks_of_a_commit_are_the_steps_of_lint() -> None:
    hooks = re.findall(r"entry: \.venv/bin/(.+)", (ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    steps = re.findall(r"\$\(BIN\)/([\w -]+?)(?: \.| \$.*)?\n", recipe[1])
    assert hooks == steps
    assert len(hooks) == 3


def test_lock_files_name_no_index() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        assert re.search(r"https?://|--index|--find-links|file:", path.read_text("utf-8")) is None, path.name
