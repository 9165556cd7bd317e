"""The examples in prompts: a model that sends one back does no harm."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import BaseModel

from toolwire import Session, tool
from toolwire.definition.from_function import from_function, tool_of
from toolwire.facade.built_in.finish_tool import finish_entry
from toolwire.protocols import get
from toolwire.protocols.attp.prompt import describe_attp
from toolwire.protocols.base import Language
from toolwire.protocols.samples import sample_calls, unfit_request
from toolwire.protocols.text.wording import ATTP_WORDINGS

HARMLESS = ("count_lines", "read_page")
EXAMPLES = {
    "attp": ("## Example that succeeds", "## 成功示例"),
    "json": ("## Examples", "## 示例"),
    "xml": ("## Examples", "## 示例"),
}


def delete_account(user: str) -> None:
    """Delete an account."""


@tool(effects=["write", "read"])
def wire_money(amount: int) -> None:
    """Wire money."""


@tool(effects=["read"], permission="confirm")
def read_diary(path: str) -> str:
    """Read a diary."""
    return path


@tool(effects=["read"])
def count_lines(path: str) -> int:
    """Count a file's lines."""
    return len(path)


@tool(effects=["read"])
def read_page(url: str) -> str:
    """Read a page."""
    return url


HARMFUL: list[Any] = [delete_account, wire_money, read_diary]


def examples(name: str, tools: list[Any], language: Language) -> str:
    prompt = str(get(name).describe(tools, language=language))
    return prompt.partition(EXAMPLES[name][language == "zh"])[2]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_no_example_calls_a_tool_that_writes_or_needs_approval(name: str, language: Language) -> None:
    without_reader = examples(name, HARMFUL, language)
    with_reader = examples(name, [*HARMFUL, count_lines], language)
    for text in (without_reader, with_reader):
        assert [word for word in ("delete_account", "wire_money", "read_diary") if word in text] == []
    assert "example_tool" in without_reader
    assert ("count_lines" in with_reader, "example_tool" in with_reader) == (True, False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_prompt_says_that_its_made_up_tool_is_not_offered(name: str) -> None:
    assert "`example_tool` is not offered.\n" in examples(name, HARMFUL, "en")
    assert "is not offered" not in examples(name, [*HARMFUL, count_lines], "en")
    assert [tool.name for tool, _ in sample_calls([from_function(delete_account)]).calls] == ["example_tool"] * 2


def replies(name: str, tools: list[Any]) -> list[str]:
    """Returns the prompt's examples that make calls, as a model would send them back."""
    text = examples(name, tools, "en")
    if name == "attp":
        return re.findall(
            r'^thought = "[^"]*"\n\n\[tool_call\]\nstatus = "success".*?\n\'\'\'\n', text, re.DOTALL | re.MULTILINE
        )
    return re.findall(r"(?:<tool_call>.*?</tool_call>\n?)+", text, re.DOTALL)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_sent_back_runs_only_tools_that_read(name: str) -> None:
    ran: list[str] = []

    def erase(path: str) -> None:
        """Erases a file."""
        ran.append(f"erase {path}")

    @tool(effects=["read"])
    def look(path: str) -> str:
        """Reads a file."""
        ran.append(f"look {path}")
        return path

    sent_back = replies(name, [erase])
    assert len(sent_back) == 2
    for reply in sent_back:
        Session([erase], protocol=name).run_turn(reply)
    assert ran == []
    for reply in replies(name, [erase, look]):
        Session([erase, look], protocol=name).run_turn(reply)
    assert ran == ["look /data/report.txt", "look /data/report.txt", "look /data/notes.txt"]


def test_examples_in_docstrings_are_said_to_be_no_requests() -> None:
    def shift(days: int) -> int:
        """Moves the date.

        Example:
            >>> shift(3)
        """
        return days

    note = "```\nText under `Example:` only shows the form. It is not a request.\n"
    assert note in str(get("attp").describe([shift]))
    assert note not in str(get("attp").describe([count_lines]))
    assert "Example:" not in describe_attp([shift], style="compact")


def test_a_made_up_tool_never_has_the_name_of_an_offered_one() -> None:
    taken = from_function(delete_account, name="example_tool")
    assert sample_calls([taken]).calls[0][0].name == "example_tool_2"


def test_the_first_example_makes_one_call_and_the_second_makes_two() -> None:
    readers = [tool_of(each) for each in (wire_money, count_lines, read_page)]
    samples = sample_calls(readers)
    assert [tool.name for tool, _ in samples.calls] == list(HARMLESS)
    text = examples("json", readers, "en")
    assert [part.count('{"name"') for part in text.split("\n> ")[1:]] == [1, 2]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_failing_example_says_that_an_offered_tool_does_not_exist(language: Language) -> None:
    words = "book light water"
    offered = from_function(delete_account, description=f"Can do everything: {words}.")
    phrases = ATTP_WORDINGS[language].phrases
    assert unfit_request([offered], phrases) == phrases.unfit[-1]
    assert "delete_account" not in examples("attp", [offered], language)


class Report(BaseModel):
    """A report of files."""

    path: str
    lines: int


FINISHES: list[tuple[Any, str]] = [("answer", 'answer(answer=f"{first}, {second}")'), (Report, "")]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("finish", "ending"), FINISHES)
def test_the_examples_of_attp_call_the_tool_that_ends_the_work_once_and_last(
    finish: Any, ending: str, language: Language
) -> None:
    ending = ending or 'report(path="/data/report.txt", lines=3)'
    name = ending.partition("(")[0]
    text = examples("attp", [count_lines, finish_entry(finish).tool], language)
    programs = re.findall(r"code = \'\'\'\n(.*?)\'\'\'", text, re.DOTALL)
    assert [f"{name}(" in each for each in programs] == [False, True]
    assert programs[1].splitlines()[-1] == ending
    assert text.count(f"{name}(") == 1


@pytest.mark.parametrize("finish", ["answer", Report])
def test_the_last_example_of_attp_ends_a_turn_if_it_is_sent_back(finish: Any) -> None:
    for tools in ([count_lines], [delete_account], []):
        session = Session(tools, finish=finish)
        sent_back = replies("attp", [*tools, finish_entry(finish).tool])
        assert [session.run_turn(reply).final is None for reply in sent_back[:-1]] == [True] * (len(sent_back) - 1)
        # An example with a made-up tool ends nothing.
        assert (session.run_turn(sent_back[-1]).final is None) == (tools == [delete_account])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_a_prompt_names_the_tool_as_the_way_to_end_in_place_of_plain_text(name: str, language: Language) -> None:
    tools: list[Any] = [count_lines]
    rule = {"en": "plain text", "zh": "直接用文字回答"}[language]
    before = str(get(name).describe(tools, language=language))
    after = str(get(name).describe([*tools, finish_entry("final_answer").tool], language=language))
    assert (rule in before, "final_answer" in before) == (True, False)
    ends = [line for line in after.splitlines() if "`final_answer`" in line]
    assert len(ends) == 1
    assert [line for line in after.splitlines() if rule in line and line not in ends] == []


@pytest.mark.parametrize("name", ["json", "xml"])
def test_no_example_of_another_prompt_calls_it(name: str) -> None:
    assert "answer" not in examples(name, [count_lines, finish_entry("answer").tool], "en")
