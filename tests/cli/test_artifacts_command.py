"""The artifacts of a store on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, run_here
from toolwire import Store
from toolwire.tools import ArtifactManager


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = f"{tmp_path}/s.db"
    with Store.open(f"sqlite:///{path}") as store:
        artifacts = ArtifactManager(store, namespace="c-17")
        artifacts.create("plan", "1. Read\n2. Write\n", title="The plan", content_type="text/markdown")
        artifacts.update("plan", "2. Write", "2. Test")
        artifacts.create("data", "\x1b[31m{}", content_type="application/json")
    return path


def artifacts(db: str, *words: str, namespace: str = "c-17") -> Ended:
    return run_here("artifacts", *words, "--namespace", namespace, "--store", db)


def test_lists_show_the_newest_versions_and_the_history(db: str) -> None:
    lines = artifacts(db, "list").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["ID", "VERSION"], ["data", "1"], ["plan", "2"]]
    assert lines[2].endswith("The plan")
    assert [row["version"] for row in json.loads(artifacts(db, "history", "plan", "--json").stdout)] == [1, 2]
    assert artifacts(db, "list", namespace="c-18") == Ended(
        code=0, stdout="", stderr="the namespace 'c-18' has no artifacts\n"
    )


def test_a_version_is_shown_and_compared(db: str) -> None:
    assert artifacts(db, "show", "plan").stdout.strip() == "1. Read\n2. Test"
    assert artifacts(db, "show", "plan", "--version", "1").stdout.strip() == "1. Read\n2. Write"
    assert json.loads(artifacts(db, "show", "plan", "--json").stdout)["content"] == "1. Read\n2. Test\n"
    assert artifacts(db, "diff", "plan", "1").stdout.splitlines()[-2:] == ["-2. Write", "+2. Test"]
    assert artifacts(db, "diff", "plan", "1", "1").stderr == "the versions are equal\n"


def test_an_export_names_the_files(db: str, tmp_path: Path) -> None:
    ended = artifacts(db, "export", str(tmp_path / "out"))
    assert ended.stdout.splitlines() == [str(tmp_path / "out" / name) for name in ("data.json", "plan.md")]
    assert ended.stderr == "2 files written\n"
    assert (tmp_path / "out" / "plan.md").read_text() == "1. Read\n2. Test\n"
    (tmp_path / "taken").touch()
    wrong = artifacts(db, "export", str(tmp_path / "taken"))
    assert (wrong.code, wrong.stderr) == (1, f"toolwire: {tmp_path}/taken cannot be written: File exists\n")


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("show", "nope"), 1, "there is no artifact 'nope'. There are 'data', 'plan'."),
        (("show", "plan", "--version", "7"), 1, "and no version 7"),
        (("diff", "plan", "7"), 1, "and no version 7"),
        (("history", "nope"), 1, "there is no artifact 'nope'"),
    ],
)
def test_what_is_not_there_is_said(db: str, words: tuple[str, ...], code: int, why: str) -> None:
    ended = artifacts(db, *words)
    assert (ended.code, ended.stdout) == (code, "")
    assert why in ended.stderr


def test_a_store_that_is_not_there_and_a_missing_namespace_are_wrong_usage(tmp_path: Path, db: str) -> None:
    assert artifacts(f"{tmp_path}/none.db", "list").code == 2
    assert run_here("artifacts", "list", "--store", db).code == 2
