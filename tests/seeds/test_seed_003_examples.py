"""Every code example of the seed on programmatic tool calls, run as it is written, with the result that it states."""

from __future__ import annotations

import inspect
import os
import re
import sys
from typing import Any

import pytest

from tests.architecture.source import modules
from toolwire import CodeExecutionTool, ToolRegistry, ToolResult, ToolSpec

ARTICLES = [
    {"title": "Warmer seas", "year": 2025},
    {"title": "Old ice", "year": 1998},
    {"title": "Dry rivers", "year": 2024},
]


def search(query: str) -> list[dict]:
    """Finds articles."""
    return [{**article, "query": query} for article in ARTICLES]


def filter_articles(data: list[dict], since: int) -> list[dict]:
    """Keeps the articles of a year and later ones."""
    return [article for article in data if article["year"] >= since]


def summarize(data: list[dict]) -> str:
    """Puts articles into one line."""
    return "; ".join(article["title"] for article in data)


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@pytest.fixture
def registry() -> ToolRegistry:
    # Without a block of its own, it shares the zygote of the process. One starts in 0.4 processor seconds.
    return ToolRegistry()


@pytest.mark.requirement("ptc.start.register", "ptc.start.enable", "ptc.start.tool-use")
def test_quick_start_lets_a_model_call_tools_from_a_program(registry: ToolRegistry) -> None:
    registry.register(search)
    registry.register(summarize)
    registry.enable_code_execution()

    result = registry.invoke("code_execution", {"code": "print(summarize(data=search(query='ice')))"})

    assert (result.success, result.text) == (True, "Warmer seas; Old ice; Dry rivers\n")


@pytest.mark.requirement("ptc.dependency.none")
def test_the_sandbox_imports_no_further_package() -> None:
    imported = {
        name.partition(".")[0]
        for module in modules()
        if module.layer in ("sandbox", "sandbox/child") and ".sandbox.wasm." not in module.name
        for name in module.imports
    }

    assert imported - sys.stdlib_module_names == {"toolwire"}


@pytest.mark.requirement("ptc.flow.on-host")
def test_a_tool_that_a_program_calls_runs_in_the_hosts_process_down_the_one_path(registry: ToolRegistry) -> None:
    ran: list[int] = []

    def here(limit: int) -> int:
        """Says in which process it runs."""
        ran.append(os.getpid())
        return limit

    registry.register(here)
    log = registry.enable_logging()

    result = registry.run_program(
        "try:\n    here('many')\nexcept InvalidArguments:\n    print(here('3'), __import__('os').getpid())",
        source_checks=False,
    )

    number, pid = result.stdout.split()
    assert (number, ran, int(pid) == os.getpid()) == ("3", [os.getpid()], False)
    assert [entry.status for entry in log.get_entries()] == ["success", "invalid_arguments"]


@pytest.mark.requirement(
    "ptc.flow.stubs", "ptc.flow.values", "ptc.flow.stdout", "ptc.point.intermediate", "ptc.point.print-only"
)
def test_only_what_is_printed_goes_back_and_it_goes_back_byte_for_byte(registry: ToolRegistry) -> None:
    registry.register(search)
    registry.register(summarize)
    registry.enable_code_execution()

    code = """
data = search(query="weather")
final_output = summarize(data)
print(final_output, end="\\t\\n\\n")
"""

    result = registry.invoke("code_execution", {"code": code})

    assert result.text == "Warmer seas; Old ice; Dry rivers\t\n\n"


@pytest.mark.requirement("ptc.example.three-turns")
def test_three_turns_call_the_tools_one_by_one(registry: ToolRegistry) -> None:
    registry.register(search)
    registry.register(filter_articles, name="filter")
    registry.register(summarize)

    result = registry.invoke("search", {"query": "climate change"})
    filtered = registry.invoke("filter", {"data": result.data, "since": 2024})
    summary = registry.invoke("summarize", {"data": filtered.data})

    assert summary.data == "Warmer seas; Dry rivers"


@pytest.mark.requirement("ptc.example.one-turn", "ptc.purpose.one-block")
def test_one_turn_does_the_same_by_a_program(registry: ToolRegistry) -> None:
    registry.register(search)
    registry.register(summarize)
    registry.enable_code_execution()
    code = """
data = search(query="climate change")
filtered = [item for item in data if item["year"] >= 2024]
summary = summarize(data=filtered)
print(f"找到 {len(filtered)} 篇近期文章。\\n{summary}")
"""

    result = registry.invoke("code_execution", {"code": code})

    assert result.text == "找到 2 篇近期文章。\nWarmer seas; Dry rivers\n"


@pytest.mark.requirement(
    "ptc.trace.invocation-id",
    "ptc.trace.shared",
    "ptc.trace.executor",
    "ptc.trace.last-invocation-id",
    "ptc.trace.tool-run",
    "ptc.trace.get-entries",
    "ptc.point.log",
)
def test_the_calls_of_one_execution_are_found_by_its_id(registry: ToolRegistry) -> None:
    registry.register(add)
    registry.enable_logging()
    registry.enable_code_execution()

    tool = registry.get_tool("code_execution")
    registry.invoke("add", {"a": 0, "b": 0})
    result = tool.run({"code": "print(add(a=1, b=2) + add(a=3, b=4))"})

    assert isinstance(result, ToolResult)
    assert result.text == "10\n"

    executor = registry._code_execution
    inv_id = executor.last_invocation_id
    assert isinstance(executor, CodeExecutionTool)
    assert re.fullmatch(r"tr_ptc_[0-9a-f]{8,}", inv_id)

    log = registry.get_execution_log()
    entries = log.get_entries(invocation_id=inv_id)
    assert [(entry.tool_name, entry.status, entry.arguments, entry.result) for entry in entries] == [
        ("add", "success", {"a": 3, "b": 4}, 7),
        ("add", "success", {"a": 1, "b": 2}, 3),
    ]


@pytest.mark.requirement(
    "ptc.trace.own-id", "ptc.flow.execute", "ptc.trace.last-invocation-id", "ptc.trace.get-entries"
)
def test_each_execution_has_an_id_of_its_own(registry: ToolRegistry) -> None:
    registry.register(add)
    registry.enable_logging()
    registry.enable_code_execution()
    executor = registry._code_execution

    ids: list[str] = []
    for value in (1, 2):
        assert executor.execute(f"print(add(a={value}, b={value}))") == f"{value * 2}\n"
        ids.append(executor.last_invocation_id)

    log = registry.get_execution_log()
    assert len(set(ids)) == 2
    assert [[entry.result for entry in log.get_entries(invocation_id=run)] for run in ids] == [[2], [4]]


@pytest.mark.requirement("ptc.config.default-timeout")
def test_the_time_limit_is_30_seconds_unless_said_otherwise() -> None:
    parameters = inspect.signature(ToolRegistry.enable_code_execution).parameters

    assert parameters["timeout"].default == 30


@pytest.mark.requirement("ptc.config.timeout")
def test_the_time_limit_stops_a_run(registry: ToolRegistry) -> None:
    registry.enable_code_execution(timeout=1.5)

    result = registry.invoke("code_execution", {"code": "print('started')\nwhile True:\n    pass"})

    assert result.failure is not None
    assert (result.success, result.failure.kind) == (False, "timeout")
    assert (result.error or "").startswith("started\n")
    assert (result.error or "").endswith("Stopped: the program was not done 1.5 s after its start, tools included.")


@pytest.mark.requirement("ptc.config.disable")
def test_without_code_execution_there_is_no_such_tool(registry: ToolRegistry) -> None:
    assert registry.get_tool("code_execution") is None
    registry.enable_code_execution()
    assert registry.get_tool("code_execution") is not None

    registry.disable_code_execution()

    assert registry.get_tool("code_execution") is None
    assert registry.invoke("code_execution", {"code": "print(1)"}).success is False


@pytest.mark.requirement("ptc.point.checks", "ptc.safety.source")
@pytest.mark.parametrize(
    "code",
    [
        "import os\nprint(os.getcwd())",
        "print(open('/etc/hostname').read())",
        "print(eval('1 + 1'))",
        "import subprocess\nsubprocess.run(['true'])",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')",
    ],
)
def test_dangerous_source_is_refused_before_it_runs(registry: ToolRegistry, code: str) -> None:
    ran: list[str] = []

    def note(text: str) -> None:
        """Notes that the program ran."""
        ran.append(text)

    registry.register(note)
    registry.enable_code_execution()

    result = registry.invoke("code_execution", {"code": f"note('ran')\n{code}"})

    assert (result.success, result.metadata["program"].error.type, ran) == (False, "SourceRefused", [])


@pytest.mark.requirement("ptc.safety.namespace")
def test_a_program_reaches_its_tools_and_nothing_of_the_registry(registry: ToolRegistry) -> None:
    registry.register(add)
    code = """
import gc, sys
theirs = {type(held).__qualname__ for held in gc.get_objects() if type(held).__module__.startswith("toolwire.")}
names = sorted(name for name in globals() if not name.startswith("_") and not isinstance(globals()[name], type))
print("toolwire" in sys.modules, theirs, "add" in names, "registry" in names, add(1, 2))
"""

    assert registry.run_program(code, source_checks=False).stdout == "False set() True False 3\n"


@pytest.mark.requirement("ptc.limit.no-io")
@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("open('/etc/hostname')", "PermissionError"),
        ("open('/tmp/new', 'w')", "PermissionError"),
        ("import socket\nsocket.socket()", "ModuleNotFoundError"),
    ],
)
def test_files_and_network_are_out_of_reach_without_source_checks(
    registry: ToolRegistry, code: str, refused: str
) -> None:
    result = registry.run_program(code, source_checks=False)

    assert result.error is not None
    assert (result.status, result.error.type) == ("failed", refused)


@pytest.mark.requirement("ptc.limit.unregistered")
def test_a_program_calls_registered_tools_alone(registry: ToolRegistry) -> None:
    registry.register(add)

    result = registry.run_program("summarize(data=[])")

    assert result.error is not None
    assert (result.status, result.error.type) == ("failed", "NameError")


@pytest.mark.requirement("ptc.limit.no-state")
def test_nothing_stays_between_two_executions(registry: ToolRegistry) -> None:
    assert registry.run_program("kept = 1\n__result__ = kept").value == 1

    result = registry.run_program("print(kept)")

    assert result.error is not None
    assert result.error.type == "NameError"


@pytest.mark.requirement("ptc.limit.modules")
@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import math\n__result__ = math.sqrt(16)", 4.0),
        ("import json\n__result__ = json.dumps([1])", "[1]"),
        ("import re\n__result__ = re.sub('a', 'b', 'aa')", "bb"),
        ("import statistics\n__result__ = statistics.mean([1, 3])", 2),
        ("from datetime import timedelta\n__result__ = timedelta(hours=1).total_seconds()", 3600.0),
        ("import random\n__result__ = random.choice(['x'])", "x"),
    ],
)
def test_safe_modules_can_be_imported(registry: ToolRegistry, code: str, value: Any) -> None:
    assert registry.run_program(code).value == value


@pytest.mark.requirement("ptc.limit.modules")
@pytest.mark.parametrize("module", ["os", "sys", "subprocess", "socket", "ctypes", "importlib", "pickle", "mmap"])
@pytest.mark.parametrize("statement", ["import {}", "import {} as other", "from {} import *"])
def test_no_other_module_can_be_imported(registry: ToolRegistry, module: str, statement: str) -> None:
    result = registry.run_program(f"__result__ = 1\n{statement.format(module)}")

    assert result.error is not None
    assert (result.status, result.error.type, result.error.line, result.has_value) == (
        "failed",
        "SourceRefused",
        2,
        False,
    )


@pytest.mark.requirement("ptc.limit.modules")
def test_an_import_that_the_checks_cannot_see_is_refused_by_the_import_itself(registry: ToolRegistry) -> None:
    load = "globals()['__builtins__']['__import__']"

    hidden = registry.run_program(f"{load}('os')")

    assert registry.run_program(f"{load}('math').sqrt(16)").value == 4.0
    assert hidden.error is not None
    assert (hidden.status, hidden.error.type) == ("failed", "ImportError")


@pytest.mark.requirement("ptc.point.permission", "ptc.safety.permission")
@pytest.mark.parametrize("permission", ["confirm", "deny"])
def test_a_tool_that_may_not_run_does_not_run_from_a_program(registry: ToolRegistry, permission: str) -> None:
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    registry.register(ToolSpec.from_function(pay, permission=permission))

    result = registry.run_program("pay(amount=5)")

    assert result.error is not None
    assert (result.status, result.error.type, paid) == ("failed", "ToolDenied", [])
