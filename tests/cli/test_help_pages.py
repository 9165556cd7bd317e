"""The help page of every command: it fits narrow and wide terminals, and says what there is to say."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer

from tests.cli.command_line import run_here, run_process
from toolwire.cli.main import app


def commands() -> Iterator[tuple[str, ...]]:
    """Yields the words of each command and command group."""

    def below(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        names = command.list_commands(None) if hasattr(command, "list_commands") else ()
        for name in names:
            yield from below(command.get_command(None, name), (*words, name))

    yield from below(typer.main.get_command(app), ())


ALL = list(commands())
ID = [" ".join(words) or "toolwire" for words in ALL]


def test_there_are_as_many_commands_as_the_page_says() -> None:
    assert {("init",), ("log", "tree"), ("policy", "check"), ("mcp", "list"), ("approvals", "answer")} <= set(ALL)
    assert len(ALL) > 30


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("words", ALL, ids=ID)
def test_no_line_is_wider_than_the_terminal(
    words: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ended = run_here(*words, "--help")
    assert (ended.code, ended.stderr) == (0, "")
    assert [line for line in ended.stdout.splitlines() if len(line) > columns] == []


@pytest.mark.parametrize("words", ALL, ids=ID)
def test_a_page_has_a_sentence_and_no_summary_is_cut(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = run_here(*words, "--help").stdout
    usage, _, rest = page.partition("\n\n")
    assert usage.startswith(" ".join(["Usage: toolwire", *words]))
    assert rest.strip()[0].isupper()
    summaries = page.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert [line for line in summaries if line.endswith("...")] == []


def test_the_first_page_names_the_first_three_things_to_do() -> None:
    ended = run_process()
    assert (ended.code, ended.stdout) == (2, "")
    page = ended.stderr
    lines = page.partition("Start here:\n")[2].splitlines()[:3]
    assert [re.split("  +", line)[1] for line in lines] == [
        "toolwire init my_agent",
        "toolwire tools --tools tools.py",
        "toolwire COMMAND --help",
    ]
