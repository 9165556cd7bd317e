"""Texts of tools, programs and models cannot command the terminal on which a command prints them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.command_line import run_here, run_process
from tests.cli.conftest import Write
from tests.cli.terminal import process_on_terminal, raw_in, run_on_terminal
from toolwire.approvals import visible_text

pytestmark = pytest.mark.threat(72)

Program = Callable[[str], str]

COMMANDS = {
    "colour": "a\x1b[31mb",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x07",
    "clipboard, ended by ST": "\x1b]52;c;cm0gLXJmIC8=\x1b\\",
    "title": "\x1b]0;trusted\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "report": "\x1b[6n\x1b[c\x1bP$qm\x1b\\",
    "screen cleared": "\x1bc\x1b[2J",
    "one-byte codes": "\x9b31m\x9d0;trusted\x9c\x90q\x85\x84",
    "overwritten line": "rm -rf /\rls      ",
    "backspaces": "rm\b\bls",
    "other controls": "\x00\x05\x07\x0b\x0c\x0e\x0f\x7f",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "unseen": "a\u200bb\u2060c\ufeff\U000e0041\u2028\u2029\ufffe",
}
ALL = "|".join(COMMANDS.values())
ORDINARY = "one\ttab\r\ntwo C:\\new\nthree – 茶 é 😀 [bold]x[/bold] [link=https://a.example]y[/link] [/]\n"

TOOLS = f'''
from toolwire import CallContext

ALL = {ALL!r}
ORDINARY = {ORDINARY!r}

def says(fails: bool = False) -> str:
    """Says it.

    Args:
        fails: Whether it fails.
    """
    if fails:
        raise ValueError(ALL)
    return ALL

def ordinary() -> str:
    """Says something ordinary."""
    return ORDINARY

def pieces():
    """Gives it character by character."""
    yield from ALL

def halves():
    """Gives half a code at a time."""
    yield "\\x1b"
    yield "]52;c;AA=="
    yield "\\x07"

def works(context: CallContext):
    """Tells how far it has come."""
    context.progress(1, 2, ALL)
    return "done"
'''


@pytest.fixture
def hostile(write: Write) -> str:
    return write("hostile.py", TOOLS)


@pytest.mark.parametrize("text", COMMANDS.values(), ids=COMMANDS)
def test_nothing_of_a_text_reaches_a_terminal_as_a_command_or_unseen(text: str) -> None:
    assert raw_in(text) != set()
    assert raw_in(visible_text(text)) == set()


@pytest.mark.parametrize("text", COMMANDS.values(), ids=COMMANDS)
def test_a_text_that_is_cut_anywhere_is_shown_as_the_whole_is(text: str) -> None:
    assert "".join(visible_text(character) for character in text) == visible_text(text)


def test_ordinary_text_is_shown_as_it_is() -> None:
    assert visible_text(ORDINARY) == ORDINARY.replace("\r\n", "\n")
    assert visible_text("a\r") == "a\\r"
    assert visible_text("two marks e\u0301\u0302\nthree e\u0301\u0302\u0303") == (
        "two marks e\u0301\u0302\nthree e\u0301\u0302\\u0303"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["call", "says"],
        ["call", "says", "--json"],
        ["call", "says", "fails=true"],
        ["call", "says", "fails=true", "--json"],
        ["call", "says", "--stream"],
        ["call", "says", "--stream", "--json"],
        ["call", "says", "fails=true", "--stream"],
        ["call", "pieces"],
        ["call", "pieces", "--stream"],
        ["call", "halves", "--stream"],
        ["call", "works", "--stream"],
        ["call", "\x1b]0;name\x07"],
        ["call", "says", "\x1b]0;name\x07=1"],
    ],
    ids=" ".join,
)
def test_a_call_cannot_command_the_terminal(hostile: str, words: list[str]) -> None:
    shown = run_on_terminal(*words, "--tools", hostile)
    assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set())
    assert "\\x1b" in shown.stdout + shown.stderr or "\\u001b" in shown.stdout + shown.stderr


@pytest.mark.parametrize("words", [["call", "says"], ["call", "says", "--stream"], ["call", "pieces", "--stream"]])
def test_in_a_pipe_a_text_passes_as_it_is(hostile: str, words: list[str]) -> None:
    piped = run_here(*words, "--tools", hostile)
    assert piped.stdout.removesuffix("\n") == ALL


def test_json_on_a_terminal_is_the_value_that_a_pipe_gets(hostile: str) -> None:
    words = ["call", "says", "--json", "--tools", hostile]
    piped = run_here(*words).stdout
    assert json.loads(run_on_terminal(*words).stdout) == json.loads(piped)
    assert json.loads(piped)["data"] == ALL
    assert "\x9b31m" in piped


def test_ordinary_output_is_the_same_on_a_terminal_and_in_a_pipe(hostile: str) -> None:
    words = ["call", "ordinary", "--tools", hostile]
    assert run_here(*words).stdout == ORDINARY
    assert run_on_terminal(*words).stdout == ORDINARY.replace("\r\n", "\n")
    streamed = [*words, "--stream"]
    assert run_here(*streamed).stdout == ORDINARY
    assert run_on_terminal(*streamed).stdout == ORDINARY.replace("\r\n", "\n")


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    "code",
    [f"print({ALL!r})", f"__result__ = {ALL!r}", f"raise ValueError({ALL!r})", "print(says())"],
    ids=["print", "result", "error", "tool"],
)
def test_a_program_cannot_command_the_terminal(hostile: str, program: Program, code: str, more: list[str]) -> None:
    shown = run_on_terminal("run", program(code), "--tools", hostile, *more)
    assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set())
    assert "1b]52;c;" in shown.stdout


def test_the_output_of_a_program_passes_a_pipe_as_it_is(hostile: str, program: Program) -> None:
    assert run_here("run", program(f"print({ALL!r})"), "--tools", hostile).stdout == f"{ALL}\n"


@pytest.mark.parametrize(
    "reply",
    [
        'thought = "x"\n\n[tool_call]\nstatus = "fail"\nmessage = "\\u001B]0;x\\u0007 \\u009B1m"\n',
        "<tool_call><name>\x9b31m\u202e</name><params></params></tool_call>",
        'thought = "x"\n\n[tool_call]\nstatus = "\\u009B1m"\ntarget = "x"\n',
    ],
    ids=["declined", "unknown tool", "refused"],
)
def test_a_reply_cannot_command_the_terminal(hostile: str, write: Write, reply: str) -> None:
    shown = run_on_terminal("run", write("reply.txt", reply), "--tools", hostile)
    assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set())
    assert "\\x9b" in shown.stdout + shown.stderr


DESCRIBED = f'''
from toolwire import ToolSpec

ALL = {ALL!r}

def search(query: str = ALL) -> str:
    """Searches."""
    return query

search = ToolSpec.from_jsonschema(
    name="search",
    description="[link=file:///etc/passwd]click[/link] [/] " + ALL,
    input_schema={{
        "type": "object",
        "properties": {{"query": {{"type": "string", "default": ALL, "description": ALL}}}},
    }},
    function=search,
)
'''


@pytest.mark.parametrize(
    "words",
    [
        ["tools"],
        ["tools", "--json"],
        ["tools", "--search", "click"],
        ["tools", "--search", "\x9b1m"],
        ["prompt"],
        ["prompt", "--protocol", "xml"],
        ["prompt", "--protocol", "json"],
        ["prompt", "--protocol", "openai"],
        ["policy", "explain", "search", "query=\x9b1m"],
        ["policy", "explain", "search\x9b1m"],
    ],
    ids=" ".join,
)
def test_a_described_tool_cannot_command_the_terminal(write: Write, words: list[str]) -> None:
    shown = run_on_terminal(*words, "--tools", write("described.py", DESCRIBED))
    assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set())


def test_texts_are_never_markup_in_a_table(write: Write) -> None:
    shown = run_on_terminal("tools", "--tools", write("described.py", DESCRIBED))
    assert "[link=file:///etc/passwd]click[/link] [/]" in " ".join(shown.stdout.split())


RULES = """
[[rule]]
effect = "allow"
tool = "search"
note = "\\u009B1m \\u001B]0;x\\u0007"
id = "\\u202Eid"

[[rule]]
effect = "\\u009B1m"
"""


@pytest.mark.parametrize("words", [["explain", "search", "--policy"], ["check"]], ids=["explain", "check"])
@pytest.mark.parametrize("rules", [RULES, RULES.partition('\n[[rule]]\neffect = "\\u009B')[0]], ids=["wrong", "right"])
def test_a_rule_cannot_command_the_terminal(write: Write, words: list[str], rules: str) -> None:
    source = write("described.py", DESCRIBED)
    shown = run_on_terminal("policy", *words, write("rules.toml", rules), "--tools", source)
    assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set())


@pytest.mark.parametrize(
    "source",
    [f"raise RuntimeError({ALL!r})\n", f"1 +\n# {ALL!r}\n"],
    ids=["raises", "no Python"],
)
def test_tools_that_cannot_be_loaded_do_not_command_the_terminal(write: Write, source: str) -> None:
    shown = run_on_terminal("tools", "--tools", write("broken.py", source))
    assert (shown.code, raw_in(shown.stdout), raw_in(shown.stderr)) == (3, set(), set())


PAYS = '''
from toolwire import ToolSpec

def pay(to: str) -> str:
    """Pays."""
    return to

pay = ToolSpec.from_function(pay, permission="confirm")
'''


def test_requests_and_log_rows_cannot_control_the_terminal(write: Write) -> None:
    source = write("pays.py", PAYS)
    reply = f"<tool_call><name>pay</name><params><to>{ALL.replace(chr(0), '')}</to></params></tool_call>"
    shown = run_on_terminal("run", write("reply.xml", reply), "--tools", source)
    assert (shown.code, raw_in(shown.stdout), raw_in(shown.stderr)) == (6, set(), set())
    waiting = json.loads(run_here("approvals", "list", "--json").stdout)
    known, run_id = waiting[0]["id"], waiting[0]["run_id"]
    for words in (
        ["approvals", "list"],
        ["approvals", "list", "--json"],
        ["approvals", "show", known],
        ["approvals", "show", known, "--json"],
        ["approvals", "approve", known, "--remember", "workspace"],
        ["run", "--resume", run_id, "--tools", source],
        ["log"],
        ["log", "--json"],
        ["log", "tree", run_id],
        ["log", "--tool", "\x9b1m"],
        ["approvals", "show", "\x9b1m"],
    ):
        shown = run_on_terminal(*words)
        assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set()), words


def test_the_doctor_says_the_same_on_a_terminal() -> None:
    shown = run_on_terminal("doctor")
    assert (raw_in(shown.stdout), raw_in(shown.stderr)) == (set(), set())


WARNS = f'''
import logging
import warnings

ALL = {ALL!r}
logging.getLogger("toolwire").warning("log %s", ALL)
warnings.warn("warns " + ALL)

def says() -> str:
    """Says it."""
    return ALL
'''


def test_a_process_makes_results_log_and_warnings_visible_on_its_terminal_alone(write: Write) -> None:
    words = ["call", "says", "--tools", write("warns.py", WARNS)]
    shown = process_on_terminal(*words)
    assert (shown.code, raw_in(shown.stdout), raw_in(shown.stderr)) == (0, set(), set())
    assert shown.stdout == f"{visible_text(ALL)}\n"
    assert f"WARNING: log {visible_text(ALL)}\n" in shown.stderr
    assert f"UserWarning: warns {visible_text(ALL)}\n" in shown.stderr
    piped = run_process(*words)
    assert (piped.code, piped.stdout) == (0, f"{ALL}\n")
    assert f"WARNING: log {ALL}\n" in piped.stderr


@pytest.mark.parametrize(
    ("encoding", "half"), [("ascii", "\\ufffd"), ("latin-1", "\\ufffd"), ("utf-8:surrogateescape", "\ufffd")]
)
def test_a_byte_of_a_code_reaches_the_terminal_by_no_encoding(write: Write, encoding: str, half: str) -> None:
    source = write("byte.py", 'def byte() -> str:\n    """Gives a byte."""\n    return "\\udc9b31m \\x9b31m"\n')
    shown = process_on_terminal("call", "byte", "--tools", source, environment={"PYTHONIOENCODING": encoding})
    assert shown.stdout == f"{half}31m \\x9b31m\n"


@pytest.mark.parametrize("more", [[], ["--stream"]], ids=["whole", "stream"])
def test_json_is_json_in_an_encoding_without_its_characters(hostile: str, more: list[str]) -> None:
    words = ["call", "ordinary", "--json", *more, "--tools", hostile]
    ended = run_process(*words, environment={"PYTHONIOENCODING": "ascii"})
    last = json.loads(ended.stdout if not more else ended.stdout.splitlines()[-1])
    assert (last["result"] if more else last)["data"] == ORDINARY
