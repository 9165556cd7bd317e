"""`toolwire tools` and `toolwire prompt`: the tools' descriptions for a person and for a model."""

from __future__ import annotations

import json

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.conftest import Write
from toolwire.protocols import names


@pytest.fixture
def described(write: Write) -> str:
    return write(
        "described.py",
        '''
        from toolwire import tool

        @tool(permission="confirm")
        def delete(path: str, force: bool = False, tags: list[str] = ["one", "two", "three", "four"]) -> bool:
            """Deletes [a] file for good.

            More on that.
            """
            return True

        def look() -> str:
            """Looks around."""
            return "here"
        ''',
    )


TABLE = """\
NAME    PARAMETERS                                     PERMISSION  DESCRIPTION
delete  path, force=false, tags=["one", "two", "thre…  confirm     Deletes [a] file for good.
look                                                   auto        Looks around.
"""


def test_the_table_is_plain_text_where_no_person_reads_it(described: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run_here("tools", "--tools", described) == Ended(code=0, stdout=TABLE, stderr="")


def test_the_table_keeps_to_the_width_it_is_given(described: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = run_here("tools", "--tools", described).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert "".join(line[:8].strip() for line in lines) == "NAMEdeletelook"


def test_json_holds_the_schemas(described: str) -> None:
    ended = run_here("tools", "--tools", described, "--json")
    delete, look = json.loads(ended.stdout)
    assert (delete["name"], delete["permission"], delete["description"], delete["input_schema"]["required"]) == (
        "delete",
        "confirm",
        "Deletes [a] file for good.\n\nMore on that.",
        ["path"],
    )
    assert look["output_schema"]["properties"] == {"result": {"type": "string"}}


def test_a_search_prints_what_fits_the_best_first(described: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    ended = run_here("tools", "--tools", described, "--search", "see what is around")
    assert ended == Ended(
        code=0,
        stdout="NAME  PARAMETERS  PERMISSION  DESCRIPTION\nlook              auto        Looks around.\n",
        stderr="",
    )
    found = json.loads(run_here("tools", "--tools", described, "--json", "--search", "删除 file, or look").stdout)
    assert [tool["name"] for tool in found] == ["delete", "look"]


def test_a_search_that_finds_nothing_says_so(described: str) -> None:
    message = "No tool fits 'quantum'. Try other words: an action and its object.\n"
    assert run_here("tools", "--tools", described, "--search", "quantum") == Ended(code=0, stdout="", stderr=message)
    ended = run_here("tools", "--tools", described, "--search", "quantum", "--json")
    assert ended == Ended(code=0, stdout="[]\n", stderr=message)


def test_the_prompt_is_the_sessions(described: str) -> None:
    ended = run_here("prompt", "--tools", described)
    assert (ended.code, ended.stderr) == (0, "")
    assert "def look() -> str:" in ended.stdout
    assert run_here("prompt", "--tools", described, "--protocol", "attp", "--language", "en") == ended


def test_the_prompt_can_be_chinese_and_ask_for_more_thought(described: str) -> None:
    short = run_here("prompt", "--tools", described).stdout
    full = run_here("prompt", "--tools", described, "--thought", "full").stdout
    chinese = run_here("prompt", "--tools", described, "--language", "zh").stdout
    assert len({short, full, chinese}) == 3
    assert "工具" in chinese


def test_the_prompt_is_in_the_format_asked_for(described: str) -> None:
    xml = run_here("prompt", "--tools", described, "--protocol", "xml")
    assert (xml.code, xml.stdout.splitlines()[0]) == (0, "# How to use tools: XML")
    assert {
        name: run_here("prompt", "--tools", described, "--protocol", name).code for name in names()
    } == dict.fromkeys(names(), 0)


def test_a_provider_gets_its_tools_as_json(described: str) -> None:
    ended = run_here("prompt", "--tools", described, "--protocol", "openai")
    assert (ended.code, [entry["function"]["name"] for entry in json.loads(ended.stdout)]) == (0, ["delete", "look"])


def test_a_model_is_not_told_of_a_tool_that_may_never_run(write: Write) -> None:
    source = write(
        "denied.py",
        '''
        from toolwire import tool

        @tool(permission="deny")
        def secret() -> str:
            """Secret."""
            return "x"

        def open_to_all() -> str:
            """Open."""
            return "x"
        ''',
    )
    stdout = run_here("prompt", "--tools", source).stdout
    assert ("def secret" in stdout, "def open_to_all" in stdout) == (False, True)


@pytest.mark.parametrize("option", [["--protocol", "xml2"], ["--language", "fr"], ["--thought", "none"]])
def test_a_prompt_that_does_not_exist_is_wrong_usage(described: str, option: list[str]) -> None:
    ended = run_here("prompt", "--tools", described, *option)
    assert (ended.code, ended.stdout) == (2, "")


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["run", "--help"],
        ["prompt", "--help"],
        ["tools", "--help"],
        ["call", "--help"],
        ["approvals", "--help"],
    ],
)
@pytest.mark.parametrize("columns", [80, 120])
def test_help_fits_and_says_how_commands_end(words: list[str], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ended = run_here(*words)
    assert (ended.code, ended.stderr, max(map(len, ended.stdout.splitlines())) <= columns) == (0, "", True)
    assert "Examples:\n" in ended.stdout
    assert ended.stdout.endswith(
        "  Exit codes:\n"
        "    0    the job was done\n"
        "    1    a call or program failed, or was not allowed to run\n"
        "    2    wrong usage, or a file that cannot be read\n"
        "    3    the tools cannot be loaded\n"
        "    4    the reply was refused: it cannot be read, and nothing ran\n"
        "    5    the model declined: its reply is a `fail`, and nothing ran\n"
        "    6    a person has to decide first; the run waits\n"
        "    130  interrupted\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tools"], "Missing option '--tools'"),
        (["fly"], "No such command 'fly'"),
        (["run", "--tools", "x"], "give a reply or --resume RUN"),
        (["tools", "--tools", "x", "--colour"], "No such option: --colour"),
    ],
)
def test_wrong_usage_is_said_on_stderr(words: list[str], said: str) -> None:
    ended = run_here(*words)
    assert (ended.code, ended.stdout, said in ended.stderr) == (2, "", True)
