"""Edits of files: where they stand, which line ends they write, and when they are made already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolRegistry
from toolwire.builtin.files.paths import FileRefused
from toolwire.builtin.files.text_edits import PLACES_LIMIT, apply_edits, line_end_at
from toolwire.tools import workspace_tools


def edited(text: str, old: str, new: str) -> str:
    return apply_edits(text, [{"oldText": old, "newText": new}], "/workspace/a")


LINE_ENDS: dict[str, tuple[str, str, str, str]] = {
    "two lines with LF on CRLF": ("a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\n", "a\r\nB\r\nc\r\n"),
    "two lines with CRLF on LF": ("a\nb\nc\n", "a\r\nb\r\n", "a\r\nB\r\n", "a\nB\nc\n"),
    "two lines with CRLF on CRLF": ("a\r\nb\r\nc\r\n", "a\r\nb", "a\r\nB", "a\r\nB\r\nc\r\n"),
    "one line becomes two": ("a\r\nb\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\n"),
    "one line becomes two with CRLF": ("a\nb\n", "b", "b1\r\nb2", "a\nb1\nb2\n"),
    "two lines become one": ("a\r\nb\r\nc\r\n", "a\nb\n", "ab\n", "ab\r\nc\r\n"),
    "a line is added at the end": ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
    "a line is added at the start": ("a\r\nb\r\n", "a", "z\na", "z\r\na\r\nb\r\n"),
    "a line is taken away": ("a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"),
    "a line end alone": ("a\r\nb\r\n", "a\nb", "ab", "ab\r\n"),
    "a line end at the start": ("a\r\nb\r\nc", "\nb\n", "\nB\n", "a\r\nB\r\nc"),
    "a mixed file keeps each line": ("a\r\nb\nc\r\nd\n", "b\nc\n", "b\nC\n", "a\r\nb\nC\r\nd\n"),
    "new lines follow their place": ("a\r\nb\nc\r\nd\n", "b", "b\nx", "a\r\nb\nx\nc\r\nd\n"),
    "new lines follow their other place": ("a\r\nb\nc\r\nd\n", "c", "c\nx", "a\r\nb\nc\r\nx\r\nd\n"),
    "one line without a line end": ("a", "a", "a\nb", "a\nb"),
    "CR alone is a character": ("a\rb\n", "a\rb", "a\rc", "a\rc\n"),
    "an edit of line ends alone": ("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"),
    "an edit of line ends alone, the other way": ("a\nb\n", "a\n", "a\r\n", "a\r\nb\n"),
    "letters of more than two bytes": ("\ufeffä\r\n😀\r\nb", "ä\n😀\n", "ä\n😃\n", "\ufeffä\r\n😃\r\nb"),
}


@pytest.mark.parametrize("name", LINE_ENDS)
def test_lf_and_crlf_are_the_same_for_a_place_and_the_file_keeps_its_own(name: str) -> None:
    text, old, new, after = LINE_ENDS[name]
    assert edited(text, old, new) == after


@pytest.mark.parametrize(
    ("text", "edits", "after"),
    [
        ("a\rb", [("b", "\nb"), ("a\nb", "c")], "c"),
        ("a\r\nb\rc\n", [("c", "\nc"), ("b\nc", "d")], "a\r\nd\n"),
        ("a\r\nb\n", [("a", "a\nx"), ("x\nb", "y\nb"), ("b\n", "b\nz\n")], "a\r\ny\r\nb\nz\n"),
        ("a\r\nb\r\n", [("a\r\n", "a\n"), ("a\nb", "a\nc")], "a\nc\r\n"),
    ],
)
def test_an_edit_works_on_the_line_ends_that_the_edits_before_it_left(
    text: str, edits: list[tuple[str, str]], after: str
) -> None:
    assert apply_edits(text, [{"oldText": old, "newText": new} for old, new in edits], "a") == after


@pytest.mark.parametrize(
    ("text", "at", "end"),
    [
        ("a\r\nb\n", 0, "\r\n"),
        ("a\r\nb\n", 3, "\n"),
        ("a\r\nb", 3, "\r\n"),
        ("a", 0, "\n"),
        ("\n", 0, "\n"),
        ("", 0, "\n"),
    ],
)
def test_a_new_line_gets_the_end_of_its_line_or_of_the_one_before(text: str, at: int, end: str) -> None:
    assert line_end_at(text, at) == end


MADE: list[tuple[str, str, str]] = [
    ("1. Read\n2. Test\n", "2. Write", "2. Test"),
    ("def f():\n    return 2\n", "    return 1\n", "    return 2\n"),
    ("a b c\n", "a", "a b"),
    ("first\nsecond\nthird\n", "first\nthird", "first\nsecond\nthird"),
    ("first\nthird\n", "first\nsecond\nthird", "first\nthird"),
    ("a\r\nB\r\nc\r\n", "a\nb\n", "a\nB\n"),
    ("x = compute(2)\n", "x = compute(1)", "x = compute(2)"),
]


@pytest.mark.parametrize(("text", "old", "new"), MADE)
def test_an_edit_whose_words_around_it_stand_there_is_made_already(text: str, old: str, new: str) -> None:
    assert edited(text, old, new) == text


NOT_MADE: list[tuple[str, str, str]] = [
    ("alpha\nbeta\n", "gamma", "beta"),
    ("alpha\nbeta\n", "gamma\n", "beta\n"),
    ("total = 7\n", "value", "total"),
    ("foo bar\n", "foo barr", "foo"),
    ("import os\n", "import sys, os", "os"),
    ("return x\n", "yield y;", "return x"),
]


@pytest.mark.parametrize(("text", "old", "new"), NOT_MADE)
def test_new_text_that_stands_there_for_another_reason_is_no_made_edit(text: str, old: str, new: str) -> None:
    with pytest.raises(FileRefused) as refused:
        edited(text, old, new)
    line = text.count("\n", 0, text.index(new.rstrip("\n"))) + 1
    assert str(refused.value) == (
        "/workspace/a, edit 1: oldText is not in the file: read the file, and copy the text exactly. "
        f"newText stands in line {line}"
    )


def test_an_absent_text_whose_new_text_is_absent_too_is_told_alone() -> None:
    for new in ("z", "", "a a"):
        with pytest.raises(FileRefused) as refused:
            edited("a\n", "b", new)
        assert str(refused.value) == (
            "/workspace/a, edit 1: oldText is not in the file: read the file, and copy the text exactly"
        )


PLACES: list[tuple[str, str, str]] = [
    ("aaa", "aa", "2 times, in lines 1, 1"),
    ("aaaa\n", "aa", "3 times, in lines 1, 1, 1"),
    ("\n\n\n", "\n\n", "2 times, in lines 1, 2"),
    ("abab\nab\naba", "aba", "2 times, in lines 1, 3"),
    ("a\r\na\r\na\r\n", "a\na", "2 times, in lines 1, 2"),
    ("x\n" * 12, "x", "12 times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
    ("x\n" * (PLACES_LIMIT + 1), "x", f"more than {PLACES_LIMIT:,} times, in lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
]


@pytest.mark.parametrize(("text", "old", "times"), PLACES)
def test_places_that_overlap_are_places(text: str, old: str, times: str) -> None:
    with pytest.raises(FileRefused) as refused:
        edited(text, old, "new")
    assert str(refused.value) == f"/workspace/a, edit 1: oldText stands {times}: give more of its context"


@pytest.fixture
def files(tmp_path: Path) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in workspace_tools(tmp_path):
        registry.register(tool)
    return registry


EDITS = [{"oldText": "a\nb", "newText": "a\nB"}, {"oldText": "c", "newText": "C"}]
WRITTEN: dict[str, Any] = {
    "a list": EDITS,
    "JSON text": json.dumps(EDITS),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_edits_may_be_json_text(name: str, files: ToolRegistry, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\r\nb\r\nc\r\n")
    result = files.invoke("edit_file", {"path": "/workspace/a", "edits": WRITTEN[name]})
    assert (result.error, (tmp_path / "a").read_bytes()) == (None, b"a\r\nB\r\nC\r\n")


@pytest.mark.parametrize("path", ["/workspace/a/", "/workspace/b/a/"])
def test_a_path_of_a_folder_is_no_path_of_a_file(path: str, files: ToolRegistry, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("x")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": path, "content": "x"}),
        ("edit_file", {"path": path, "edits": EDITS}),
        ("read_text_file", {"path": path}),
        ("move_file", {"path": "/workspace/c", "to": path}),
        ("move_file", {"path": path, "to": "/workspace/d"}),
    ]
    for name, arguments in calls:
        assert files.invoke(name, arguments).error == (
            f"{path!r} is the path of a folder: write {path[:-1]!r}, or the path of a file in it"
        )
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


def test_a_path_of_a_folder_lists_and_deletes_it(files: ToolRegistry, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert files.invoke("list_directory", {"path": "/workspace/a/"}).data["entries"] == []
    files.configure(rules=[{"effect": "auto", "tool": "delete_file"}])
    assert files.invoke("delete_file", {"path": "/workspace/a/"}).error is None
    assert list(tmp_path.iterdir()) == []
