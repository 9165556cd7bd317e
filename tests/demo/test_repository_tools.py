"""The example's tools do their described task and stay inside the repository."""

from __future__ import annotations

import doctest
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.demo.test_replies import EXAMPLE, load
from toolwire import ToolRegistry

tools = load("tools")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to read, beside one that must not be read."""
    root = tmp_path / "root"
    files = {
        "a.txt": "one\ntwo\nthree",
        "src/b.py": "Two = 2\n",
        "src/deep/c.py": "",
        ".hidden/d.py": "two\n",
        "src/__pycache__/e.py": "two\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "binary.bin").write_bytes(b"two\xff\n")
    (tmp_path / "secret.txt").write_text("two\n", encoding="utf-8")
    (tmp_path / "root_beside").mkdir()
    (tmp_path / "root_beside" / "secret.txt").write_text("two\n", encoding="utf-8")
    monkeypatch.setenv("REPOSITORY_ROOT", str(root))
    return root


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**", ["a.txt", "binary.bin", "src/b.py", "src/deep/c.py"]),
        ("*.py", ["src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("src/**", ["src/b.py", "src/deep/c.py"]),
        ("?.txt", ["a.txt"]),
        ("[a].txt", []),
        ("../*", []),
        ("/etc/*", []),
        ("", []),
    ],
)
def test_files_are_listed_by_pattern(root: Path, pattern: str, found: list[str]) -> None:
    assert tools.list_files(pattern) == found


@pytest.mark.parametrize(
    ("lines", "text"),
    [((1, None), "one\ntwo\nthree"), ((2, 2), "two\n"), ((3, 9), "three"), ((4, None), ""), ((2, 1), "")],
)
def test_some_lines_of_a_file_are_read(root: Path, lines: tuple[int, int | None], text: str) -> None:
    assert tools.read_file("a.txt", *lines) == text


def test_lines_are_found_whatever_their_case_and_no_more_than_asked_for(root: Path) -> None:
    assert tools.search("TWO") == [
        {"path": "a.txt", "line": 2, "text": "two"},
        {"path": "src/b.py", "line": 1, "text": "Two = 2"},
    ]
    assert tools.search("two", limit=1) == [{"path": "a.txt", "line": 2, "text": "two"}]
    assert tools.search("two", pattern="*.py") == [{"path": "src/b.py", "line": 1, "text": "Two = 2"}]


def test_lines_are_counted(root: Path) -> None:
    assert [tools.count_lines(path) for path in ("a.txt", "src/b.py", "src/deep/c.py")] == [3, 1, 0]


READERS: list[Callable[[str], Any]] = [tools.read_file, tools.count_lines, tools.git_log]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "path", ["..", "../secret.txt", "/etc/passwd", "src/../../secret.txt", "../root_beside/secret.txt"]
)
def test_nothing_outside_is_read(root: Path, read: Callable[[str], Any], path: str) -> None:
    with pytest.raises(PermissionError) as refused:
        read(path)
    assert str(refused.value) == f"{path!r} lies outside the repository: write a path relative to it"


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", ".."])
def test_a_link_leads_nowhere_outside(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    (root / "src" / "inner").symlink_to("../a.txt")
    with pytest.raises(PermissionError):
        tools.read_file("link")
    assert tools.read_file("src/inner") == "one\ntwo\nthree"
    assert "link" not in tools.list_files()
    assert [match["path"] for match in tools.search("two")] == ["a.txt", "src/b.py"]


# In Python's own words.
NUL = "embedded null byte" if sys.version_info < (3, 13) else "lstat: embedded null character in path"


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("none.txt", FileNotFoundError, "there is no 'none.txt': list_files() tells what there is"),
        ("src", IsADirectoryError, "'src' is a folder: list_files('src/**') tells what is in it"),
        ("binary.bin", ValueError, "'binary.bin' is no text in UTF-8"),
        ("large.txt", ValueError, "'large.txt' is no file of at most 2,000,000 bytes"),
        ("pipe", ValueError, "'pipe' is no file of at most 2,000,000 bytes"),
        ("nul\0l", ValueError, NUL),
    ],
)
def test_unreadable_input_is_reported(root: Path, path: str, error: type[Exception], message: str) -> None:
    (root / "large.txt").write_bytes(b"x" * 2_000_001)
    os.mkfifo(root / "pipe")
    with pytest.raises(error) as raised:
        tools.read_file(path)
    assert str(raised.value) == message


def test_an_empty_query_is_refused(root: Path) -> None:
    with pytest.raises(ValueError, match=r"^the query is empty: write the text to look for$"):
        tools.search(" ")


def test_bounds_are_enforced_before_the_function_runs(root: Path) -> None:
    registry = ToolRegistry()
    registry.register(tools.search)
    result = registry.invoke("search", {"query": "two", "limit": 501})
    assert result.failure is not None
    assert (result.failure.kind, result.failure.path) == ("invalid_arguments", "limit")


def test_the_examples_in_the_docstrings_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPOSITORY_ROOT", str(EXAMPLE / "sample"))
    runner = doctest.DocTestRunner()
    for name in ("list_files", "read_file", "search", "count_lines"):
        for example in doctest.DocTestFinder().find(getattr(tools, name), name, globs=vars(tools)):
            runner.run(example)
    assert (runner.summarize(verbose=False).failed, runner.tries) == (0, 4)


def test_without_git_there_is_no_history(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(tools.GitError) as raised:
        tools.git_log()
    assert str(raised.value) == "git cannot be asked: [Errno 2] No such file or directory: 'git'"
