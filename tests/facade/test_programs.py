"""Programs of a registry: its tools, called from another process, down the same path."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.patience import PATIENCE_S
from toolwire import Limits, ToolRegistry, ToolResult, ToolSpec
from toolwire.builtin.code_execution import program_tool
from toolwire.definition.from_function import tool_of
from toolwire.vocabulary.calls import PROGRAM_MODULES


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Adds, later."""
    await asyncio.sleep(0)
    return a + b


def registry_of(*tools: object) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in tools:
        registry.register_tool_to_library(tool)
    return registry


def test_a_program_calls_tools_and_gives_output_and_result() -> None:
    result = registry_of(add).run_program("print(add(1, 2))\n__result__ = [add(n, n) for n in range(3)]")
    assert (result.status, result.stdout, result.value, result.error) == ("finished", "3\n", [0, 2, 4], None)
    assert [(call.tool, call.status) for call in result.calls] == [("add", "answered")] * 4


def test_an_error_has_type_message_and_traceback() -> None:
    error = registry_of(add).run_program("x = 1\nadd(x, b='no')").error
    assert error is not None
    assert error.type == "InvalidArguments"
    assert "line 2" in error.traceback


def find_books(words: str, limit: int = 3) -> list[str]:
    """Finds books by words of their titles.

    Only the catalogue of this library is searched.

    Args:
        words: Words of the title
        limit: How many titles at most

    Raises:
        LookupError: the catalogue is closed
    """
    return [words] * limit


def test_a_tool_has_its_whole_docstring_in_a_program_and_help_prints_it() -> None:
    registry = registry_of()
    spec = ToolSpec.from_function(find_books, name="find-books")
    registry.register(spec)
    result = registry.run_program("help(find_books)\nfind_books.__doc__")
    assert result.value == spec.docstring
    assert result.stdout.splitlines()[:4] == [
        "find_books(words: str, limit: int = 3) -> list[str]",
        "    Finds books by words of their titles.",
        "",
        "    Only the catalogue of this library is searched.",
    ]
    by_name = registry.run_program("getattr(find_books, '__do' + 'c__')")
    assert by_name.value == spec.docstring


def test_a_program_that_reads_no_docstring_is_sent_none() -> None:
    spec = ToolSpec.from_function(find_books)
    tools = [program_tool("find_books", tool_of(spec), is_told=is_told) for is_told in (False, True)]
    assert [(tool.docstring, tool.signature) for tool in tools] == [
        ("", ""),
        (spec.docstring, "find_books(words: str, limit: int = 3) -> list[str]"),
    ]


def test_the_isolation_that_was_got_is_said() -> None:
    isolation = registry_of().run_program("1").isolation
    assert isolation.level in ("kernel", "kernel+namespaces")
    assert isolation.report


def test_async_tools_run_from_blocking_code() -> None:
    code = "import asyncio\nprint(await asyncio.gather(add_later(1, 2), add(3, 4)))"
    assert registry_of(add, add_later).run_program(code).stdout == "[3, 7]\n"


def test_gathered_calls_of_sync_tools_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    def meet(name: str) -> str:
        """Waits for the other one."""
        meeting.wait()
        return name

    code = "import asyncio\nprint(await asyncio.gather(meet('a'), meet('b')))"
    assert registry_of(meet).run_program(code).stdout == "['a', 'b']\n"


def test_limits_stop_a_program() -> None:
    result = registry_of(add).run_program("print('begun')\nwhile True: pass", limits=Limits(wall_s=1))
    assert (result.status, result.stdout) == ("timeout_program", "begun\n")


@pytest.mark.requirement("ptc.config.refused-when-off")
def test_programs_are_a_tool_only_while_enabled() -> None:
    registry = registry_of(add)
    log = registry.enable_logging()
    refused = registry.invoke("code_execution", {"code": "1"})
    assert registry.get_tool("code_execution") is None
    assert refused.failure is not None
    told = refused.failure.data["for_owner"]
    assert (refused.failure.kind, told) == (
        "unknown_tool",
        "Session(programs=True) or registry.enable_code_execution() lets programs run.",
    )

    registry.enable_code_execution(timeout=PATIENCE_S)
    tool = registry.get_tool("code_execution")
    assert tool is registry._code_execution
    assert tool.run({"code": "print(add(a=1, b=2))"}).text == "3\n"
    assert tool.execute("add(a=2, b=2)") == "4"
    invocation = registry._code_execution.last_invocation_id
    assert [(entry.tool_name, entry.result) for entry in log.get_entries(invocation_id=invocation)] == [("add", 4)]

    registry.disable_code_execution()
    registry.disable_code_execution()
    assert registry.get_tool("code_execution") is None


def test_each_result_carries_the_id_of_its_own_program_and_the_last_to_end_is_the_last() -> None:
    registry = registry_of(add)
    log = registry.enable_logging()
    registry.enable_code_execution(timeout=PATIENCE_S)
    executor = registry._code_execution
    assert executor is not None
    inner = list[str]()

    @registry.register
    def nest() -> str:
        """Runs a program inside of a program."""
        before = executor.last_invocation_id
        result = registry.invoke("code_execution", {"code": "add(a=1, b=1)"})
        inner.append(result.metadata["invocation_id"])
        assert executor.last_invocation_id == inner[-1] != before
        return "done"

    outer = registry.invoke("code_execution", {"code": "nest()"})
    assert executor.last_invocation_id == outer.metadata["invocation_id"] == outer.metadata["program"].invocation_id
    assert [entry.tool_name for entry in log.get_entries(invocation_id=inner[0])] == ["add"]
    assert [entry.tool_name for entry in log.get_entries(invocation_id=outer.metadata["invocation_id"])] == ["nest"]
    program = registry.run_program("add(a=2, b=2)")
    assert [entry.result for entry in log.get_entries(invocation_id=program.invocation_id)] == [4]


@pytest.mark.requirement("ptc.config.not-from-program")
def test_a_program_runs_no_program() -> None:
    registry = registry_of(add)
    registry.enable_code_execution()
    result = registry.invoke("code_execution", {"code": "code_execution(code='1')"})
    assert result.failure is not None
    assert result.failure.kind == "tool_error"
    assert "NameError" in result.text


def test_the_text_of_a_failed_program_keeps_its_error_whole() -> None:
    registry = ToolRegistry(result_limit_bytes=1000)
    registry.enable_code_execution()
    result = registry.invoke("code_execution", {"code": "print('x' * 5000)\nraise ValueError('y' * 2000)"})
    assert "[output cut: the first 1,000 of 5,001 bytes are shown]" in result.text
    assert "y" * 2000 in result.text


def test_a_registry_in_a_with_block_ends_its_processes() -> None:
    with registry_of(add) as registry:
        assert registry.run_program("add(1, 1)").value == 2
    assert registry.run_program("add(1, 2)").value == 3


async def test_programs_of_several_loops_and_threads_share_one_sandbox() -> None:
    registry = registry_of(add, add_later)
    registry.enable_code_execution()
    code = "print(add(1, 2), await add_later(3, 4))"

    async def once() -> ToolResult:
        return await registry.ainvoke("code_execution", {"code": code})

    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(asyncio.run(once()).text))
    thread.start()
    results = await asyncio.gather(once(), once())
    await asyncio.to_thread(thread.join)
    assert [result.text for result in results] + found == ["3 7\n"] * 3


def test_output_and_result_share_the_limit_and_the_result_stays() -> None:
    registry = ToolRegistry(result_limit_bytes=1000)
    registry.enable_code_execution()
    text = registry.invoke("code_execution", {"code": "print('x' * 5000)\n'the result'"}).text
    assert text == "x" * 990 + "\n[output cut: the first 990 of 5,001 bytes are shown]\nthe result"
    long = registry.invoke("code_execution", {"code": "print('x' * 5000)\n'y' * 5000"}).text
    assert len(long) < 1200
    assert registry.invoke("code_execution", {"code": "'y' * 1000"}).text == "y" * 1000


def test_a_program_may_take_as_long_as_the_timeout_says() -> None:
    registry = ToolRegistry()
    registry.enable_code_execution(timeout=0.4)
    result = registry.invoke("code_execution", {"code": "while True: pass"})
    assert result.failure is not None
    assert (result.failure.kind, result.failure.data["status"] in {"deadline", "timeout_program"}) == ("timeout", True)


@pytest.mark.requirement("ptc.limit.no-io")
@pytest.mark.parametrize("code", ["open('/etc/hostname')", "import socket", "import os", "__import__('os')"])
def test_a_program_has_no_files_and_no_network_of_its_own(code: str) -> None:
    result = registry_of(add).run_program(code)
    assert result.error is not None
    assert (result.status, result.error.type) == ("failed", "SourceRefused")


@pytest.mark.requirement("ptc.config.description")
def test_code_execution_tells_a_model_the_signatures_of_what_a_program_may_call() -> None:
    registry = registry_of(add)
    registry.enable_code_execution()
    registry.register(add_later, permission="deny")
    tool = registry.get_tool("code_execution")
    assert tool.description == (
        "Run a Python program that calls the other tools as functions. Only its printed output and its "
        "result (assigned to __result__, or its last expression) come back. "
        f"Modules that it may import: {' '.join(PROGRAM_MODULES)}.\n"
        "A program may call:\n"
        "- add(a: int, b: int) -> int"
    )
    registry.register(add, name="list", replace=True)
    assert tool.description.endswith("- add(a: int, b: int) -> int\n- list_(a: int, b: int) -> int")
