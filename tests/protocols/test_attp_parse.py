"""ATTP replies that are TOML: the calls that they make, and the replies that are refused."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from toolwire import ToolSpec
from toolwire.protocols import get
from toolwire.protocols.base import CODE_LIMIT_BYTES, REPLY_LIMIT_BYTES
from toolwire.vocabulary.calls import Problem, Reply, ToolCall

SPECIFICATION = Path(__file__).parent / "specification"
ATTP = get("attp")

SUCCESS = """\
thought = "look it up"

[tool_call]
status = "success"
target = "find it"
code = '''
__result__ = search("x")
'''
"""


def call(code: str, raw_text: str) -> ToolCall:
    return ToolCall("code_execution", {"code": code}, raw_text=raw_text)


def test_a_success_is_one_call_of_code_execution() -> None:
    assert ATTP.parse(SUCCESS) == Reply(
        calls=(call('__result__ = search("x")\n', SUCCESS),), thought="look it up", target="find it"
    )


def test_bytes_are_read_as_the_text_they_hold() -> None:
    assert ATTP.parse(SUCCESS.encode()) == ATTP.parse(SUCCESS)


def test_a_failure_makes_no_call() -> None:
    reply = 'thought = "no such tool"\n[tool_call]\nstatus = "fail"\nmessage = "cannot; use a shell"\n'
    assert ATTP.parse(reply) == Reply(thought="no such tool", failure="cannot; use a shell")


@pytest.mark.parametrize(
    ("name", "code", "failure"),
    [
        ("success_template", "__result__ = tool_name(arg1, arg2)\n", None),
        ("prompt_template", '__result__ = {"result1": result1, "result2": result2}\n', None),
        ("success_scene", '__result__ = search_web("Python异步编程", max_results=3)\n', None),
        ("fail_template", None, "失败原因和替代方案"),
        (
            "fail_scene",
            None,
            "当前可用的工具列表中没有文件删除功能。如需执行文件删除操作，请使用系统命令行工具。",
        ),
    ],
)
def test_the_specifications_own_documents_are_read_as_written(name: str, code: str | None, failure: str | None) -> None:
    reply = ATTP.parse((SPECIFICATION / f"{name}.toml").read_text(encoding="utf-8"))
    last = [made.arguments["code"].splitlines(keepends=True)[-1] for made in reply.calls]
    assert (last, reply.failure, reply.problems) == ([code] if code else [], failure, ())


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("'''\n\n  x = 1\n\n'''", "\n  x = 1\n\n"),
        ("'''x = 1'''", "x = 1"),
        ("'''\nx = ''\n'''", "x = ''\n"),
        ("'''\nx = ''''''", None),
        ("'''\nx = \"a\\n\" + r'\\d'\n'''", "x = \"a\\n\" + r'\\d'\n"),
        ('"""\nx = \\"""a\\"""\n"""', 'x = """a"""\n'),
        ('"x = 1\\ny = 2"', "x = 1\ny = 2"),
        ("'''\n这 = '中文'\t\n'''", "这 = '中文'\t\n"),
    ],
)
def test_code_arrives_byte_for_byte(written: str, code: str | None) -> None:
    reply = ATTP.parse(f'thought = "t"\n[tool_call]\nstatus = "success"\ntarget = "g"\ncode = {written}\n')
    assert [made.arguments["code"] for made in reply.calls] == ([code] if code is not None else [])


def refusal(reply: str | bytes) -> tuple[str, str]:
    parsed = ATTP.parse(reply)
    (problem,) = parsed.problems
    assert parsed.is_refused
    assert parsed.calls == ()
    assert parsed.failure is None
    return problem.place, problem.message


HEAD = 'thought = "t"\n[tool_call]\n'


@pytest.mark.requirement("attp.format.code-required")
@pytest.mark.parametrize(
    ("reply", "place", "message"),
    [
        (
            "",
            "",
            "There is no [tool_call] in the reply. Write `thought`, then [tool_call] with status and code.",
        ),
        (
            "<think>hm</think>",
            "",
            "The reply is empty. Write one TOML document: `thought`, then [tool_call] with status and code.",
        ),
        (
            "I cannot <help>.",
            "",
            (
                "The reply is neither a document nor plain prose. "
                "Write one TOML document: `thought`, then [tool_call] with status and code."
            ),
        ),
        (
            'thought = "t"\n',
            "",
            "There is no [tool_call] in the reply. Write `thought`, then [tool_call] with status and code.",
        ),
        (
            HEAD + 'status = "success"\n',
            "line 3",
            "The status is success, but there is no code. Write the program between code = ''' and '''.",
        ),
        (
            HEAD + 'status = "success"\ncode = " \\n"\n',
            "line 3",
            "The status is success, but there is no code. Write the program between code = ''' and '''.",
        ),
        (
            HEAD + 'status = "fail"\n',
            "line 3",
            'The status is fail, but there is no message. Write message = "why, and what could be done instead".',
        ),
        (
            HEAD + 'status = "success"\ncode = ["x"]\n',
            "line 4",
            "`code` is not a string. Write the program between code = ''' and '''.",
        ),
        (
            HEAD + "status = true\ncode = 'x'\n",
            "line 3",
            '`status` is not a string. Write status = "success" or status = "fail".',
        ),
        (
            HEAD + "status = 'pending'\ncode = 'x'\n",
            "line 3",
            'The status is \'pending\'. Write status = "success" with code, or status = "fail" with message.',
        ),
        (
            HEAD + "code = 'x'\nmessage = 'y'\n",
            "status",
            'The status is missing. Write status = "success" with code, or status = "fail" with message.',
        ),
        (
            "tool_call = 'search'\n",
            "",
            "`tool_call` is not one table. Write the line [tool_call] once, and its keys below it.",
        ),
        (
            "code = 'x'\n[tool_call]\nstatus = 'success'\ncode = 'y'\n",
            "code",
            "`code` is given twice, with two values. Write it once.",
        ),
        (b"thought = '\xff'", "line 1", "The reply is not UTF-8: byte 11 is 0xff. Write it in UTF-8."),
        ("a\n\ud800", "line 2", "The reply holds a lone surrogate, U+D800. Write the whole character."),
    ],
)
def test_a_reply_that_asks_for_nothing_clear_is_refused(reply: str | bytes, place: str, message: str) -> None:
    assert refusal(reply) == (place, message)


def test_text_without_a_tool_call_is_kept_for_the_user() -> None:
    assert ATTP.parse("<think>hm</think>\nIt is 42.\n").text == "It is 42."


@pytest.mark.requirement("attp.fail.no-code")
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            "[tool_call]\nstatus = 'fail'\nmessage = 'no'\n",
            Problem(message="`thought` is missing.", repaired=True, place="thought"),
        ),
        (
            HEAD + "status = ' Failed '\nmessage = 'no'\n",
            Problem(
                message="The status ' Failed ' was read as \"fail\": the reply has message.",
                repaired=True,
                place="line 3",
            ),
        ),
    ],
)
def test_a_failure_stands_whatever_else_is_wrong(reply: str, problem: Problem) -> None:
    parsed = ATTP.parse(reply)
    assert (parsed.calls, parsed.failure, parsed.problems) == ((), "no", (problem,))


@pytest.mark.requirement("attp.fail.no-code")
@pytest.mark.parametrize("message", ["message = 'no'\n", ""])
def test_a_failure_with_a_program_is_asked_which(message: str) -> None:
    parsed = ATTP.parse(HEAD + f"status = 'fail'\n{message}code = 'x()'\n")
    assert (parsed.calls, parsed.failure) == ((), None)
    assert [(problem.place, problem.message) for problem in parsed.problems] == [
        (
            "line 3",
            (
                'You wrote fail and a program: which? Write status = "success" to run the program, or status = "fail" '
                "with message and no code."
            ),
        )
    ]


def test_a_failure_with_an_empty_program_stands() -> None:
    parsed = ATTP.parse(HEAD + "status = 'fail'\nmessage = 'no'\ncode = ''\n")
    assert (parsed.calls, parsed.failure) == ((), "no")


def test_a_message_beside_code_that_succeeds_is_left_out() -> None:
    parsed = ATTP.parse(HEAD + "status = 'success'\ntarget = 'g'\nmessage = 'done'\ncode = 'x()'\n")
    assert [made.arguments["code"] for made in parsed.calls] == ["x()"]
    assert parsed.problems == (
        Problem(message="The status is success: the message was left out.", repaired=True, place="line 5"),
    )


def test_a_harmless_unknown_key_is_left_out_and_told() -> None:
    parsed = ATTP.parse(SUCCESS.replace("target", 'tool = "search"\ntarget'))
    assert parsed.calls[0].arguments == {"code": '__result__ = search("x")\n'}
    assert parsed.problems == (
        Problem(message="`tool` is not a key of ATTP; it was left out.", repaired=True, place="line 5"),
    )


@pytest.mark.parametrize(
    "program",
    [
        "x = 1\n'''\ny = 2\ns = '''\n",
        "f(1)\n''' # '''\n__result__ = 5\ns = '''\n",
        "x = ''' # '''\ny = 5\ns = '''\n",
        "y = 1\n'''\nmessage = '''\nabc\n",
    ],
)
def test_valid_toml_that_may_be_a_program_cut_in_two_is_refused(program: str) -> None:
    tomllib.loads(f"code = '''\n{program}'''\n")
    reply = f"thought = \"t\"\n[tool_call]\nstatus = \"success\"\ntarget = \"g\"\ncode = '''\n{program}'''\n"
    assert ATTP.parse(reply).is_refused


@pytest.mark.threat(45)
@pytest.mark.parametrize(
    ("reply", "place", "message"),
    [
        (
            "x" * (REPLY_LIMIT_BYTES + 1),
            "",
            "The reply has 262145 bytes; the limit is 262144. Write a shorter one.",
        ),
        ("字" * 90_000, "", "The reply has 270000 bytes; the limit is 262144. Write a shorter one."),
        (
            f"code = 1\nx = {'[' * 100_000}",
            "line 2",
            "Brackets are nested deeper than 64 levels. Write `thought` and `[tool_call]`, nothing else.",
        ),
        (
            f"code = 1\nx = {'{a=' * 1_000}",
            "line 2",
            "Brackets are nested deeper than 64 levels. Write `thought` and `[tool_call]`, nothing else.",
        ),
        (
            f"code = 1\n{'.'.join(['a'] * 65)} = 1",
            "line 2",
            "A dotted key has more than 64 segments. Write `thought` and `[tool_call]`, nothing else.",
        ),
        (f"code = 1\nx = {'7' * 4_301}", "line 2", "A number has 4301 digits; the limit is 4300."),
        (
            "code = 1\nx = [" + "1, " * 5_000 + "]",
            "line 2",
            (
                "The reply holds far more keys and values than a call needs. "
                "Write `thought` and `[tool_call]`, nothing else."
            ),
        ),
        (
            HEAD + "status = 'success'\ncode = '''\n" + "x" * (CODE_LIMIT_BYTES + 1) + "'''",
            "line 4",
            "The code has 65537 bytes; the limit is 65536. Write a shorter program.",
        ),
    ],
)
def test_a_limit_is_named_before_anything_is_parsed(reply: str, place: str, message: str) -> None:
    assert refusal(reply) == (place, message)


@pytest.mark.parametrize(
    "reply",
    [
        SUCCESS + "n = " + "7" * 4_300,
        SUCCESS + "n = " + "[" * 63 + "]" * 63,
        SUCCESS + ".".join(["a"] * 64) + " = 1",
        SUCCESS.replace("search(", "search(" + "'.[{=,'," * 5_000),
    ],
)
def test_text_within_the_limits_is_parsed(reply: str) -> None:
    assert len(ATTP.parse(reply).calls) == 1


@pytest.mark.parametrize(
    "text",
    [
        "There are 3 pages.",
        "共有三页。",
        "# Result\n\n- one\n- two",
        "# Result",
        "It is 3 (see `search(query='x')`), and a < b.",
        "Status: done. The code works, and search found it.",
        "<think>Now the answer.</think>\nThere are 3 pages.",
    ],
)
def test_plain_prose_is_the_answer(text: str) -> None:
    reply = ATTP.parse(text, [ToolSpec.from_function(search)])
    assert (reply.calls, reply.failure, reply.problems) == ((), None, ())
    assert reply.text == text.rpartition("</think>")[2].strip()
    assert ATTP.refuse(reply) == ""


@pytest.mark.parametrize(
    "text",
    [
        "I would call search('x').",
        "Here:\n```\nx\n```",
        "Use <search> now.",
        'It is {"query": "x"}.',
        "code = 1",
        "status: success\ncode: |\n  x",
        "<tool_call>\n",
        "tho",
        "[tool_",
        "__result__ is 3",
    ],
)
def test_text_with_a_sign_of_a_call_or_a_document_is_refused(text: str) -> None:
    assert ATTP.parse(text, [ToolSpec.from_function(search)]).is_refused


def search(query: str) -> list[str]:
    """Finds pages."""
    return [query]
