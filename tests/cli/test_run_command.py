"""`toolwire run`: reads a reply, runs it and prints the text that the model reads next."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Ended, run_here
from tests.cli.conftest import Write
from toolwire.protocols import names

Program = Callable[[str], str]
TOLD = "protocol: attp\n"
UNTOLD = "protocol: attp (the format was not recognised)\n"


def test_output_and_result_of_a_program_go_to_stdout(program: Program, tools: str) -> None:
    reply = program("print('three and four')\n__result__ = add(3, 4)")
    assert run_here("run", reply, "--tools", tools) == Ended(code=0, stdout="three and four\n7\n", stderr=TOLD)


def test_a_reply_comes_from_standard_input(program: Program, tools: str) -> None:
    content = Path(program("__result__ = greet('Ada')")).read_bytes()
    assert run_here("run", "-", "--tools", tools, stdin=content) == Ended(code=0, stdout="Hello Ada\n", stderr=TOLD)


@pytest.mark.parametrize("protocol", ["auto", "attp"])
def test_the_protocol_may_be_named(program: Program, tools: str, protocol: str) -> None:
    reply = program("__result__ = add(1)")
    assert run_here("run", reply, "--tools", tools, "--protocol", protocol).stdout == "11\n"


def test_an_unknown_protocol_is_wrong_usage_and_the_known_ones_are_listed(program: Program, tools: str) -> None:
    ended = run_here("run", program("1"), "--tools", tools, "--protocol", "xm")
    known = ", ".join(map(repr, names()))
    assert ended == Ended(code=2, stdout="", stderr=f"toolwire: there is no protocol 'xm': write one of {known}\n")


@pytest.mark.parametrize(("protocol", "is_made"), [("yaml", False), ("attp", True)])
def test_an_unknown_protocol_is_refused_before_a_store_is_made(
    program: Program, tools: str, store: str, protocol: str, is_made: bool
) -> None:
    ended = run_here("run", program("1"), "--tools", tools, "--protocol", protocol)
    assert (ended.code == 0, Path(store).exists()) == (is_made, is_made)


def test_json_says_all_there_is_to_know(program: Program, tools: str) -> None:
    ended = run_here("run", program("print('x')\n__result__ = add(3, b=add(1))"), "--tools", tools, "--json")
    report = json.loads(ended.stdout)
    took = report["results"][0]["program"].pop("duration_s")
    waits = [call.pop("duration_ms") for call in report["results"][0]["program"]["calls"]]
    assert (ended.code, ended.stderr, took > 0, len(waits)) == (0, TOLD, True, 2)
    level = report["results"][0]["program"].pop("isolation")
    assert level in {"process", "kernel", "kernel+namespaces"}
    invocation_id = report["results"][0]["metadata"].pop("invocation_id")
    assert invocation_id.startswith("tr_ptc_")
    assert report == {
        "protocol": "attp",
        "status": "done",
        "thought": "why",
        "target": "what for",
        "message": None,
        "answer": None,
        "problems": [],
        "results": [
            {
                "name": "code_execution",
                "success": True,
                "data": "x\n14",
                "text": "x\n14",
                "error": None,
                "metadata": {},
                "failure": None,
                "program": {
                    "status": "finished",
                    "calls": [
                        {"tool": "add", "arguments": {"a": 1}, "status": "answered"},
                        {"tool": "add", "arguments": {"a": 3, "b": 11}, "status": "answered"},
                    ],
                },
            }
        ],
        "text": "x\n14",
        "suspended": None,
    }


def test_json_holds_a_failure_with_its_kind(program: Program, tools: str) -> None:
    ended = run_here("run", program("__result__ = 1 / 0"), "--tools", tools, "--json")
    report = json.loads(ended.stdout)
    failure = report["results"][0]["failure"]
    assert (ended.code, report["status"], failure["kind"], failure["data"]) == (
        1,
        "failed",
        "tool_error",
        {"status": "failed"},
    )


def test_repairs_are_told_on_stderr(write: Write, tools: str) -> None:
    reply = write("fenced.txt", "Here:\n```toml\n[tool_call]\nstatus = 'success'\ncode = '''\nadd(1)\n'''\n```\n")
    assert run_here("run", reply, "--tools", tools) == Ended(
        code=0,
        stdout="11\n",
        stderr=f"{TOLD}repaired: line 2: The code fence around the reply was left out.\n"
        "repaired: line 1: The text before the document was left out.\n"
        "repaired: thought: `thought` is missing.\n"
        "repaired: target: `target` is missing.\n",
    )


def test_a_reply_that_declines_gives_its_message(write: Write, tools: str) -> None:
    reply = write("declines.toml", "thought = 'no'\n[tool_call]\nstatus = 'fail'\nmessage = 'I have no such tool.'\n")
    assert run_here("run", reply, "--tools", tools) == Ended(code=5, stdout="I have no such tool.\n", stderr=TOLD)
    report = json.loads(run_here("run", reply, "--tools", tools, "--json").stdout)
    assert (report["status"], report["message"], report["results"]) == ("declined", "I have no such tool.", [])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"I would write <x>.", "The reply is neither a document nor plain prose."),
        (b"", "There is no [tool_call] in the reply."),
        (b"[tool_call]\nstatus = 'success'\n", "line 2: The status is success, but there is no code."),
        (b"\xff\xfe\x00", "line 1: The reply is not UTF-8: byte 0 is 0xff. Write it in UTF-8."),
        (b"#" * 262_145, "The reply has 262145 bytes; the limit is 262144. Write a shorter one."),
    ],
    ids=["prose", "empty", "no code", "binary", "too long"],
)
def test_a_reply_that_cannot_be_read_is_refused_with_the_reason_for_both_readers(
    tools: str, content: bytes, reason: str
) -> None:
    ended = run_here("run", "-", "--tools", tools, stdin=content)
    said = ended.stderr.removeprefix(UNTOLD).removeprefix(TOLD).removesuffix("\n")
    assert (ended.code, said.startswith(f"refused: {reason}"), "\n" in said) == (4, True, False)
    assert ended.stdout.startswith(
        f"Your reply was not run.\n- {said.removeprefix('refused: ')}\n\nReply with one TOML"
    )


def test_a_refused_reply_is_reported_in_json_too(tools: str) -> None:
    ended = run_here("run", "-", "--tools", tools, "--json", stdin=b"\xff")
    report = json.loads(ended.stdout)
    assert (ended.code, report["status"], report["problems"], report["results"]) == (
        4,
        "refused",
        [
            {
                "message": "The reply is not UTF-8: byte 0 is 0xff. Write it in UTF-8.",
                "repaired": False,
                "place": "line 1",
            }
        ],
        [],
    )


def test_a_reply_that_is_not_there_is_wrong_usage(tools: str, tmp_path: Path) -> None:
    assert run_here("run", "absent.toml", "--tools", tools) == Ended(
        code=2, stdout="", stderr="toolwire: the reply absent.toml cannot be read: No such file or directory\n"
    )
    assert run_here("run", str(tmp_path), "--tools", tools) == Ended(
        code=2, stdout="", stderr=f"toolwire: the reply {tmp_path} cannot be read: Is a directory\n"
    )
    assert run_here("run", "/dev/zero", "--tools", tools) == Ended(
        code=2, stdout="", stderr="toolwire: the reply /dev/zero is longer than 16,777,216 bytes\n"
    )


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_limit_that_is_none_is_wrong_usage(program: Program, tools: str, seconds: str) -> None:
    ended = run_here("run", program("1"), "--tools", tools, "--timeout", seconds)
    assert (ended.code, ended.stdout) == (2, "")
    assert "Invalid value for '--timeout'" in ended.stderr


def marked(call: str) -> str:
    """The line below `__result__ = call`: newer versions of Python do not mark an expression that fills the whole
    line."""
    return f"{' ' * 17}{'^' * len(call)}\n" if sys.version_info < (3, 13) else ""


# Newer ones add the nearest name themselves, from 3.13 on to one as short as this.
SUGGESTED = ". Did you mean: 'add'?" if sys.version_info >= (3, 13) else ""
PROGRAMS = {
    "syntax error": (
        "x = 1\ny = (",
        """\
  File "<program>", line 2
    y = (
        ^
SyntaxError: '(' was never closed
""",
    ),
    "error at its line": (
        "x = 1\n__result__ = [][x]",
        """\
Traceback (most recent call last):
  File "<program>", line 2, in <module>
    __result__ = [][x]
                 ~~^^^
IndexError: list index out of range
""",
    ),
    "exits": (
        "print('before')\nraise SystemExit(4)",
        """\
before
Traceback (most recent call last):
  File "<program>", line 2, in <module>
    raise SystemExit(4)
SystemExit: 4
""",
    ),
    "ends its process": (
        "print('before')\nos = json.codecs.sys.modules['os']\nos._exit(7)",
        "before\nStopped: the program's process ended with exit code 7 before the program came to its end.\n",
    ),
    "exhausts memory": (
        "x = 'y' * 10**10",
        """\
Traceback (most recent call last):
  File "<program>", line 1, in <module>
    x = 'y' * 10**10
        ~~~~^~~~~~~~
MemoryError
Hint: It needed more than 256 MiB. Handle the data in smaller pieces.
""",
    ),
    "wrong types": (
        "__result__ = add('many')",
        f"""\
Traceback (most recent call last):
  File "<program>", line 1, in <module>
    __result__ = add('many')
{marked("add('many')")}\
InvalidArguments: The arguments of 'add' are wrong:
- 'a' must be an integer, not 'many'.
Correct them and call 'add' again. It takes: a (required), b (optional).
""",
    ),
    "wrong tool": (
        "__result__ = ad(1)",
        f"""\
Traceback (most recent call last):
  File "<program>", line 1, in <module>
    __result__ = ad(1)
                 ^^
NameError: name 'ad' is not defined{SUGGESTED}
Hint: There is no `ad`. Did you mean the tool `add(a, b=...)`?
""",
    ),
}
SLOW = "Do not send the same program again: it would take as long. Write one that does less.\n"
AGAIN = "Do not send the same program again: it would fail the same way. Correct it and send the whole program.\n"


@pytest.mark.parametrize(("code", "shown"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_that_fails_is_shown_with_its_error(program: Program, tools: str, code: str, shown: str) -> None:
    assert run_here("run", program(code), "--tools", tools) == Ended(code=1, stdout=shown + AGAIN, stderr=TOLD)


def test_a_program_that_loops_for_ever_is_stopped_at_the_time_limit(program: Program, tools: str) -> None:
    ended = run_here("run", program("print('on')\nwhile True:\n    pass"), "--tools", tools, "--timeout", "0.5")
    lines = ended.stdout.splitlines()
    assert (ended.code, ended.stderr, lines[0], lines[-2:]) == (
        1,
        TOLD,
        "on",
        ["Stopped: the program was not done 0.5 s after its start, tools included.", SLOW.strip()],
    )


def test_a_program_that_floods_its_output_is_stopped_and_little_of_it_shown(program: Program, tools: str) -> None:
    ended = run_here("run", program("while True:\n    print('y' * 100_000)"), "--tools", tools)
    assert (ended.code, ended.stderr, len(ended.stdout) < 40_000) == (1, TOLD, True)
    assert ended.stdout.endswith(f"Stopped: the program printed more than 16,777,216 bytes.\n{AGAIN}")


BAD_TOOLS = '''
import os
import sys
import threading

def raises(row: int) -> int:
    """Raises."""
    raise LookupError(f"no row {row}")

def leaves() -> int:
    """Ends the process, or would."""
    sys.exit(3)

def lock() -> object:
    """Gives what JSON cannot hold."""
    return threading.Lock()

def prints() -> str:
    """Prints."""
    print("from the tool")
    return "the result"

def hangs() -> int:
    """Never returns."""
    threading.Event().wait()

async def blocks() -> int:
    """Never returns, and holds up its loop."""
    threading.Event().wait()
'''


@pytest.fixture
def bad_tools(write: Write) -> str:
    return write("bad_tools.py", BAD_TOOLS)


FAILING_CALLS = {
    "raises": ("raises(3)", "LookupError: no row 3"),
    "exits": ("leaves()", "SystemExit: 3"),
    "gives what JSON cannot hold": (
        "lock()",
        """\
ToolError: 'lock' ran, but its result cannot be shown: a value of type lock cannot be written as JSON.
It may have taken effect.""",
    ),
}


@pytest.mark.parametrize(("call", "error"), FAILING_CALLS.values(), ids=FAILING_CALLS.keys())
def test_a_tool_that_fails_is_an_exception_in_the_program(
    program: Program, bad_tools: str, call: str, error: str
) -> None:
    ended = run_here("run", program(f"__result__ = {call}"), "--tools", bad_tools)
    assert ended == Ended(
        code=1,
        stdout='Traceback (most recent call last):\n  File "<program>", line 1, in <module>\n'
        f"    __result__ = {call}\n{marked(call)}{error}\n{AGAIN}",
        stderr=TOLD,
    )


def test_output_printed_by_a_tool_is_not_its_result(program: Program, bad_tools: str) -> None:
    ended = run_here("run", program("__result__ = prints()"), "--tools", bad_tools)
    assert ended == Ended(code=0, stdout="the result\n", stderr=f"{TOLD}from the tool\n")


def test_a_tool_that_never_returns_is_given_up_at_the_time_limit(program: Program, bad_tools: str) -> None:
    ended = run_here("run", program("print('on')\n__result__ = hangs()"), "--tools", bad_tools, "--timeout", "0.5")
    assert ended == Ended(
        code=1,
        # The tool holds the thread that would ask the program for its place, so no line of the program is shown.
        stdout="on\n[still running after the program has ended: hangs. It may yet take effect.]\n"
        f"Stopped: the program was not done 0.5 s after its start, tools included.\n{SLOW}",
        stderr=TOLD,
    )


def test_a_tool_that_needs_permission_is_not_run_and_waits(write: Write, program: Program) -> None:
    source = write(
        "asks.py",
        '''
        from toolwire import tool

        @tool(permission="confirm")
        def pay(amount: int) -> str:
            """Pays."""
            return "paid"
        ''',
    )
    ended = run_here("run", program("__result__ = pay(3)"), "--tools", source)
    assert (ended.code, ended.stdout, ended.stderr.startswith(f"{TOLD}run r_")) == (6, "", True)


CALL = """\
I add.
<tool_call>
  <name>add</name>
  <params>
    <a><![CDATA[{}]]></a>
  </params>
</tool_call>
"""
RESULT = """\
<tool_result>
  <name>add</name>
  <success>true</success>
  <data><![CDATA[{}]]></data>
</tool_result>
"""


def test_auto_finds_out_that_a_reply_is_xml_and_says_so(write: Write, tools: str) -> None:
    reply = write("reply.xml", CALL.format(1))
    assert run_here("run", reply, "--tools", tools) == Ended(code=0, stdout=RESULT.format(11), stderr="protocol: xml\n")
    report = json.loads(run_here("run", reply, "--tools", tools, "--json").stdout)
    assert (report["protocol"], report["status"], report["results"][0]["data"]) == ("xml", "done", 11)


def test_a_named_protocol_is_not_told_again(write: Write, tools: str) -> None:
    reply = write("reply.xml", CALL.format(2))
    ended = run_here("run", reply, "--tools", tools, "--protocol", "xml")
    assert ended == Ended(code=0, stdout=RESULT.format(12), stderr="")


def test_a_reply_in_no_format_is_said_to_be_in_none(tools: str) -> None:
    assert run_here("run", "-", "--tools", tools, stdin=b"I would add.").stderr.startswith(UNTOLD)


@pytest.mark.parametrize(
    ("protocol", "content"),
    [
        (
            "openai",
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
                ],
            },
        ),
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}],
            },
        ),
    ],
)
def test_auto_finds_out_a_providers_own_message(tools: str, protocol: str, content: dict[str, object]) -> None:
    ended = run_here("run", "-", "--tools", tools, "--json", stdin=json.dumps(content).encode())
    report = json.loads(ended.stdout)
    assert (ended.code, ended.stderr, report["protocol"], report["results"][0]["data"]) == (
        0,
        f"protocol: {protocol}\n",
        protocol,
        11,
    )
