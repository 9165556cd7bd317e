"""Tools' exceptions by name, and errors as the model reads them."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from tests.sandbox.programs import Runner
from toolwire.sandbox.report import ProgramError


def unmarked(error: ProgramError) -> ProgramError:
    """Without the lines of markers: their positions differ between versions of Python."""
    lines = [line for line in error.traceback.splitlines(keepends=True) if line == "\n" or line.strip(" ^~\n")]
    return replace(error, traceback="".join(lines))


def error_of(run: Runner, source: str) -> ProgramError:
    error = run(source).error
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("FileNotFoundError", "no such file: 'a'"),
        ("KeyError", "'key'"),
        ("UnicodeDecodeError", "bad bytes"),
        ("StopIteration", "over"),
        ("ExceptionGroup", "several"),
        ("ValueError", ""),
        ("RateLimited", "slow down"),
    ],
)
def test_a_tools_exception_is_caught_by_its_name_with_its_message(run: Runner, name: str, message: str) -> None:
    source = (
        f"try:\n    fail({name!r}, {message!r})\nexcept {name} as error:\n    print(type(error).__name__, str(error))"
    )
    expected = f"{name} {message}\n"
    if name in ("StopIteration", "ExceptionGroup"):
        # An end of iteration would end the generator it passes through; a group needs its members.
        source = source.replace(f"except {name}", "except ToolError")
    assert run(source).stdout == expected


def test_a_name_that_the_documentation_lists_is_there(run: Runner) -> None:
    assert run("issubclass(RateLimited, ToolError)").value is True


def test_names_in_an_except_clause_are_defined_beforehand(run: Runner) -> None:
    source = "try:\n    fail('QuotaExceeded', 'x')\nexcept (NeverSeen, QuotaExceeded):\n    print('caught')"
    assert run(source).stdout == "caught\n"


def test_a_class_of_the_program_is_not_replaced(run: Runner) -> None:
    source = "class Mine(Exception): pass\ntry:\n    raise Mine('x')\nexcept Mine as error:\n    print(error)"
    assert run(source).stdout == "x\n"


FAMILIES = {
    "denied": ("ToolDenied", "PermissionError"),
    "timeout": ("ToolTimeout", "TimeoutError"),
    "limit": ("LimitReached", "ToolError"),
    "arguments": ("InvalidArguments", "ValueError"),
    "unavailable": ("ToolUnavailable", "ConnectionError"),
    "internal": ("ToolError", "Exception"),
}


@pytest.mark.parametrize(("family", "names"), FAMILIES.items())
def test_each_family_is_a_documented_class(run: Runner, family: str, names: tuple[str, str]) -> None:
    source = f"""
try:
    fail("whatever", "why", {family!r})
except {names[1]} as error:
    print(type(error).__name__, error, isinstance(error, ToolError))
"""
    assert run(source).stdout == f"{names[0]} why True\n"


def test_an_uncaught_tool_exception_points_at_the_call(run: Runner) -> None:
    assert unmarked(error_of(run, "def load():\n    return fail('RateLimited', 'slow down')\nload()")) == ProgramError(
        type="RateLimited",
        message="slow down",
        traceback=(
            "Traceback (most recent call last):\n"
            '  File "<program>", line 3, in <module>\n'
            "    load()\n"
            '  File "<program>", line 2, in load\n'
            "    return fail('RateLimited', 'slow down')\n"
            "RateLimited: slow down\n"
        ),
        hint="",
        line=2,
    )


def test_causes_are_told_without_frames_of_ours_or_the_library(run: Runner) -> None:
    source = "try:\n    json.loads('{')\nexcept ValueError as error:\n    raise KeyError('settings') from error"
    assert unmarked(error_of(run, source)).traceback == (
        "Traceback (most recent call last):\n"
        '  File "<program>", line 2, in <module>\n'
        "    json.loads('{')\n"
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n"
        "\n"
        "The above exception was the direct cause of the following exception:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "<program>", line 4, in <module>\n'
        "    raise KeyError('settings') from error\n"
        "KeyError: 'settings'\n"
    )


def test_a_syntax_error_reads_as_pythons_own(run: Runner) -> None:
    assert error_of(run, "x = 1\nrows = [1, 2\nprint(rows)") == ProgramError(
        type="SyntaxError",
        message="'[' was never closed (<program>, line 2)",
        traceback=("  File \"<program>\", line 2\n    rows = [1, 2\n           ^\nSyntaxError: '[' was never closed\n"),
        hint="",
        line=2,
    )


def test_an_error_in_async_code_has_its_own_lines(run: Runner) -> None:
    error = error_of(run, "async def one():\n    await fail('RateLimited', 'no')\nawait asyncio.gather(one())")
    assert (error.type, error.line) == ("RateLimited", 2)
    assert [line for line in error.traceback.splitlines() if "File" in line] == [
        '  File "<program>", line 3, in <module>',
        '  File "<program>", line 2, in one',
    ]


@pytest.mark.of_processes
def test_printed_output_comes_before_the_error_and_the_hint(run: Runner) -> None:
    # Newer ones add the nearest name themselves.
    suggested = ". Did you mean: 'search'?" if sys.version_info >= (3, 12) else ""
    assert run("print('start')\nserch('x')").for_model == (
        "start\n"
        "Traceback (most recent call last):\n"
        '  File "<program>", line 2, in <module>\n'
        "    serch('x')\n"
        "    ^^^^^\n"
        f"NameError: name 'serch' is not defined{suggested}\n"
        "Hint: There is no `serch`. Did you mean the tool `search(query: str, limit: int = 10)`?"
    )


def test_an_exception_that_cannot_be_shown_is_still_an_end(run: Runner) -> None:
    source = "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\nraise Odd()"
    error = error_of(run, source)
    assert (error.type, error.message, error.traceback.splitlines()[-1]) == (
        "Odd",
        "",
        "Odd: <exception str() failed>",
    )


def test_endless_recursion_is_told_in_short(run: Runner) -> None:
    error = error_of(run, "def f(n):\n    return f(n + 1)\nf(0)")
    assert (error.type, len(error.traceback) < 2000) == ("RecursionError", True)


@pytest.mark.of_processes
def test_a_text_nested_too_deep_for_the_compiler_is_a_failed_program(run: Runner) -> None:
    for source in ("-" * 60_000 + "1", "(" * 300 + ")" * 300, "x" + ".a" * 32_000, "[" * 5000):
        result = run(source)
        assert result.status == "failed"
        assert result.error is not None
        assert result.error.type in ("RecursionError", "MemoryError", "SyntaxError")


def test_a_long_message_is_cut(run: Runner) -> None:
    error = error_of(run, "raise ValueError('x' * 1_000_000)")
    assert len(error.message) < 20_000
    assert "characters left out" in error.message
