"""A model that ends its turn by a call: alone, beside others, from a program, and in runs on record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, Field, RootModel, field_validator

from tests.session.test_suspended import decided, waiting
from tests.session.till import Till, calls, program
from toolwire import (
    CallContext,
    Caller,
    ConfigurationError,
    Policy,
    Rule,
    Session,
    ToolCall,
    ToolEvent,
    Toolkit,
    ToolRegistry,
    ToolResult,
    Turn,
    protocols,
)
from toolwire.facade.built_in.finish_tool import finish_entry
from toolwire.invocation.validate import Prepared, validate
from toolwire.protocols.base import Language
from toolwire.protocols.outgoing import ENDINGS, FINISHES
from toolwire.session.dialogue import INSTEAD_OF_TEXT
from toolwire.session.finish import TurnFinish
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore
from toolwire.types import ToolCompleted

TEXT = ["attp", "json", "xml"]
RECEIVED = "It was received, and your work ends here."


class WeatherReport(BaseModel):
    """The weather of one city."""

    city: str = Field(description="The city's name")
    degrees: list[int]

    @field_validator("city")
    @classmethod
    def _known(cls, city: str) -> str:
        if city == "Atlantis":
            raise ValueError("there is no such city")
        return city


REPORT = {"city": "Oslo", "degrees": [3, 5]}


class Shop:
    """Counts things, and keeps what was counted."""

    def __init__(self) -> None:
        self.counted: list[str] = []

    def count(self, thing: str) -> int:
        """Counts a thing."""
        self.counted.append(thing)
        return len(thing)

    def session(self, **options: Any) -> Session:
        return Session([self.count], **{"finish": "answer", "protocol": "openai", **options})


def count(thing: str) -> ToolCall:
    return ToolCall("count", {"thing": thing}, id=f"c_{thing}")


def answer(text: str, id: str = "a1") -> ToolCall:
    return ToolCall("answer", {"answer": text}, id=id)


def kinds(turn: Turn) -> list[str]:
    return ["" if result.failure is None else result.failure.kind for result in turn.results]


def not_run(name: str, finish: str = "answer") -> str:
    return (
        f"'{name}' was not run: the call of '{finish}' before it had ended your work.\n"
        f"If it is needed, make it before the call of '{finish}'."
    )


# -- one reply --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", protocols.names())
def test_the_value_of_the_call_is_final_in_every_format(name: str) -> None:
    shop = Shop()
    session = shop.session(protocol=name)
    turn = session.run_turn(session.protocol.render([count("tea"), answer("There are three.")]))
    assert (turn.final, turn.answer, turn.is_final) == ("There are three.", "There are three.", True)
    assert (shop.counted, repr(turn)) == (["tea"], "<Turn final: 'There are three.'>")


@pytest.mark.parametrize("name", protocols.names())
def test_a_model_gives_its_validated_instance_in_every_format(name: str) -> None:
    session = Shop().session(protocol=name, finish=WeatherReport)
    turn = session.run_turn(session.protocol.render([ToolCall("weather_report", REPORT, id="w1")]))
    assert turn.final == WeatherReport(city="Oslo", degrees=[3, 5])
    assert (turn.answer, turn.is_final) == (None, True)


VALUES = ["There are three.", "", "10", 0, 3, -0.5, True, False, None, [], ["tea", 3, None], {}, {"tea": [3]}]


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", protocols.names())
def test_an_answer_is_any_json_value_in_every_format(name: str) -> None:
    session = Shop().session(protocol=name)
    for value in VALUES:
        made = [ToolCall("answer", {"answer": value}, id="a1")]
        turn = session.run_turn(session.protocol.render(made))
        assert (repr(turn.final), turn.answer, turn.is_final) == (repr(value), as_text(value), True)
        assert (turn.has_final, repr(turn)) == (True, f"<Turn final: {value!r:.80}>")


async def test_an_answer_of_any_value_is_on_record(store: RunStore) -> None:
    for value in (0, None, {"tea": [3]}):
        first = Shop().session(store=store, protocol="attp")
        turn = await first.turn(program(f"answer({value!r})"))
        again = await Shop().session(store=store, protocol="attp").resume(turn.run_id)
        assert [(each.final, each.answer, each.is_final) for each in (turn, again)] == [
            (value, as_text(value), True)
        ] * 2


async def test_an_answer_that_waits_for_another_call_may_be_null(store: RunStore) -> None:
    till = Till()
    session = till.session(store, finish="answer")
    turn = await session.turn(calls(("answer", {"answer": None}), ("pay", {"amount": 5})))
    assert (turn.is_final, turn.has_final, turn.final) == (True, True, None)


async def test_values_of_a_program_that_json_lacks_are_written_in_it() -> None:
    session = Shop().session(protocol="attp")
    code = "import datetime, decimal\nanswer([(1, 2), {3}, datetime.date(2026, 3, 1), decimal.Decimal('1.50'), b'x'])"
    turn = await session.turn(program(code))
    assert turn.final == [[1, 2], [3], "2026-03-01", "1.50", "eA=="]
    assert turn.answer == '[[1, 2], [3], "2026-03-01", "1.50", "eA=="]'


@pytest.mark.parametrize("name", protocols.names())
def test_until_the_model_has_ended_final_is_none(name: str) -> None:
    session = Shop().session(protocol=name)
    for reply in (session.protocol.render([count("tea")]), "An answer in plain text."):
        assert session.run_turn(reply).final is None
    assert session.run_turn(session.protocol.render([answer("three")])).final == "three"
    assert session.run_turn(session.protocol.render([count("tea")])).final is None


@pytest.mark.parametrize("name", [name for name in protocols.names() if name != "attp"])
def test_a_later_call_of_the_reply_does_not_run_and_its_result_says_so(name: str) -> None:
    shop = Shop()
    session = shop.session(protocol=name)
    made = [count("tea"), answer("three"), count("bread"), answer("five", "a2")]
    turn = session.run_turn(session.protocol.render(made))
    assert (turn.final, shop.counted) == ("three", ["tea"])
    assert [result.text for result in turn.results] == ["3", RECEIVED, not_run("count"), not_run("answer")]
    assert kinds(turn) == ["", "", "interrupted", "interrupted"]


@pytest.mark.parametrize("name", ["openai", "openai-responses", "anthropic"])
def test_each_call_id_of_a_native_format_has_its_result(name: str) -> None:
    session = Shop().session(protocol=name)
    turn = session.run_turn(session.protocol.render([count("tea"), answer("three"), count("bread")]))
    assert [result.call and result.call.id for result in turn.results] == ["c_tea", "a1", "c_bread"]
    assert all(call_id in str(turn.messages) for call_id in ("c_tea", "a1", "c_bread"))


async def test_the_calls_before_it_have_ended_when_the_model_ends() -> None:
    order, have_begun = list[str](), asyncio.Event()

    async def slow(name: str) -> None:
        """Ends after the calls that were made beside it have begun."""
        order.append(f"begins {name}")
        if len(order) == 2:
            have_begun.set()
        await have_begun.wait()
        order.append(f"ends {name}")

    session = Session([slow], protocol="openai", finish=Ending)
    Ending.order = order
    turn = await session.turn(calls(("slow", {"name": "a"}), ("slow", {"name": "b"}), ("ending", {"text": "x"})))
    assert (sorted(order), order[-1]) == (
        ["begins a", "begins b", "ends a", "ends b", "the model ends"],
        "the model ends",
    )
    assert (turn.final, kinds(turn)) == (Ending(text="x"), ["", "", ""])


class Ending(BaseModel):
    """Notes when it is made."""

    order: ClassVar[list[str]] = []
    text: str

    @field_validator("text")
    @classmethod
    def _note(cls, text: str) -> str:
        cls.order.append("the model ends")
        return text


@pytest.mark.parametrize(
    ("arguments", "mended"),
    [
        ({"city": "Oslo"}, "'degrees' is missing: give an array of integer."),
        ({"city": "Oslo", "degrees": ["warm"]}, "degrees[0]"),
        ({"city": "Atlantis", "degrees": []}, "there is no such city"),
    ],
)
def test_a_call_that_does_not_fit_ends_nothing_and_says_how_to_mend_it(
    arguments: Mapping[str, Any], mended: str
) -> None:
    shop = Shop()
    session = shop.session(finish=WeatherReport)
    turn = session.run_turn(calls(("weather_report", dict(arguments)), ("count", {"thing": "tea"})))
    assert (turn.final, turn.is_final, kinds(turn)) == (None, False, ["invalid_arguments", ""])
    assert mended in turn.results[0].text
    assert shop.counted == ["tea"]


def test_a_second_call_ends_the_turn_if_the_first_does_not_fit() -> None:
    turn = (
        Shop()
        .session(finish=WeatherReport)
        .run_turn(calls(("weather_report", {}), ("weather_report", REPORT), ("count", {"thing": "tea"})))
    )
    assert (turn.final, kinds(turn)) == (WeatherReport(**REPORT), ["invalid_arguments", "", "interrupted"])


# -- programs ---------------------------------------------------------------------------------------------------------

LATER = "print(count('tea'))\n{}\nprint('after')\ncount('bread')"
ENDINGS_OF_PROGRAMS = [
    "answer(answer='three')",
    "answer('three')",
    "try:\n    answer('three')\nexcept BaseException:\n    count('caught')\nfinally:\n    count('finally')",
    "await asyncio.gather(answer('three'), asyncio.sleep(60))",
    "asyncio.create_task(answer('three'))\nawait asyncio.sleep(60)",
]


@pytest.mark.parametrize("ending", ENDINGS_OF_PROGRAMS)
@pytest.mark.parametrize("has_store", [False, True])
def test_a_call_from_a_program_ends_the_program_there(ending: str, has_store: bool) -> None:
    shop = Shop()
    session = shop.session(protocol="attp", store=MemoryStore() if has_store else None)
    turn = session.run_turn(program(LATER.format(ending)))
    assert (turn.final, shop.counted, turn.text) == ("three", ["tea"], "3\n")
    assert [result.success for result in turn.results] == [True]


async def test_a_program_ends_there_beside_tools_that_need_a_loop() -> None:
    counted: list[str] = []

    async def count(thing: str) -> int:
        counted.append(thing)
        return len(thing)

    session = Session([count], finish="answer")
    for ending in ENDINGS_OF_PROGRAMS:
        counted.clear()
        turn = await session.turn(program(LATER.format(ending)))
        assert (turn.final, counted, turn.text) == ("three", ["tea"], "3\n"), ending


def test_without_a_finish_the_same_program_goes_on() -> None:
    shop = Shop()
    turn = Session([shop.count, answer_as_tool]).run_turn(program(LATER.format(ENDINGS_OF_PROGRAMS[0])))
    assert (turn.final, shop.counted, turn.text) == (None, ["tea", "bread"], "3\nafter\n5")


def answer_as_tool(answer: str) -> None:
    """Does nothing."""


answer_as_tool.__name__ = "answer"


def test_a_program_without_output_says_where_it_ended() -> None:
    turn = (
        Shop()
        .session(protocol="attp", finish=WeatherReport)
        .run_turn(program("weather_report(city='Oslo', degrees=[n for n in (3, 5)])"))
    )
    assert turn.final == WeatherReport(**REPORT)
    assert turn.text == "The program ended with its call of 'weather_report'."
    assert turn.results[0].metadata["program"].status == "finished"


def test_a_call_that_does_not_fit_is_an_error_to_the_program() -> None:
    shop = Shop()
    code = "try:\n    weather_report(city='Oslo')\nexcept TypeError:\n    count('caught')"
    turn = shop.session(protocol="attp", finish=WeatherReport).run_turn(program(code))
    assert (turn.final, shop.counted) == (None, ["caught"])


def test_the_results_that_a_program_found_go_into_its_answer() -> None:
    turn = Shop().session(protocol="attp").run_turn(program("answer(f\"{count('tea')} and {count('bread')}\")"))
    assert turn.final == "3 and 5"


def test_the_program_of_another_format_ends_too() -> None:
    shop = Shop()
    reply = "```python\nanswer(answer=str(count('tea')))\ncount('bread')\n```"
    turn = shop.session(protocol="json", programs=True).run_turn(reply)
    assert (turn.final, shop.counted) == ("3", ["tea"])


def test_a_call_of_the_reply_after_a_program_that_ended_does_not_run() -> None:
    shop = Shop()
    made = calls(("code_execution", {"code": "answer('three')"}), ("answer", {"answer": "five"}))
    turn = shop.session(programs=True).run_turn(made)
    assert (turn.final, turn.results[1].text) == ("three", not_run("answer"))


def test_of_calls_at_the_same_moment_the_first_one_ends_the_turn() -> None:
    entry = finish_entry("answer")
    end = TurnFinish(entry)
    made = [validate(answer(text, text), entry, ()) for text in ("first", "second")]
    taken = [end.take(each) for each in made if isinstance(each, Prepared)]
    assert [(end.final, end.call_id), *(result.text for result in taken)] == [
        ("first", "first"),
        RECEIVED,
        not_run("answer"),
    ]


# -- what does not end a turn -----------------------------------------------------------------------------------------


def test_a_tool_of_the_host_cannot_end_the_turn() -> None:
    async def ask(context: CallContext) -> str:
        """Tries to end the turn."""
        result = await context.call("answer", answer="from a tool")
        return str(result.error)

    turn = Session([ask], protocol="openai", finish="answer").run_turn(calls(("ask", {})))
    assert turn.final is None
    assert "only the model calls it" in turn.results[0].text


def test_a_call_in_the_background_does_not_end_the_turn() -> None:
    registry = ToolRegistry()
    registry.configure(background_calls=True)
    session = Session(registry, protocol="openai", finish="answer")
    started = session.run_turn(calls(("start_call", {"tool": "answer", "arguments": {"answer": "x"}})))
    started_as = started.results[0].metadata.get("background_id")
    turn = session.run_turn(calls(("poll_call", {"id": started_as, "wait_s": 5}))) if started_as else started
    assert (started.final, turn.final) == (None, None)
    assert "only the model calls it" in turn.results[0].text


# -- rules, people and lists ------------------------------------------------------------------------------------------

STRICT: list[dict[str, Any]] = [
    {"policy": [Rule(effect="deny", tool="*")]},
    {"policy": [Rule(effect="confirm", tool="*")]},
    {"policy": [Rule(effect="deny", tool="*", when=[{"path": "/arguments/thing", "op": "==", "value": "tea"}])]},
    {"visible": lambda name, _: name == "count"},
    {"visible": lambda *_: 1 / 0},
    {"always": ()},
    {"always": ["count"]},
]


@pytest.mark.parametrize("options", STRICT)
def test_no_rule_on_others_keeps_a_model_from_ending(options: dict[str, Any]) -> None:
    session = Shop().session(**options)
    assert "answer" in [tool.name for tool in session.tools]
    assert session.run_turn(calls(("answer", {"answer": "three"}))).final == "three"


def test_the_same_rules_hold_for_the_other_tools() -> None:
    shop = Shop()
    for options in STRICT[:3]:
        turn = shop.session(**options).run_turn(calls(("count", {"thing": "tea"}), ("answer", {"answer": "three"})))
        assert (shop.counted, turn.final) == ([], "three")
        assert kinds(turn)[0] in ("denied", "approval_required")


def test_middleware_of_a_registry_does_not_keep_a_model_from_ending() -> None:
    async def none(call: Any, call_next: Any) -> ToolResult:
        return ToolResult.failed("overloaded", "No calls now.")

    registry = ToolRegistry(middleware=[none])
    shop = Shop()
    registry.register(shop.count)
    turn = Session(registry, protocol="openai", finish="answer").run_turn(
        calls(("count", {"thing": "tea"}), ("answer", {"answer": "three"}))
    )
    assert (turn.final, shop.counted, kinds(turn)) == ("three", [], ["overloaded", ""])


def test_a_search_does_not_find_it_because_it_is_always_listed() -> None:
    session = Shop().session(always=())
    turn = session.run_turn(calls(("search_tools", {"query": "answer for the user that ends the work"})))
    assert "def answer" not in turn.results[0].text
    assert [tool.name for tool in session.tools] == ["search_tools", "answer"]


def test_observers_are_told_of_the_call_and_of_those_that_did_not_run() -> None:
    session, told = Shop().session(), list[tuple[str, str]]()

    def note(event: ToolEvent) -> None:
        if isinstance(event, ToolCompleted):
            told.append((event.tool, event.status))

    session.observe(note)
    session.run_turn(calls(("answer", {"answer": "three"}), ("count", {"thing": "tea"})))
    assert told == [("answer", "success"), ("count", "interrupted")]


# -- runs on record ---------------------------------------------------------------------------------------------------

PAY = ("pay", {"amount": 5})
END = ("answer", {"answer": "paid"})


async def test_a_finished_run_keeps_its_final(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, finish="answer", conversation="c").turn(calls(("price", {"thing": "tea"}), END))
    again = [await till.session(store, finish="answer").resume(run_of(store)) for _ in range(2)]
    assert [each.final for each in (turn, *again)] == ["paid"] * 3
    assert ([each.is_final for each in again], till.asked) == ([True, True], ["tea"])


def run_of(store: Any) -> str:
    (found,) = store.kept if isinstance(store, MemoryStore) else (run.run_id for run in store.runs())
    return found


async def test_a_suspended_turn_has_its_final_and_keeps_it(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, finish="answer").turn(calls(PAY, END, ("price", {"thing": "tea"})))
    assert turn.suspended is not None
    assert (turn.final, turn.is_final, turn.answer) == ("paid", False, None)
    again = await till.session(store, finish="answer").resume(turn.suspended.run_id)
    assert (again.final, again.is_final, till.paid) == ("paid", False, [])
    done = await till.session(store, finish="answer").resume(waiting(turn)[0].run_id, decided(waiting(turn), "approve"))
    assert (done.final, done.is_final, till.paid, till.asked) == ("paid", True, [5], [])
    assert [result.text for result in done.results] == ["paid 5 to shop", RECEIVED, not_run("price")]


async def test_a_call_that_a_program_ended_by_is_final_after_a_resume(store: RunStore) -> None:
    till = Till()
    code = "amount = price('tea')\npay(amount)\nanswer(f'paid {amount}')\nprice('bread')"
    turn = await till.session(store, protocol="attp", finish="answer").turn(program(code))
    assert turn.suspended is not None
    assert turn.final is None
    sessions = [till.session(store, protocol="attp", finish="answer") for _ in range(3)]
    done = await sessions[0].resume(turn.suspended.run_id, decided(waiting(turn), "approve"))
    again = [await session.resume(turn.suspended.run_id) for session in sessions[1:]]
    assert [each.final for each in (done, *again)] == ["paid 3"] * 3
    assert (till.paid, till.asked) == ([3], ["tea"])
    assert {each.text for each in (done, *again)} == {"The program ended with its call of 'answer'."}


async def test_a_program_whose_result_a_crash_lost_ends_at_the_same_call() -> None:
    till, store = Till(), MemoryStore()
    code = "print(price('tea'))\nanswer('three')\nprint(price('bread'))"
    first = await till.session(store, protocol="attp", finish="answer").turn(program(code))
    (run,) = store.kept.values()
    run.outcome, run.status = None, "running"
    run.records.ended.remove(f"{run.run_id}/1")
    run.records.steps[f"{run.run_id}/1"].result = None
    again = await till.session(store, protocol="attp", finish="answer").resume(run.run_id)
    assert [(turn.final, turn.text) for turn in (first, again)] == [("three", "3\n")] * 2
    assert till.asked == ["tea"]


async def test_a_program_that_ended_leaves_no_request_waiting(store: RunStore) -> None:
    till = Till()
    code = "await asyncio.gather(pay(1), answer('done'))"
    session = till.session(store, protocol="attp", finish="answer")
    turn = await session.turn(program(code))
    assert (turn.final, turn.suspended, till.paid) == ("done", None, [])
    again = await till.session(store, protocol="attp", finish="answer").resume(run_of(store))
    assert (again.final, till.paid, store.pending()) == ("done", [], [])


async def test_a_call_that_waits_beside_a_program_that_ended_runs_when_it_is_approved(store: RunStore) -> None:
    till = Till()
    made = calls(("code_execution", {"code": "answer('done')"}), PAY)
    turn = await till.session(store, programs=True, finish="answer", approver=None).turn(made)
    if turn.suspended is None:
        # The program had ended before the call began.
        assert turn.results[1].text == not_run("pay")
        return
    resumed = till.session(store, programs=True, finish="answer")
    done = await resumed.resume(turn.suspended.run_id, decided(waiting(turn), "approve"))
    assert (done.final, till.paid) == ("done", [5])


async def test_a_model_is_made_again_from_the_record(store: RunStore) -> None:
    till = Till()
    turn = await till.session(store, finish=WeatherReport).turn(calls(("weather_report", REPORT)))
    again = await till.session(store, finish=WeatherReport).resume(run_of(store))
    assert turn.final == again.final == WeatherReport(**REPORT)


async def test_a_model_that_changed_is_told_to_the_developer(store: RunStore) -> None:
    till = Till()
    await till.session(store, finish=WeatherReport).turn(calls(("weather_report", REPORT)))
    changed = type("WeatherReport", (BaseModel,), {"__annotations__": {"town": str}})
    with pytest.raises(ConfigurationError, match=r"'weather_report' that does not fit any more: resume it with"):
        await till.session(store, finish=changed).resume(run_of(store))


# -- what the model reads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", TEXT)
def test_the_last_line_after_clean_results_names_the_tool(name: str, language: Language) -> None:
    for finish in ("answer", None):
        session = Shop().session(protocol=name, language=language, finish=finish)
        turn = session.run_turn(session.protocol.render([count("tea")]))
        ending = ENDINGS[language] if finish is None else FINISHES[language].format("answer")
        assert turn.messages[0]["content"].splitlines()[-1] == ending


@pytest.mark.parametrize("name", TEXT)
def test_after_the_end_no_line_asks_for_more(name: str) -> None:
    session = Shop().session(protocol=name)
    turn = session.run_turn(session.protocol.render([answer("three")]))
    assert turn.messages[0]["content"] == turn.text


@pytest.mark.parametrize("name", TEXT)
def test_a_refusal_ends_with_the_name_of_the_tool(name: str) -> None:
    broken = {"attp": "[tool_call]\nstatus = ", "json": '<tool_call>{"name": ', "xml": "<tool_call><name>count"}[name]
    turn = Shop().session(protocol=name).run_turn(broken)
    assert turn.messages[0]["content"].splitlines()[-1] == INSTEAD_OF_TEXT["en"].format("answer")
    assert (
        "in place of an answer"
        not in Shop().session(protocol=name, finish=None).run_turn(broken).messages[0]["content"]
    )


def test_programs_read_the_name_that_they_write() -> None:
    session = Shop().session(protocol="attp", finish="final-answer")
    turn = session.run_turn(program("count('tea')"))
    assert "call `final_answer`" in turn.messages[0]["content"]
    assert session.run_turn(program("final_answer('x')")).final == "x"


# -- mistakes of the host ---------------------------------------------------------------------------------------------


class Count(BaseModel):
    """Has the name of a tool."""

    number: int


class Empty(BaseModel):
    """Has nothing to fill in."""


class Names(RootModel[list[str]]):
    """A list."""


@pytest.mark.parametrize(
    ("finish", "message"),
    [
        ("count", r"^finish='count': the tools have 'count' already: write another name, or rename the tool$"),
        (Count, r"^finish=Count: the tools have 'count' already: rename the model, or rename the tool$"),
        ("", r"^finish='': a name is empty"),
        ("x" * 200, r"has 200 characters: write at most 128$"),
        ("code_execution", r"^finish='code_execution': the name 'code_execution' is reserved"),
        ("search_tools", r"is reserved for a tool of toolwire or for Python: write another name$"),
        (True, r"^finish=True: write the name of a tool, such as finish='answer', or a pydantic model as a class$"),
        (5, r"^finish=5: write the name of a tool"),
        (dict, r"^finish=<class 'dict'>: write the name of a tool"),
        (WeatherReport(city="Oslo", degrees=[]), r"^finish=WeatherReport\(.*: write the name of a tool"),
        (Empty, r"^finish=Empty: .*has no fields"),
        (Names, r"^finish=Names: .*has no fields"),
    ],
)
def test_a_finish_that_cannot_be_offered_is_refused_with_what_to_write(finish: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Shop().session(finish=finish)


def test_a_name_that_programs_would_write_alike_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the tools have 'count' already"):
        Shop().session(finish="count")
    registry = ToolRegistry()
    registry.register(Shop().count, name="my.answer")
    with pytest.raises(ConfigurationError, match=r"the tools have 'my\.answer' already"):
        Session(registry, finish="my_answer")


def test_a_rule_that_names_the_tool_is_refused_because_it_would_have_no_effect() -> None:
    with pytest.raises(ConfigurationError, match="'answer'"):
        Shop().session(policy=[Rule(effect="deny", tool="answer")])
    with pytest.raises(ConfigurationError, match="'answer'"):
        Shop().session(permissions={"answer": "confirm"})
    policy = Policy([Rule(effect="deny", tool="answer")])
    toolkit = Toolkit("agent")
    with pytest.raises(ConfigurationError, match=r"a rule names 'answer', but no rule applies"):
        Session(toolkit, policy=policy, finish="answer", caller=Caller())


def test_the_registry_of_a_session_does_not_get_the_tool() -> None:
    registry = ToolRegistry()
    registry.register(Shop().count)
    Session(registry, protocol="openai", finish="answer")
    assert [tool.name for tool in Session(registry, protocol="openai").tools] == ["count"]
    Session(registry, protocol="openai", finish="answer")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("WeatherReport", "weather_report"),
        ("HTTPReport", "http_report"),
        ("Report2", "report2"),
        ("report", "report"),
        ("Page[int]", "page_int"),
        ("_Draft", "draft"),
    ],
)
def test_the_tool_of_a_model_has_its_name_in_snake_case(name: str, written: str) -> None:
    model = type(name, (BaseModel,), {"__annotations__": {"number": int}})
    assert [tool.name for tool in Shop().session(finish=model).tools] == ["count", written]
