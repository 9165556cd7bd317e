"""`toolwire tools` and `toolwire prompt`: the tools' descriptions for a person and for a model."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.conftest import Write
from tests.cli.terminal import run_on_terminal
from toolwire import ConfigurationError
from toolwire.protocols import names
from toolwire.tools import built_in_tools


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


def test_the_table_is_plain_text_of_any_width_where_no_person_reads_it(
    described: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run_here("tools", "--tools", described) == Ended(code=0, stdout=TABLE, stderr="")


def test_the_table_keeps_to_the_width_of_the_terminal(described: str) -> None:
    lines = run_on_terminal("tools", "--tools", described, columns=60).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert "".join(line[:8].strip() for line in lines if "─" not in line) == "NAMEdeletelook"


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


def test_a_search_prints_what_fits_the_best_first(described: str) -> None:
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
    assert (xml.code, xml.stdout.splitlines()[0]) == (0, "# Tools in XML")
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
    ("words", "codes"),
    [
        (["--help"], "0 1 2 3 4 5 6 130"),
        (["run", "--help"], "0 1 2 3 4 5 6 130"),
        (["prompt", "--help"], "0 1 2 3 130"),
        (["tools", "--help"], "0 1 2 3 130"),
        (["call", "--help"], "0 1 2 3 130"),
        (["policy", "check", "--help"], "0 1 2 3 130"),
        (["policy", "explain", "--help"], "0 1 2 3 130"),
        (["approvals", "--help"], "0 1 2 130"),
        (["log", "--help"], "0 1 2 130"),
        (["serve", "--help"], "0 1 2 3 130 143"),
        (["doctor", "--help"], "0 1 2 130"),
        (["completion", "--help"], "0 1 2 130"),
    ],
)
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_fits_and_has_the_exit_codes_of_its_command(
    words: list[str], codes: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ended = run_here(*words)
    # An example is one line, to be copied.
    prose = [line for line in ended.stdout.splitlines() if not line.startswith(("    toolwire ", "    eval "))]
    longest = max(map(len, prose))
    assert (ended.code, ended.stderr, longest <= columns or f"{longest} of {columns}") == (0, "", True)
    assert "Examples:\n" in ended.stdout
    listed = ended.stdout.partition("Exit codes:\n")[2].splitlines()
    assert " ".join(line.split()[0] for line in listed) == codes


@pytest.mark.parametrize("columns", [200, 120])
def test_help_uses_the_width_of_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    longest = max(map(len, run_here("run", "--help").stdout.splitlines()))
    assert 100 < longest <= 120


DISABLED = '''
from toolwire import ToolRegistry

registry = ToolRegistry()

@registry.register
def send(to: str) -> str:
    """Sends a message."""
    return to

@registry.register
def read() -> str:
    """Reads the messages."""
    return ""

registry.disable("send", "the mail server is down")
'''


def test_a_disabled_tool_is_shown_with_its_reason(write: Write) -> None:
    source = write("mail.py", DISABLED)
    lines = run_here("tools", "--tools", source).stdout.splitlines()
    assert [line.split("  ")[-1].strip() for line in lines[1:]] == [
        "Disabled: the mail server is down",
        "Reads the messages.",
    ]
    found = json.loads(run_here("tools", "--tools", source, "--json").stdout)
    assert {tool["name"]: tool["disabled"] for tool in found} == {"send": "the mail server is down", "read": None}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prompt"], "Missing option '--tools'"),
        (["fly"], "No such command 'fly'"),
        (["run", "--tools", "x"], "give a reply or --resume RUN"),
        (["tools", "--tools", "x", "--colour"], "No such option: --colour"),
    ],
)
def test_wrong_usage_is_said_on_stderr(words: list[str], said: str) -> None:
    ended = run_here(*words)
    assert (ended.code, ended.stdout, said in ended.stderr) == (2, "", True)


def test_builtin_lists_the_tools_of_toolwire_with_their_permissions() -> None:
    found = {tool["name"]: tool["permission"] for tool in json.loads(run_here("tools", "--builtin", "--json").stdout)}
    assert list(found) == [spec.name for spec in built_in_tools()]
    assert sorted(name for name, permission in found.items() if permission == "confirm") == [
        "delete_file",
        "insert_text_file",
        "view_text_file",
        "write_text_file",
    ]
    assert "read_text_file" in run_here("tools", "--builtin", "--search", "read a file").stdout


@pytest.mark.parametrize("arguments", [(), ("--builtin", "--tools", "shop.py")])
def test_tools_come_from_one_place(arguments: tuple[str, ...]) -> None:
    ended = run_here("tools", *arguments)
    assert (ended.code, ended.stdout) == (2, "")
    assert "give your tools by --tools, --config or --openapi, or --builtin for the tools of toolwire" in ended.stderr


def test_a_definition_of_the_list_says_how_to_get_a_tool_that_works() -> None:
    for spec in built_in_tools():
        with pytest.raises(ConfigurationError, match=rf"docs/built_in/{spec.name}\.md says how to get it"):
            cast("Any", spec.__tool__().function)()
