"""A tool tells a program of itself: `__doc__`, `help(tool)`, `dir()` and its attributes."""

from __future__ import annotations

import pytest

from tests.sandbox.programs import Runner, answer, parameter
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.program import Program, ProgramTool
from toolwire.sandbox.report import ProgramResult

DOCSTRING = "Looks words up.\n\nArgs:\n    query: Words of the title\n\nReturns:\n    list: the titles"
LOOK = ProgramTool(
    name="look",
    program_name="look",
    parameters=(parameter("query"), parameter("limit", required=False)),
    signature="look(query: str, limit: int = 10) -> list",
    docstring=DOCSTRING,
)
BARE = ProgramTool(name="bare", program_name="bare", parameters=(parameter("value", required=False),))
OF_LOOK = """\
look(query: str, limit: int = 10) -> list
    Looks words up.

    Args:
        query: Words of the title

    Returns:
        list: the titles
"""


def look_run(sandbox: Sandbox, source: str, *tools: ProgramTool) -> ProgramResult:
    return sandbox.run(Program(source=source, tools=tools or (LOOK, BARE)), answer)


def test_a_tool_has_its_whole_docstring_or_its_signature(shared_sandbox: Sandbox) -> None:
    result = look_run(shared_sandbox, "[look.__doc__, bare.__doc__]")
    assert result.value == [DOCSTRING, "bare(value=...)"]


@pytest.mark.parametrize("source", ["help(look)", "found = look\nhelp(found)", "help('look')"])
def test_help_prints_the_signature_and_the_docstring_of_a_tool(shared_sandbox: Sandbox, source: str) -> None:
    result = look_run(shared_sandbox, source)
    assert (result.status, result.stdout, result.value, result.calls) == ("finished", OF_LOOK, None, ())


def test_help_prints_a_tool_in_async_code_too(shared_sandbox: Sandbox) -> None:
    result = look_run(shared_sandbox, "async def tell():\n    help(look)\nawait tell()")
    assert result.stdout == OF_LOOK


def test_help_prints_only_the_signature_of_a_tool_without_a_docstring(shared_sandbox: Sandbox) -> None:
    assert look_run(shared_sandbox, "help(bare)").stdout == "bare(value=...)\n"


def test_help_without_an_argument_lists_the_tools(shared_sandbox: Sandbox) -> None:
    listed = f"The tools:\n    {LOOK.signature}\n    bare(value=...)\n"
    assert look_run(shared_sandbox, "help()").stdout == listed


def test_help_of_an_unknown_name_says_so_and_lists_the_tools(shared_sandbox: Sandbox) -> None:
    told = look_run(shared_sandbox, "help('lok')").stdout
    assert told == f"No help for 'lok'.\nThe tools:\n    {LOOK.signature}\n    bare(value=...)\n"


def test_help_without_tools_says_that_none_are_there(run: Runner, shared_sandbox: Sandbox) -> None:
    assert shared_sandbox.run(Program(source="help()"), answer).stdout == "The tools: none\n"


OTHERS = {
    "help(math.sqrt)": "sqrt(x, /)\n    Return the square root of x.\n",
    "help('math.sqrt')": "sqrt(x, /)\n    Return the square root of x.\n",
    "def half(n: int) -> float:\n    'Halves.'\n    return n / 2\nhelp(half)": "half(n: int) -> float\n    Halves.\n",
    "class Point:\n    'A place.'\n    x = 0\n    def move(self): ...\nhelp(Point)": (
        "Point()\n    A place.\n    Names: move, x\n"
    ),
    "help(3.5)": f"float\n    {float.__doc__}\n    Names: {', '.join(n for n in dir(float) if n[0] != '_')}\n",
}


# What Python says of float depends on its version.
@pytest.mark.of_processes
@pytest.mark.parametrize(("source", "told"), OTHERS.items())
def test_help_tells_of_other_things_in_short(run: Runner, source: str, told: str) -> None:
    assert run(source).stdout == told


def test_help_of_a_module_lists_its_names(run: Runner) -> None:
    lines = run("help(statistics)").stdout.splitlines()
    assert (lines[0], "fmean" in lines[-1]) == ("statistics", True)


def test_a_tool_named_help_hides_the_builtin(shared_sandbox: Sandbox) -> None:
    own = ProgramTool(name="help", program_name="help", parameters=(parameter("value"),))
    result = look_run(shared_sandbox, "help(value='me')", own)
    assert (result.value, [call.tool for call in result.calls]) == ("me", ["help"])


def test_a_program_sees_no_names_that_it_could_not_write(run: Runner) -> None:
    source = "names = dir()\nasync def one():\n    return await add(1, 2)\nprint(await one())\nnames + list(globals())"
    result = run(source)
    assert result.stdout == "3\n"
    assert [name for name in result.value if not name.isidentifier()] == []
    assert "add" in result.value


def test_a_tool_looks_like_a_plain_function(run: Runner) -> None:
    source = "[add.__name__, add.__qualname__, add.__module__, vars(add), repr(add).split(' at ')[0], callable(add)]"
    assert run(source).value == ["add", "add", "__main__", {}, "<function add", True]
    assert run("add.__annotations__").value == {}
