"""A program that is not the one that was recorded is stopped at the first difference, and nothing is run for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.sandbox.drive.replayed import Approver, program
from tests.sandbox.programs import Runner
from toolwire.sandbox.answers import Answer, Recorded
from toolwire.sandbox.drive.replaying import Replaying
from toolwire.sandbox.host import Sandbox
from toolwire.sandbox.report import ProgramResult

Calls = list[tuple[str, str]]
CALLS: Calls = [
    ("echo", "1"),
    ("add", "2, 3"),
    ("echo", "'text'"),
    ("search", "'query', 1"),
    ("echo", "{'a': [1, 2.5]}"),
    ("add", "4, 5"),
    ("echo", "(1, b'x')"),
    ("echo", "'last'"),
]
"""The last one waits for a person."""


def lines(calls: Calls) -> str:
    return "\n".join(f"{tool}({given})" for tool, given in calls)


def a_loop(calls: Calls) -> str:
    return f"for call in [{', '.join(f'lambda: {tool}({given})' for tool, given in calls)}]:\n    print(call())"


def functions(calls: Calls) -> str:
    return "\n".join(
        f"def step{n}():\n    return {tool}({given})\nx{n} = step{n}()" for n, (tool, given) in enumerate(calls)
    )


def a_generator(calls: Calls) -> str:
    steps = "\n".join(f"    yield {tool}({given})" for tool, given in calls)
    return f"def steps():\n{steps}\nlist(steps())"


def awaited(calls: Calls) -> str:
    return "\n".join(f"await {tool}({given})" for tool, given in calls)


def gathered(calls: Calls) -> str:
    return f"await asyncio.gather({', '.join(f'{tool}({given})' for tool, given in calls)})"


STYLES = {
    "lines": lines,
    "a loop": a_loop,
    "functions": functions,
    "a generator": a_generator,
    "awaited": awaited,
    "gathered": gathered,
}


def other_arguments(calls: Calls, place: int) -> Calls:
    tool, given = calls[place]
    return [*calls[:place], (tool, given.replace("'", "'x", 1) if "'" in given else f"1{given}"), *calls[place + 1 :]]


def other_tool(calls: Calls, place: int) -> Calls:
    tool = "search" if calls[place][0] != "search" else "add"
    return [*calls[:place], (tool, calls[place][1].split(",")[0] + ", 9"), *calls[place + 1 :]]


def one_less(calls: Calls, place: int) -> Calls:
    return calls[:place] + calls[place + 1 :]


def one_more(calls: Calls, place: int) -> Calls:
    return [*calls[:place], ("echo", "'new'"), *calls[place:]]


def exchanged(calls: Calls, place: int) -> Calls:
    first, second = place, (place + 1) % len(calls)
    found = list(calls)
    found[first], found[second] = found[second], found[first]
    return found


IN_CODE: dict[str, Callable[[Calls, int], Calls]] = {
    "other arguments": other_arguments,
    "another tool": other_tool,
    "one less": one_less,
    "one more": one_more,
    "exchanged": exchanged,
}


def as_recorded(change: Callable[[Recorded], Recorded]) -> Callable[[tuple[Recorded, ...], int], tuple[Recorded, ...]]:
    return lambda recorded, place: tuple(change(one) if one.ordinal == place + 1 else one for one in recorded)


def exchanged_records(recorded: tuple[Recorded, ...], place: int) -> tuple[Recorded, ...]:
    first, second = recorded[place], recorded[(place + 1) % len(recorded)]
    there = {
        first.ordinal: replace(second, ordinal=first.ordinal),
        second.ordinal: replace(first, ordinal=second.ordinal),
    }
    return tuple(there.get(one.ordinal, one) for one in recorded)


def one_record_less(recorded: tuple[Recorded, ...], place: int) -> tuple[Recorded, ...]:
    left = [one for one in recorded if one.ordinal != place + 1]
    gone = recorded[place].completed
    return tuple(
        replace(one, ordinal=number, completed=one.completed - (gone and one.completed > gone))
        for number, one in enumerate(left, 1)
    )


def one_record_more(recorded: tuple[Recorded, ...], place: int) -> tuple[Recorded, ...]:
    place = min(place, len(recorded) - 2)
    at = recorded[place]
    moved = [
        replace(one, completed=one.completed + (one.completed >= at.completed)) if one.completed else one
        for one in recorded
    ]
    more = [*moved[:place], replace(at, tool="echo", arguments_digest="sha256:0"), *moved[place:]]
    return tuple(replace(one, ordinal=number) for number, one in enumerate(more, 1))


IN_RECORD: dict[str, Callable[[tuple[Recorded, ...], int], tuple[Recorded, ...]]] = {
    "another tool": as_recorded(lambda one: replace(one, tool="many-kinds")),
    "other arguments": as_recorded(lambda one: replace(one, arguments_digest=f"{one.arguments_digest[:-1]}x")),
    "another moment": as_recorded(lambda one: replace(one, after=(one.after or 0) + 1)),
    "exchanged": exchanged_records,
    "one less": one_record_less,
    "one more": one_record_more,
}
CASES = [(style, change, place) for style in STYLES for change in IN_CODE for place in range(len(CALLS))]
RECORD_CASES = [
    (style, change, place)
    for style in ("lines", "awaited")
    for change in IN_RECORD
    for place in range(len(CALLS))
    # Without the record of its last call, a program makes it for the first time.
    if (change, place) != ("one less", len(CALLS) - 1)
]


@pytest.fixture(scope="module")
def recorded(shared_sandbox: Sandbox) -> dict[str, tuple[Recorded, ...]]:
    found: dict[str, tuple[Recorded, ...]] = {}
    for style, write in STYLES.items():
        result = shared_sandbox.run(program(write(CALLS)), Approver([len(CALLS)]))
        assert (result.status, len(result.recorded)) == ("suspended", len(CALLS))
        found[style] = result.recorded
    return found


def assert_stopped(result: ProgramResult, tools: Approver) -> None:
    assert result.status == "divergence"
    assert result.error is not None
    assert "step " in result.error.message
    assert tools.made == []


def test_there_are_enough_cases() -> None:
    assert len(CASES) + len(RECORD_CASES) >= 200


@pytest.mark.threat(17)
@pytest.mark.parametrize(("style", "change", "place"), CASES)
def test_changed_code_is_stopped(
    run: Runner, recorded: dict[str, tuple[Recorded, ...]], style: str, change: str, place: int
) -> None:
    source = STYLES[style](IN_CODE[change](CALLS, place))
    tools = Approver()
    assert_stopped(run.sandbox.run(program(source, recorded[style]), tools), tools)


@pytest.mark.threat(17)
@pytest.mark.parametrize(("style", "change", "place"), RECORD_CASES)
def test_a_changed_record_is_found(
    run: Runner, recorded: dict[str, tuple[Recorded, ...]], style: str, change: str, place: int
) -> None:
    record = IN_RECORD[change](recorded[style], place)
    tools = Approver()
    assert_stopped(run.sandbox.run(program(STYLES[style](CALLS), record), tools), tools)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host believes the child."""

    def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(Replaying, "_compare", nothing)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("change", ["other arguments", "another tool", "exchanged"])
def test_without_the_comparison_changed_code_goes_through(
    run: Runner, recorded: dict[str, tuple[Recorded, ...]], change: str
) -> None:
    """The control: the difference is real, and it is the comparison that finds it."""
    tools = Approver()
    result = run.sandbox.run(program(lines(IN_CODE[change](CALLS, 1)), recorded["lines"]), tools)
    assert (result.status, [call[0] for call in tools.made]) == ("finished", [len(CALLS)])


def test_the_error_names_the_step(run: Runner, recorded: dict[str, tuple[Recorded, ...]]) -> None:
    result = run.sandbox.run(program(lines(other_arguments(CALLS, 2)), recorded["lines"]), Approver())
    assert result.error is not None
    assert result.error.message == (
        "the program is not the one that was recorded: step 3 is a call of 'echo' with other arguments than before. "
        "Nothing was run for this step."
    )


MESSAGES = {
    "another tool": (other_tool(CALLS, 0), "step 1 is a call of 'search', it was one of 'echo'"),
    "an end before": (CALLS[:4], "the program ended without step 5, a call of 'echo'"),
    "an error before": ([*CALLS[:1], ("int", "'x'")], "the program ended without step 2, a call of 'add'"),
}


@pytest.mark.parametrize(("calls", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_a_difference_is_reported(
    run: Runner, recorded: dict[str, tuple[Recorded, ...]], calls: Calls, message: str
) -> None:
    error = run.sandbox.run(program(lines(calls), recorded["lines"]), Approver()).error
    assert error is not None
    assert error.message == f"the program is not the one that was recorded: {message}. Nothing was run for this step."


def test_an_answer_that_leads_elsewhere_is_found_where_it_does(run: Runner) -> None:
    source = "x = echo(1)\ny = add(x, 1)\necho(y)"
    record = run.sandbox.run(program(source), Approver([3])).recorded
    changed = (replace(record[0], answer=Answer(value=2)), *record[1:])
    tools = Approver()
    result = run.sandbox.run(program(source, changed), tools)
    assert_stopped(result, tools)
    assert "step 2 is a call of 'add' with other arguments" in cast("Any", result.error).message
