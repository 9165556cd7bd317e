"""The page on many tools runs, and gives the figures that a run gives."""

from __future__ import annotations

import re

import pytest
from benchmarks.search import prompt_tokens, recalls
from benchmarks.tokens import quick_tokenizer

from tests.architecture.source import ROOT

PAGE = (ROOT / "docs/tools.md").read_text("utf-8")
ROWS = {
    "English queries": "test, english, names, descriptions, parameters",
    "Chinese queries": "test, chinese, names, descriptions, parameters",
    "the 40 English queries it was made with": "development, english, names, descriptions, parameters",
    "the 24 Chinese queries it was made with": "development, chinese, names, descriptions, parameters",
    "English queries, looking at names alone": "test, english, names alone",
    "Chinese queries, looking at names alone": "test, chinese, names alone",
}
SLACK = 0.02
"""The share of a token count by which a figure may have moved before the page must be written again."""


def cells(row: str) -> list[str]:
    line = re.search(rf"^\| {re.escape(row)} \| (.+) \|$", PAGE, re.MULTILINE)
    assert line is not None, row
    return line[1].split(" | ")


def test_the_example_gives_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(block[0], "docs/tools.md", "exec"), names)
    session = names["session"]
    assert [tool.name for tool in session.tools] == ["list_events", "search_tools"]  # type: ignore[attr-defined]
    assert capsys.readouterr().out.startswith("1 tool:\n\ndef send_email(to: str, ")
    assert len(block) == 1


def test_the_page_says_how_well_tools_are_found() -> None:
    measured = recalls()
    said = {row: cells(row) for row in ROWS}
    assert said == {
        row: [f"{share:.0%}".replace("%", " %") for share in measured[what].values()] for row, what in ROWS.items()
    }


@pytest.mark.parametrize("protocol", ["attp", "json", "openai"])
def test_the_page_says_what_the_search_saves(protocol: str) -> None:
    said = [int(cell.replace(",", "")) for cell in cells(f"`{protocol}`")]
    measured = prompt_tokens(protocol, quick_tokenizer()["o200k"])
    assert [abs(one - other) <= SLACK * other for one, other in zip(said, measured, strict=True)] == [True] * 3


def test_every_path_and_target_that_the_page_names_exists() -> None:
    assert [path for path in re.findall(r"`((?:tests|src|docs)/[\w./-]+)`", PAGE) if not (ROOT / path).exists()] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert [target for target in re.findall(r"`make ([a-z-]+)`", PAGE) if target not in targets] == []
