"""Paths that models write wrongly: the refusal names the path that is meant, or none."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.builtin.files.paths import FileRefused, read_path


def refusal_of(text: str) -> str:
    with pytest.raises(FileRefused) as caught:
        read_path(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("f.txt", "/workspace/f.txt"),
        ("./f.txt", "/workspace/f.txt"),
        ("notes/f.txt", "/workspace/notes/f.txt"),
        ("workspace/f.txt", "/workspace/f.txt"),
        ("workspace/workspace/f.txt", "/workspace/workspace/f.txt"),
        ("workspace", "/workspace"),
        ("userinput/f.txt", "/userinput/f.txt"),
        ("/Workspace/f.txt", "/workspace/f.txt"),
        ("//workspace/f.txt", "/workspace/f.txt"),
        ("file:///workspace/f.txt", "/workspace/f.txt"),
        ("file:/workspace/f.txt", "/workspace/f.txt"),
        ("file://localhost/workspace/f.txt", "/workspace/f.txt"),
        ("file://workspace/f.txt", "/workspace/f.txt"),
        ("file:///workspace/my%20file.txt", "/workspace/my file.txt"),
        ("FILE:f.txt", "/workspace/f.txt"),
        ("sandbox:/workspace/f.txt", "/workspace/f.txt"),
        ("'/workspace/f.txt'", "/workspace/f.txt"),
        ('"f.txt"', "/workspace/f.txt"),
        ("`userinput/f.txt`", "/userinput/f.txt"),
        (" /workspace/f.txt\n", "/workspace/f.txt"),
        ("workspace\\notes\\f.txt", "/workspace/notes/f.txt"),
        ("\\workspace\\f.txt", "/workspace/f.txt"),
        ("/workspace\\f.txt", "/workspace/f.txt"),
        ("cafe\u0301.txt", "/workspace/caf\u00e9.txt"),
    ],
)
def test_the_refusal_names_the_path_that_is_meant(text: str, meant: str) -> None:
    expected = f"{text!r} does not begin with '/workspace/' or '/userinput/': write {meant!r}"
    assert refusal_of(text) == expected
    assert str(read_path(meant)) == meant


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", ".", "\n", "..", "../f.txt", "workspace/../../etc", "~/f.txt", "/etc/passwd", "/workspaces/f.txt"),
        *("C:\\workspace\\f.txt", "https://example.com/f.txt", "a\x00b", "x" * 300, "file:///etc/passwd", "file://"),
    ],
)
def test_the_refusal_of_what_can_be_no_path_names_none(text: str) -> None:
    assert refusal_of(text) == f"{text!r} does not begin with '/workspace/' or '/userinput/': write such a path"


PIECES = st.sampled_from(
    [*("workspace", "userinput", "/", "\\", "..", ".", "file://", "'", '"', "~", "%20", "%2e%2e", "%00", "a", " ", ":")]
)


@given(st.one_of(st.text(max_size=20), st.lists(PIECES, max_size=8).map("".join)))
def test_any_path_that_a_refusal_names_is_taken(text: str) -> None:
    try:
        read_path(text)
    except FileRefused as error:
        named = re.search(r": write ('.*'|\".*\")$", str(error), re.DOTALL)
        if named is not None:
            read_path(ast.literal_eval(named[1]))
