"""`make model`, with a scripted engine in place of a model."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from benchmarks.model import __main__ as runner
from benchmarks.model.conversation import (
    FORMATS,
    TRIED,
    Format,
    Outcome,
    converse,
    prompt_of,
    read_reply,
    session_for,
)
from benchmarks.model.engines import RETRY_TEMPERATURE, Answer, EngineMissing
from benchmarks.model.tasks import OWN_TASKS, Task, read_tasks, spread

from toolwire.vocabulary.calls import Reply, ToolCall

CALL = '<tool_call>\n{"name": "country_info.capital", "arguments": {"country": "Italy"}}\n</tool_call>'
WRONG = CALL.replace('"country"', '"land"')
LIGHTS = '<tool_call>\n{"name": "lights.status", "arguments": {"room": "hall"}}\n</tool_call>'


class Scripted:
    """Gives its replies in turn, and keeps the conversations, grammars and temperatures that it was given."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[list[Mapping[str, str]]] = []
        self.grammars: list[str | None] = []
        self.temperatures: list[float] = []

    def __call__(self, messages: Sequence[Mapping[str, str]], grammar: str | None, *, temperature: float = 0) -> Answer:
        self.asked.append(list(messages))
        self.grammars.append(grammar)
        self.temperatures.append(temperature)
        return Answer(text=self.replies.pop(0), tokens_in=100, tokens_out=10)


def task(id: str = "dotted-1") -> Task:
    return next(task for task in read_tasks(OWN_TASKS) if task.id == id)


def outcome_of(engine: Scripted, form: Format = FORMATS[0], of: Task | None = None) -> Outcome:
    return asyncio.run(converse(of or task(), form, engine))


def test_a_third_of_the_own_tasks_want_several_calls_and_a_third_have_dotted_names() -> None:
    tasks = read_tasks(OWN_TASKS)
    several = [task for task in tasks if len(task.calls) > 1]
    dotted = [task for task in tasks if any("." in call.tool for call in task.calls)]
    chinese = [task for task in tasks if task.group.language == "zh"]
    assert len(tasks) >= 40
    assert min(len(several), len(dotted), len(chinese)) * 3 >= len(tasks)
    assert {len(task.group.tools) for task in tasks} <= {11, 12}
    assert len({task.id for task in tasks}) == len(tasks)


def test_a_solved_task_ends_with_plain_text_after_its_result() -> None:
    engine = Scripted(CALL, "Rome.")
    outcome = outcome_of(engine)
    assert (outcome.solved_at, outcome.ending, outcome.is_readable) == (1, "text", True)
    assert [message["role"] for message in engine.asked[1]] == ["system", "user", "assistant", "user"]
    assert engine.asked[1][3]["content"] == outcome.read[0]


def test_an_answer_that_copies_the_prompt_or_refuses_does_not_end_a_solved_task_well() -> None:
    copied = "Call only the tools listed. If none fits or is needed, answer in plain text."
    assert outcome_of(Scripted(CALL, copied)).ending == "copy"
    fail = "<fail>No.</fail>"
    xml = "<tool_call><name>country_info.capital</name><params><country>Italy</country></params></tool_call>"
    assert outcome_of(Scripted(xml, fail), Format("xml")).ending == "fail"


def test_a_solved_task_whose_model_goes_on_calling_has_not_ended() -> None:
    outcome = outcome_of(Scripted(CALL, CALL, CALL, "too late"))
    assert (outcome.solved_at, outcome.ending, len(outcome.replies)) == (1, "calls", 3)


def test_a_try_after_a_failure_counts_and_so_does_its_repetition() -> None:
    outcome = outcome_of(Scripted(WRONG, WRONG, CALL, "Rome."))
    assert (outcome.solved_at, outcome.next_tries, outcome.repeated) == (3, [False, True], 1)


def test_a_task_without_a_right_call_within_three_replies_is_not_solved() -> None:
    outcome = outcome_of(Scripted(WRONG, WRONG, WRONG, CALL))
    assert (outcome.solved_at, outcome.next_tries, outcome.ending) == (None, [False, False], None)


def test_a_call_beside_the_right_one_does_not_solve_the_task() -> None:
    outcome = outcome_of(Scripted(f"{CALL}\n{LIGHTS}", "Rome."))
    assert outcome.solved_at is None


def test_the_grammar_holds_replies_only_until_one_is_answered_without_a_failure() -> None:
    engine = Scripted(WRONG, CALL, "Rome.")
    outcome_of(engine, Format("json", has_grammar=True))
    held = [grammar is not None for grammar in engine.grammars]
    assert held == [True, True, False]


def test_only_a_program_after_a_failure_has_a_temperature() -> None:
    programs = [f"thought = ''\n[tool_call]\nstatus = 'success'\ncode = '{code}'\n" for code in ("1 / 0", "print(1)")]
    for form, replies, expected in (
        (Format("json"), (WRONG, CALL, "Rome."), [0, 0, 0]),
        (Format("attp"), (*programs, "Rome."), [0, RETRY_TEMPERATURE, 0]),
    ):
        engine = Scripted(*replies)
        outcome_of(engine, form)
        assert engine.temperatures == expected


@pytest.mark.parametrize(
    ("arguments", "is_right"),
    [
        ({"artist": "miles davis", "minutes": 45}, True),
        ({"artist": "Miles Davis", "minutes": 45.0, "shuffle": False}, True),
        ({"artist": "Miles Davis", "minutes": 45, "volume": 3}, False),
        ({"artist": "Miles Davis"}, False),
        ({"artist": "Miles Davis", "minutes": 44}, False),
    ],
)
def test_arguments_are_compared_as_a_reader_would(arguments: dict[str, object], is_right: bool) -> None:
    assert task("dotted-5").is_solved([ToolCall("music.play", arguments)], at_once=True) is is_right


def test_calls_of_a_first_reply_are_made_once_each_and_later_ones_may_be_made_again() -> None:
    twice = [ToolCall("country_info.capital", {"country": "Italy"})] * 2
    assert not task().is_solved(twice, at_once=True)
    assert task().is_solved(twice, at_once=False)


def test_fewer_tasks_are_taken_from_every_group() -> None:
    taken = spread(read_tasks(OWN_TASKS), 6)
    assert [task.group.name for task in taken] == ["office", "office", "dotted", "dotted", "zh", "zh"]


def test_a_line_that_is_not_a_task_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"group": "a", "tools": []}\n{"group": "b", "request": "x"}\n')
    with pytest.raises(ValueError, match=r"tasks\.jsonl, line 2: not a group or task"):
        read_tasks(path)


def test_the_runner_saves_each_conversation_and_prints_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = Scripted('{"name": "get_weather", "arguments": {"city": "Oslo"}}', "Clear.")
    monkeypatch.setattr(runner, "load_engine", lambda model, *, threads: engine)
    saved = tmp_path / "saved.jsonl"
    assert runner.main(["model.gguf", "--tasks", "1", "--formats", "json", "--save", str(saved)]) == 0
    (line,) = saved.read_text("utf-8").splitlines()
    assert json.loads(line)["solved_at"] == 1
    header, row = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["tasks", "readable"]
    assert row.split() == ["json", "1", "1", "1", "1", "0", "of", "0", "0", "1", "of", "1", "0", "100", "10"]


def test_a_missing_model_or_engine_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runner.main([str(tmp_path / "no.gguf")]) == 2
    assert "give the path of a GGUF file" in capsys.readouterr().err
    model = tmp_path / "model.gguf"
    model.write_bytes(b"")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineMissing, match="uv pip install"):
        runner.load_engine(model, threads=1)


PROGRAM = "thought = \"Go.\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"go\"\ncode = '''\n{}\n'''\n"


def test_programs_of_one_reply_run_as_one_in_the_form_that_joins_them() -> None:
    several = Reply(calls=tuple(ToolCall("code_execution", {"code": code}) for code in ("x = 1", "print(x)")))
    reading: Any = SimpleNamespace(protocol=SimpleNamespace(parse=lambda text, tools: several), tools=[])
    (joined,) = read_reply("", reading, "joined").calls
    assert joined.arguments == {"code": "x = 1\nprint(x)"}
    one = replace(several, calls=several.calls[:1])
    reading.protocol.parse = lambda text, tools: one
    assert read_reply("", reading, "joined") == one
    assert read_reply("text", reading, "") == "text"


def test_the_example_answers_from_the_program_in_the_form_that_tries_it() -> None:
    session = session_for(task(), "attp", [], "answer")
    assert "\nanswer(answer=" in session.system_prompt
    prompt = prompt_of(session, "answer")
    assert "answer(answer=" not in prompt
    assert re.search(r"^answer\(first\)$|^answer\(f\"", prompt, re.MULTILINE)
    engine = Scripted(PROGRAM.format("first = country_info_capital(country='Italy')\nanswer(first)"))
    outcome = outcome_of(engine, TRIED[1])
    assert engine.asked[0][0]["content"] == prompt
    assert (outcome.format, outcome.solved_at, outcome.ending) == ("attp+answer", 1, "text")


def test_a_program_has_the_variables_of_the_one_before_in_the_form_that_keeps_them() -> None:
    engine = Scripted(
        PROGRAM.format("where = 'Italy'\n1 / 0"), PROGRAM.format("country_info_capital(country=where)"), "x"
    )
    assert outcome_of(engine, TRIED[2]).solved_at == 2
    assert runner._formats("attp,attp+joined") == [FORMATS[2], TRIED[0]]
