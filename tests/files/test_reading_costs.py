"""What reading, viewing and searching files may cost, in processor time and in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.files.call_costs import CallCost, call_cost

LIMIT_S = 1.0
LIMIT_MB = 128
PATH = "/workspace/a"
SHORT_LINES = "\n" * 10_000_000
HONEST = "".join(f"{number} words of a line\n" for number in range(50_000))


def cost_of(folder: Path, text: str, tool: str, arguments: dict[str, Any]) -> CallCost:
    if "file_path" in arguments:
        arguments = {**arguments, "file_path": str(folder / "workspace/a")}
    cost = call_cost({"a": text}, folder, tool, arguments, enough_s=LIMIT_S)
    assert cost.seconds <= LIMIT_S
    assert cost.megabytes <= LIMIT_MB
    return cost


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "some lines": ("read_text_file", {"path": PATH, "start_line": 40_000, "read_lines": 3}),
    "a text": ("search_files", {"text": ""}),
    "a pattern": ("search_files", {"text": "^.*$", "is_regex": True}),
    "a view": ("view_text_file", {"file_path": "", "ranges": [40_000, 40_002]}),
    "an insertion": ("insert_text_file", {"file_path": "", "line_number": 40_000, "content": "new"}),
    "a replacement": ("write_text_file", {"file_path": "", "ranges": [40_000, 40_001], "content": "new"}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("text", [SHORT_LINES, HONEST], ids=["line ends alone", "honest lines"])
def test_a_few_lines_of_many_cost_little(text: str, name: str, tmp_path: Path) -> None:
    cost = cost_of(tmp_path, text, *CALLS[name])
    assert cost.kind == "", cost.text


@pytest.mark.parametrize("call", [("read_text_file", {"path": PATH}), ("view_text_file", {"file_path": ""})])
def test_too_many_lines_are_refused_at_little_cost(call: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    cost = cost_of(tmp_path, SHORT_LINES, *call)
    assert cost.kind == "tool_error"
    assert "The file has 10,000,000 lines: give " in cost.text


SLOW = "(?:a{1,50}){1,50}b"


def test_a_pattern_that_needs_long_for_one_line_is_refused(tmp_path: Path) -> None:
    arguments = {"text": SLOW, "is_regex": True}
    cost = cost_of(tmp_path, "first\n" + "a" * 100_000, "search_files", arguments)
    assert (cost.kind, cost.text) == (
        "limit",
        "/workspace/a: line 2 is too long for this pattern: repeat less in it, or search a text",
    )


def test_a_pattern_that_needs_long_for_many_lines_ends_in_time(tmp_path: Path) -> None:
    arguments = {"text": SLOW, "is_regex": True}
    cost = cost_of(tmp_path, f"{'a' * 1_000}\n" * 1_000, "search_files", arguments)
    assert (cost.kind, cost.text) == (
        "limit",
        "/workspace: the search takes too long: search in a smaller folder, or for a simpler pattern",
    )
    # The control: a simple pattern has the time.
    honest = {"text": "a{1,5}b|a$", "is_regex": True}
    assert cost_of(tmp_path, f"{'a' * 1_000}\n" * 1_000, "search_files", honest).kind == ""
