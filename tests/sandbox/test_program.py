"""The names that a program sees, its output and its value."""

from __future__ import annotations

import datetime
import platform
from decimal import Decimal
from typing import Any

import pytest

from tests.sandbox.programs import TOOLS, FakeTools, Runner
from toolwire.sandbox.program import Answer, ProgramCall
from toolwire.sandbox.report import NOTHING_TO_SHOW
from toolwire.vocabulary.calls import ASYNCIO, CORE_MODULES


def test_a_program_that_only_prints_gives_its_output_byte_for_byte(run: Runner) -> None:
    result = run("print('ä', 1, end='')\nprint()\nprint('last', end='')")
    assert (result.status, result.stdout, result.for_model) == ("finished", "ä 1\nlast", "ä 1\nlast")
    assert (result.stdout_bytes, result.has_value) == (len(b"\xc3\xa4 1\nlast"), False)


def test_the_assigned_result_follows_the_output(run: Runner) -> None:
    result = run("print('found')\n__result__ = {'rows': [1, 2]}\n3")
    assert (result.value, result.for_model) == ({"rows": [1, 2]}, 'found\n{"rows": [1, 2]}')


def test_output_without_a_line_end_gets_one_before_the_result(run: Runner) -> None:
    assert run("print('x', end='')\n__result__ = 1").for_model == "x\n1"


def test_a_trailing_expression_is_the_result(run: Runner) -> None:
    assert run("rows = search('x', 1)\nrows[0]").value == {"title": "x", "rank": 0}


def test_a_trailing_none_is_not_a_result(run: Runner) -> None:
    result = run("[].append(1)")
    assert (result.has_value, result.for_model) == (False, NOTHING_TO_SHOW)


def test_an_assigned_none_is_a_result(run: Runner) -> None:
    result = run("__result__ = None")
    assert (result.has_value, result.value, result.for_model) == (True, None, "null")


def test_a_program_that_assigned_to_another_name_is_told(run: Runner) -> None:
    assert run("result = add(1, 2)").for_model == (
        "The program ended without output and without a result. It assigned `result`: "
        "write `__result__ = result`, or print it."
    )


def test_a_trailing_expression_that_is_not_data_shows_what_it_is(run: Runner) -> None:
    assert run("re.match('a', 'abc')").value == "<re.Match object; span=(0, 1), match='a'>"


def test_a_result_that_is_not_data_fails_with_its_place(run: Runner) -> None:
    result = run("__result__ = {'rows': [1, print]}")
    assert result.error is not None
    assert (result.status, result.error.type, result.error.message, result.error.hint) == (
        "failed",
        "TypeError",
        "__result__ holds a builtin_function_or_method at rows[1]",
        "A result is made of None, bool, int, float, str, bytes, dates, list, tuple, set and dict.",
    )


def test_views_and_iterators_give_their_items(run: Runner) -> None:
    assert run("__result__ = [{'a': 1}.items(), map(str, [1]), (n for n in [2]), range(2)]").value == [
        [("a", 1)],
        ["1"],
        [2],
        [0, 1],
    ]


VALUES: list[Any] = [
    b"\x00\xff",
    datetime.datetime(2024, 1, 31, 12, 30, 0, 5),
    datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC),
    datetime.date(2024, 1, 31),
    datetime.time(12, 30),
    datetime.timedelta(days=-1, microseconds=3),
    Decimal("1.10"),
    {1, 2},
    frozenset({"a"}),
    (1, (2,)),
    {1: "one", (1, 2): "pair", "$t": "dict"},
    {"$t": "bytes", "v": "x"},
    float("inf"),
    "\ud800",
    "x" * 20_000,
    {"long": "ü" * 20_000, "more": ["y" * 16_384, "y" * 16_383]},
    10**4000,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}")
def test_values_go_through_a_program_and_come_back_as_themselves(run: Runner, value: Any) -> None:
    tools = FakeTools(search=lambda call: Answer(value=value))
    result = run("__result__ = echo(search('x'))", tools)
    assert (result.value, type(result.value)) == (value, type(value))
    assert tools.calls[1].arguments == {"value": value}


def test_arguments_arrive_by_the_tools_own_names(run: Runner) -> None:
    tools = FakeTools()
    run("many_kinds(1, 2, 3, 4, flag=True, other=5)\nmany_kinds(1, class_=2, flag=0, mode='m')", tools)
    assert [call.arguments for call in tools.calls] == [
        {"first": 1, "class": 2, "rest": [3, 4], "flag": True, "more": {"other": 5}},
        {"first": 1, "class": 2, "rest": [], "flag": 0, "mode": "m", "more": {}},
    ]


def test_defaults_stay_with_the_tool(run: Runner) -> None:
    tools = FakeTools()
    run("search('a')\nsearch('b', 3)\nsearch(limit=4, query='c')", tools)
    assert [(call.ordinal, call.arguments, call.parallel) for call in tools.calls] == [
        (1, {"query": "a"}, False),
        (2, {"query": "b", "limit": 3}, False),
        (3, {"query": "c", "limit": 4}, False),
    ]


def test_the_host_writes_the_record_of_calls(run: Runner) -> None:
    result = run("add(1, 2)\ntry:\n    fail('ValueError', 'no')\nexcept ValueError: pass")
    assert [(call.ordinal, call.tool, call.arguments, call.status) for call in result.calls] == [
        (1, "add", {"a": 1, "b": 2}, "answered"),
        (2, "fail", {"type_name": "ValueError", "message": "no"}, "failed"),
    ]


WRONG_CALLS = {
    "add(1)": "add() missing 1 required positional argument: 'b'",
    "add()": "add() missing 2 required positional arguments: 'a' and 'b'",
    "add(1, 2, 3)": "add() takes 2 positional arguments but 3 were given",
    "add(1, a=2)": "add() got multiple values for argument 'a'",
    "search('x', limt=3)": "search() got an unexpected keyword argument 'limt'. Did you mean 'limit'?",
    "many_kinds(1, 2)": "many_kinds() missing 1 required keyword-only argument: 'flag'",
}


@pytest.mark.parametrize(("call", "message"), WRONG_CALLS.items())
def test_a_wrong_call_is_a_type_error_at_its_own_line(run: Runner, call: str, message: str) -> None:
    tools = FakeTools()
    result = run(f"x = 1\nprint({call})", tools)
    assert result.error is not None
    assert (result.error.type, result.error.message, result.error.line) == ("TypeError", message, 2)
    assert tools.calls == []


def test_an_argument_that_is_not_data_is_a_type_error(run: Runner) -> None:
    result = run("echo({'f': print})")
    assert result.error is not None
    assert result.error.message == "echo() cannot be given a builtin_function_or_method at value.f"


def test_an_answer_that_cannot_be_sent_is_an_exception_in_the_program(run: Runner) -> None:
    tools = FakeTools(echo=lambda call: Answer(value=object()))
    result = run("try:\n    echo(1)\nexcept ToolError as error:\n    print(error)", tools)
    assert result.stdout == (
        "the tool's answer cannot be given to a program: a value of type object cannot be written as JSON\n"
    )


def test_a_call_that_raises_in_the_host_tells_the_program_only_its_type(run: Runner) -> None:
    def broken(call: ProgramCall) -> Answer:
        raise KeyError("secret")

    result = run("try:\n    echo(1)\nexcept ToolError as error:\n    print(error)", broken)
    assert result.stdout == "the call could not be made: KeyError\n"


@pytest.mark.requirement("attp.isolation.namespace")
def test_a_program_sees_its_tools_the_modules_and_the_builtins(run: Runner) -> None:
    source = """
found = {name: value for name, value in globals().items() if name.isidentifier() and not name.startswith("_")}
errors = [name for name, value in found.items() if isinstance(value, type) and issubclass(value, Exception)]
print(sorted(found.keys() - errors))
"""
    names = [*(tool.program_name for tool in TOOLS), *CORE_MODULES, ASYNCIO]
    assert run(source).stdout == f"{sorted(names)}\n"


@pytest.mark.requirement("attp.isolation.namespace")
def test_nothing_of_one_run_is_seen_by_the_next(run: Runner) -> None:
    run("json.dumps = None\nmath.pi = 3\nx = 1\nstatistics.sys.modules['os'].environ['A'] = 'b'\nrandom.seed(1)")
    source = "print(json.dumps(1), math.pi > 3, 'x' in globals(), len(statistics.sys.modules['os'].environ))"
    assert run(source).stdout == "1 True False 0\n"


def test_random_differs_from_run_to_run(run: Runner) -> None:
    assert run("random.random()").value != run("random.random()").value


def test_sets_of_text_have_one_order_everywhere(run: Runner) -> None:
    source = "list({'a', 'b', 'c', 'd', 'e', 'f'})"
    assert run(source).value == run(source).value


EXITS = {
    "exit()": "finished",
    "raise SystemExit": "finished",
    "print(1)\nquit(0)": "finished",
    "exit(3)": "failed",
    "raise SystemExit('why')": "failed",
    "raise KeyboardInterrupt": "failed",
    "statistics.sys.exit(2)": "failed",
    "random._os._exit(0)": "crashed",
    "random._os.abort()": "crashed",
}


@pytest.mark.requirement("ptc.point.crash")
@pytest.mark.parametrize(("source", "status"), EXITS.items())
def test_every_way_out_is_a_typed_end(run: Runner, source: str, status: str) -> None:
    result = run(f"print('before')\n{source}")
    assert (result.status, result.stdout.splitlines()[0]) == (status, "before")


CRASHES = {
    "random._os._exit(7)": "the program's process ended with exit code 7 before the program came to its end.",
    # Its own SIGABRT is refused to it; the C library then causes a fault of the processor.
    "random._os.abort()": (
        f"the program's process was killed by {'SIGSEGV' if platform.machine() == 'x86_64' else 'SIGTRAP'} "
        "before the program came to its end."
    ),
}


@pytest.mark.requirement("ptc.safety.process")
@pytest.mark.parametrize(("source", "message"), CRASHES.items())
@pytest.mark.of_processes
def test_a_crash_says_how_the_process_ended(run: Runner, source: str, message: str) -> None:
    result = run(source)
    assert result.error is not None
    assert (result.error.message, result.for_model) == (message, f"Stopped: {message}")


@pytest.mark.requirement("ptc.safety.level")
@pytest.mark.of_processes
def test_the_result_says_what_isolation_there_was(run: Runner) -> None:
    isolation = run("1").isolation
    assert isolation.level in ("kernel", "kernel+namespaces")
    assert list(isolation.report) == [
        "python",
        "platform",
        "warm_up",
        "process",
        "limits",
        "landlock",
        "seccomp",
        "namespaces",
    ]


def test_a_run_behind_the_kernels_walls_warns_of_nothing(run: Runner, caplog: pytest.LogCaptureFixture) -> None:
    run("1")
    assert [record.getMessage() for record in caplog.records if record.name == "toolwire.sandbox"] == []


def test_time_used_is_told(run: Runner) -> None:
    result = run("sum(range(300_000))")
    assert 0 < result.cpu_s < result.duration_s + 1
