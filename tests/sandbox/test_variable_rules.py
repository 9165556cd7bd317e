"""Variables that a program leaves for the next: plain data and functions, within a limit, and the rest by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.sandbox.programs import TOOLS, Runner, answer
from toolwire.sandbox.channel.frames import VariablesFrame
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import ProgramResult
from toolwire.sandbox.variable_rules import NAMES_TOLD, change_by, usable_variables, variables_note
from toolwire.vocabulary.variables import VARIABLES_LIMIT_BYTES, bytes_of, source_of, source_text, with_change

NAMED = " with a named zone"
POISON = source_text("def steal():\n    return open('/etc/passwd').read()")


def after(run: Runner, source: str, given: Mapping[str, str] | None = None, **options: Any) -> ProgramResult:
    """Runs a program that has these variables."""
    program = Program(source=source, tools=TOOLS, variables=given or {}, **options)
    return run.sandbox.run(program, answer)


def left(run: Runner, source: str, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the variables after a program."""
    result = after(run, source, given)
    assert result.variables is not None, result.for_model
    return with_change(given or {}, result.variables)


def test_plain_data_is_the_same_in_the_next_program(run: Runner) -> None:
    source = """
import decimal
kept = [None, True, 1, 2 ** 80, 0.5, float("inf"), "text", b"bytes", (1, (2,)), {3}, frozenset({4})]
moments = {"now": datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc), 5: datetime.date(2026, 1, 2)}
rest = [datetime.time(1, 2), datetime.timedelta(days=3), decimal.Decimal("1.50"), {"$t": "source", "v": "x"}]
copy = "hides a module, as in one program"
"""
    show = "print(kept, moments, rest, copy)"
    first = after(run, f"{source}\n{show}")
    assert first.variables is not None
    assert first.variables.left_out == {}
    assert after(run, show, first.variables.set).stdout == first.stdout != ""


def test_a_moment_that_is_kept_has_the_same_zone(run: Runner) -> None:
    source = """
hours = [datetime.timedelta(hours=each) for each in (0, 5.5, -3)]
zones = [None, datetime.UTC, *map(datetime.timezone, hours)]
there = [(datetime(2026, 1, 1, tzinfo=zone), datetime.time(1, tzinfo=zone)) for zone in zones]
del zones
"""
    show = "print(there, [(day.tzname(), hour.tzname()) for day, hour in there])"
    first = after(run, f"{source}\n{show}")
    assert first.variables is not None
    assert after(run, show, first.variables.set).stdout == first.stdout != ""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("total = sum(result)", ""),
        ("answer(1)\ndef f(answer):\n    result = answer", ""),
        ("k = 1", ""),
        ("result = sum(result)", "result"),
        ("for answer in result: pass", "answer"),
        ("await asyncio.sleep(0)\nresult += [1]", "result"),
    ],
)
def test_only_a_name_that_this_program_assigned_is_taken_for_its_result(run: Runner, source: str, name: str) -> None:
    given = {"result": "[3, 5]", "answer": source_text("def answer(n): return n")}
    shown = after(run, f"{source}\nend = 1", given).for_model
    assert shown.startswith(
        f"The program ended without output and without a result. {f'It assigned `{name}`:' if name else 'Assign'}"
    )


def test_only_what_a_program_changes_is_a_change(run: Runner) -> None:
    given = left(run, "a = [1]\nb = 2\nc = 3")
    result = after(run, "a.append(2)\ndel c\nb = 2", given)
    assert result.variables is not None
    assert (dict(result.variables.set), result.variables.removed) == ({"a": "[1,2]"}, ("c",))


@pytest.mark.parametrize(
    ("source", "name", "reason"),
    [
        ("import math as m, datetime as dt, asyncio as a", "m", "module"),
        ("import math as m, datetime as dt, asyncio as a", "dt", "module"),
        ("import math as m, datetime as dt, asyncio as a", "a", "module"),
        ("class Point: pass", "Point", "type"),
        ("class Point: pass\nplaces = [Point()]", "places", "Point"),
        ("lines = (line for line in 'ab')", "lines", "generator"),
        ("import collections\ncounts = collections.Counter('ab')", "counts", "Counter"),
        ("f = lambda: 1", "f", "function"),
        ("if True:\n    def f(): return 1", "f", "function"),
        ("def outer():\n    def f(): return 1\n    return f\nf = outer()", "f", "function"),
        ("import functools\n@functools.lru_cache\ndef f(): return 1", "f", "_lru_cache_wrapper"),
        ("def f(n=add(1, 2)): return n", "f", "default that is not a literal"),
        ("found = add", "found", "function"),
        ("add = 1", "add", "the name is taken"),
        ("sum = 1", "sum", "the name is taken"),
        ("def print(text): pass", "print", "the name is taken"),
        ("json = '{}'", "json", "the name is taken"),
        ("deep = []\nfor _ in range(80): deep = [deep]", "deep", "nested too deeply"),
        ("me = []\nme.append(me)", "me", "nested too deeply"),
        ("number = 10 ** 4215", "number", "too large"),
        ("import zoneinfo\nt = datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Oslo'))", "t", f"datetime{NAMED}"),
        (
            "t = [{'at': datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), 'UTC'))}]",
            "t",
            f"datetime{NAMED}",
        ),
        ("import zoneinfo\nt = datetime.time(1, tzinfo=zoneinfo.ZoneInfo('CET'))", "t", f"time{NAMED}"),
        ("t = {datetime(2026, 10, 25, 2, 30, fold=1): 1}", "t", "datetime with fold=1"),
        ("t = (datetime.time(2, 30, fold=1),)", "t", "time with fold=1"),
    ],
)
def test_anything_else_is_left_out_by_name(run: Runner, source: str, name: str, reason: str) -> None:
    result = after(run, f"{source}\nok = 1")
    assert result.variables is not None
    assert result.variables.left_out[name] == reason
    assert name not in result.variables.set
    assert result.variables.set["ok"] == "1"


def test_what_every_program_has_is_not_named(run: Runner) -> None:
    result = after(run, "import math, collections, asyncio\nimport search\n__result__ = add(1, 2)\n_x = 1")
    assert result.variables is not None
    assert (dict(result.variables.set), dict(result.variables.left_out)) == ({"_x": "1"}, {})


def test_a_function_is_there_by_its_source_and_the_lines_of_the_program_stay_right(run: Runner) -> None:
    source = "rate = 3\n\ndef times(n: Missing, *, by=2) -> Missing:\n    # A comment.\n    return add(n * by, rate)"
    # The annotations name nothing that is there: so the first program needs it.
    given = left(run, f"Missing = 1\n{source}\ndel Missing")
    assert source_of(given["times"]) == source.partition("\n\n")[2]
    assert after(run, "print(times(4))\nprint(times.__name__)", given).stdout == "11\ntimes\n"
    failed = after(run, "\n\nresult = times('x')\n", given)
    assert failed.error is not None
    assert failed.error.traceback.startswith(
        "Traceback (most recent call last):\n  File \"<program>\", line 3, in <module>\n    result = times('x')\n"
    )
    assert "return add(n * by, rate)" in failed.error.traceback
    assert [left(run, "x = 1", given)["times"]] == [given["times"]]


def test_functions_of_async_code_and_of_dotted_tools_work_in_later_programs(run: Runner) -> None:
    given = left(run, "async def both():\n    return await asyncio.gather(add(1, 2), add(3, 4))")
    assert (
        after(run, '"""Text."""\nfrom __future__ import annotations\nprint(await both())', given).stdout == "[3, 7]\n"
    )
    given = left(run, "def many(n):\n    return many.kinds(n, class_=1, flag=True)")
    assert after(run, "print(many(1)['first'])", given).error is not None
    tools = (replace(TOOLS[0], path="calculator.add"),)
    program = Program(source="print(total())", tools=tools, variables={"total": source_text(DOTTED)})
    assert run.sandbox.run(program, answer).stdout == "5\n"


DOTTED = "def total():\n    return calculator.add(2, 3)"


def test_a_program_that_fails_keeps_what_it_had_set_and_one_that_is_stopped_keeps_nothing(run: Runner) -> None:
    given = {"a": "1"}
    failed = after(run, "b = 2\n1 / 0\nc = 3", given)
    assert (failed.status, failed.variables and dict(failed.variables.set)) == ("failed", {"b": "2"})
    stopped = after(run, "b = 2\nwhile True: pass", given, limits=Limits(wall_s=0.2))
    assert (stopped.status, stopped.variables) == ("timeout_program", None)
    assert variables_note(stopped, {}, "en") == (
        "[The program was stopped, so what it changed in variables is not kept.]"
    )
    refused = after(run, "import os", given)
    assert (refused.variables, variables_note(refused, {}, "en")) == (None, "")


def test_without_variables_a_program_starts_empty_and_leaves_nothing(run: Runner) -> None:
    result = run("a = 1")
    assert result.variables is None
    assert run("a").error is not None


def test_a_variable_that_does_not_fit_is_left_out_and_the_others_are_kept(run: Runner) -> None:
    # A text takes its quotes and its name as well, and a colon on the way.
    room = VARIABLES_LIMIT_BYTES - len('"a":""')
    fits = left(run, f"a = 'x' * {room}")
    assert bytes_of(fits) <= VARIABLES_LIMIT_BYTES
    result = after(run, f"a = 'x' * {room + 1}\nb = 'y' * 1000\nmany = [[]] * 300_000")
    assert result.variables is not None
    assert dict(result.variables.left_out) == {"a": "too large", "many": "too large"}
    assert list(result.variables.set) == ["b"]
    result = after(run, f"a = 'x' * {room - 5}\ndef f():\n    return 1")
    assert result.variables is not None
    assert (list(result.variables.set), dict(result.variables.left_out)) == (["a"], {"f": "too large"})


def test_the_source_of_a_function_takes_the_checks_of_each_program(run: Runner) -> None:
    program = Program(source="print(steal())", tools=TOOLS)
    usable, refused = usable_variables({"steal": POISON, "a": "1"}, program)
    assert (usable, refused) == ({"a": "1"}, {"steal": "refused source"})
    # Without the checks it is there: only the kernel keeps it from the file.
    unchecked = replace(program, source_checks=False)
    usable, refused = usable_variables({"steal": POISON, "a": "1"}, unchecked)
    assert (list(usable), refused) == (["steal", "a"], {})
    failed = run.sandbox.run(replace(unchecked, variables=usable), answer)
    assert failed.error is not None
    assert failed.error.type == "PermissionError"


def test_a_function_that_only_its_own_program_allows_is_left_out(run: Runner) -> None:
    # Beside the variable, `os.system` is an attribute of a dict.
    result = after(run, "os = {}\ndef f():\n    return os.system")
    assert result.variables is not None
    assert (dict(result.variables.set), dict(result.variables.left_out)) == ({"os": "{}"}, {"f": "refused source"})


def test_a_variable_with_the_name_of_a_later_tool_is_not_given(run: Runner) -> None:
    given = {"add": "1", "calculator": "2", "b": "3"}
    program = Program(source="x", tools=(replace(TOOLS[0], path="calculator.add"),))
    assert usable_variables(given, program) == (
        {"b": "3"},
        {"add": "the name is taken", "calculator": "the name is taken"},
    )


def test_a_process_that_was_taken_over_sets_no_name_that_a_program_relies_on() -> None:
    program = Program(source="def f(): pass\nclass A:\n    def g(self): pass", tools=TOOLS)
    names = ("__builtins__", "__x", "None", "add", "print", "json")
    frame = VariablesFrame({**dict.fromkeys(names, "1"), "a": "1"}, {"f": 1, "g": 3, "h": 9, "print": 1}, {})
    change = change_by(program, frame)
    assert change.set == {"a": "1", "f": source_text("def f(): pass")}
    assert change.left_out == {**dict.fromkeys(names, "the name is taken"), "g": "function", "h": "function"} | {
        "print": "function"
    }


def test_the_line_about_variables_is_short_and_in_the_language_of_the_session(run: Runner) -> None:
    result = after(run, "import math as m\nsum = 1")
    assert result.variables is not None
    told = result.variables.left_out
    assert variables_note(result, told, "en") == (
        "[Not kept for the next program: m (module), sum (the name is taken).]"
    )
    assert variables_note(result, told, "zh") == "[没有为下一个程序保留：m (module), sum (名称已被占用)。]"
    many = {f"m{number}": "module" for number in range(NAMES_TOLD + 2)}
    assert variables_note(result, many, "en").endswith(", 2 more.]")
    assert variables_note(result, {}, "en") == ""
    long = after(run, f"{'n' * 200} = 1\n{'m' * 200} = math.pi.hex")
    assert long.variables is not None
    assert long.variables.set == {"n" * 200: "1"}
    told = variables_note(long, {"k" * 200: "module", **long.variables.left_out}, "en")
    assert f" {'k' * 100} (module), {'m' * 100} (builtin_function_or_method)." in told
