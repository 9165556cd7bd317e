"""The page on protocols has the figures of a run, and names only things that exist."""

from __future__ import annotations

import re
from typing import Any

import pytest
from benchmarks.tokens import call_costs, lookup_costs, prompt_costs, quick_tokenizer

from tests.architecture.source import ROOT
from toolwire.protocols import names

PAGE = (ROOT / "docs/protocols.md").read_text("utf-8")
SLACK = 3
"""Points by which a figure may have moved before the page must be written again."""


def rows(heading: str) -> dict[str, list[int]]:
    """The table below a heading: each first cell, and the percentages behind it."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.+) \|$", section, re.MULTILINE)
    cells = [[cell.strip() for cell in line.split(" | ")] for line in lines]
    return {first: [int(found) for found in re.findall(r"([+-]?\d+) %", " | ".join(rest))] for first, *rest in cells}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("`json`, in its tags", "json, in <tool_call>"),
        ("`xml`", "xml"),
        ("`attp` without a thought", "attp, no thought"),
        ("`attp` with a thought of one line, its default", "attp, one-line thought"),
        ("`attp` with the four-point thought", "attp, four-line thought"),
        ("JSON with `\\uXXXX` escapes", "JSON with \\uXXXX escapes"),
    ],
)
def test_the_page_says_what_one_call_costs(row: str, name: str) -> None:
    measured = 100 * call_costs(quick_tokenizer())[name]["o200k"] - 100
    assert abs(rows("What a call costs")[row][0] - measured) <= SLACK


@pytest.mark.parametrize("number", [1, 3, 10, 30])
def test_the_page_says_what_many_calls_cost(number: int) -> None:
    costs = lookup_costs(quick_tokenizer(), number)

    def change(name: str, what: str) -> float:
        return 100 * costs[name][what]["o200k"] / costs["json, one call a turn"][what]["o200k"] - 100

    measured = [
        change("json, parallel calls", "read"),
        change("attp, one program", "read"),
        change("attp, one program", "written"),
    ]
    said = rows("What many calls cost")[str(number)]
    assert [abs(one - other) <= SLACK for one, other in zip(said, measured, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("`json`", "json"),
        ("`xml`", "xml"),
        ("`attp`, full stubs (the default)", "attp"),
        ('`attp`, `style="compact"`', "attp, compact"),
    ],
)
def test_the_page_says_what_a_hundred_tools_cost(row: str, name: str) -> None:
    assert abs(rows("What tools cost")[row][0] - 100 * prompt_costs(quick_tokenizer())[name]["o200k"]) <= SLACK


def test_the_page_advises_on_every_protocol() -> None:
    table = PAGE.partition("| take | when |")[2].partition("\n\n")[0]
    first = " ".join(re.findall(r"^\| (.+?) \|", table, re.MULTILINE))
    assert sorted(re.findall(r"`([a-z-]+)`", first)) == sorted(names())


def test_the_examples_run_and_give_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "protocols_page"}
    blocks = re.findall(r"^```python\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    encoded, tagged, own_tag, prompt, in_text, shown = blocks
    for block in (encoded, tagged):
        exec(compile(block, "docs/protocols.md", "exec", dont_inherit=True), names)
        assert capsys.readouterr().out == f"{block.rpartition('# ')[2].rstrip()}\n"
    exec(compile(own_tag, "docs/protocols.md", "exec", dont_inherit=True), names)
    assert re.findall(r"# (.+)", own_tag) == capsys.readouterr().out.splitlines()
    exec(compile(prompt, "docs/protocols.md", "exec", dont_inherit=True), names)
    assert names["prompt"].splitlines()[1] == "search(query: string): Searches the catalogue."
    exec(compile(in_text, "docs/protocols.md", "exec", dont_inherit=True), names)
    assert re.findall(r"# (.+)", in_text) == capsys.readouterr().out.splitlines()
    exec(compile(shown, "docs/protocols.md", "exec", dont_inherit=True), names)
    said = shown.partition(".message)\n")[2]
    assert re.sub("^# ?", "", said, flags=re.MULTILINE) == capsys.readouterr().out


def test_every_path_and_target_that_the_page_names_exists() -> None:
    assert [path for path in re.findall(r"`((?:tests|src|docs)/[\w./-]+)`", PAGE) if not (ROOT / path).exists()] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert [target for target in re.findall(r"`make ([a-z-]+)`", PAGE) if target not in targets] == []
