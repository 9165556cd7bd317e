"""The written form of every kind of record is fixed to the byte: a store that holds such bytes must open for years."""

from __future__ import annotations

import ast
import datetime
import decimal
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolwire.journal import kept_reply
from toolwire.journal.ledger.approvals import encode_decision, encode_request, encode_rule
from toolwire.journal.ledger.forms import (
    REFERRING,
    call_of,
    encode_form,
    expand_form,
    read_form,
    read_plain,
    read_result,
    read_results,
    read_run,
    read_start,
    read_step_end,
    read_summary,
    result_form,
    results_form,
    run_form,
    shorten_form,
    start_form,
    step_end_form,
)
from toolwire.journal.ledger.large_values import LargeValues
from toolwire.journal.run import RunStart
from toolwire.permission.approval import ApprovalRequest, Decider, Decision, DecisionRefused
from toolwire.permission.policy import Rule
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import Caller, Problem, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step
from toolwire.vocabulary.values import tag

AWKWARD = {
    "text": '\ud83d\x00\x7f\u2028é😀"\\/',
    "\ude00 key": "",
    "floats": [1e-05, 1.5e-07, 1e16, 1e22, 5e-324, -0.0, 123456789.125],
    "limits": [math.inf, -math.inf],
    "ints": [10**400, -(10**30), 2**63, True],
    "bytes": b"\x00\xff",
    "times": [datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC), datetime.timedelta(seconds=-1)],
    "decimal": decimal.Decimal("1.10"),
    "nested": {"a": [{"b": (1, (2,), {})}, [], None], "$t": "bytes"},
    "keys": {1: "one", None: "none"},
    "sets": [{3, 1}, frozenset({"x"})],
}
STEP = Step(key="r_1/1/2", parent="r_1/1", tool="pay\ud800", given=tag(AWKWARD), digest="sha256:1")
EMPTY_STEP = Step(key="", parent="", tool="", given={}, digest="")
CALL = ToolCall("pay", AWKWARD, id="r_1/3", raw_text="pay(\ud800)")
DEEP: Any = [TextBlock(type="text", text="t\ud800"), {"type": "tool_result", "content": [{"a": (b"\x00", [])}]}]
RESULT = ToolResult(True, AWKWARD, None, {"tags": ("a", b"\x01"), "host": object()}, content=DEEP, call=call_of(STEP))
FAILED = ToolResult.failed("limit", "no\ud800", hint="do", path="a.b[0]", data={"most": 10**30}, call=CALL)
START = Start(
    step=STEP,
    arguments=AWKWARD,
    arguments_digest="sha256:2",
    tool_digest="sha256:3",
    idempotent="key",
    is_composite=True,
    request_id="q_1",
    attempt=3,
    has_key=True,
)
EMPTY_START = Start(
    step=EMPTY_STEP, arguments={}, arguments_digest="", tool_digest="", idempotent="no", is_composite=False
)
CHEAP = {"path": "/arguments/amount", "op": "<=", "value": 5}
RULE = Rule(tool="pay*", effect="confirm", when=[CHEAP], note="r\ud800", id="rule_1")
REQUEST = ApprovalRequest(
    id="q_1",
    call_id="r_1/1/2",
    tool="pay",
    arguments=AWKWARD,
    reasons=("first\ud800", ""),
    caller=Caller(principal="ada", agent="", tenant="t"),
    run_id="r_1",
    attempt=2,
    given={"a": 1},
    effects=("spend",),
    taints=("private",),
    arguments_schema={"type": "object", "properties": {}},
    created_at=1.5e9,
    expires_at=1e-07,
)
DECISION = Decision(
    verdict="edit", arguments=AWKWARD, reason="\ud800", remember=RULE, by=Decider(principal="ada"), at=1.25
)
REPLY = Reply(
    calls=(CALL, ToolCall("x", {})),
    thought="th\ud800",
    target="",
    text="\x00",
    problems=(Problem(message="m\ud800", repaired=True, place="line 3"), Problem(message="", repaired=False)),
)
RUN = RunStart(
    run_id="r_1",
    reply=kept_reply.reply_form(REPLY),
    protocol="attp",
    caller=Caller(principal="ada", agent="a", tenant=""),
    tools={"pay": "sha256:3"},
    taints=("private",),
    engine="0.1.0",
    expires_at=4e9,
)


def short_end() -> bytes:
    """The end of a begun step whose data is the data of an earlier step."""
    shared = LargeValues()
    shared.add("r_1/1", tag(AWKWARD))
    return encode_form(shorten_form(step_end_form(STEP, RESULT), shared, is_begun=True), REFERRING)


def outcome() -> dict[str, Any]:
    """A run's results: one by reference to its step, one whole, one without a call."""
    return results_form([RESULT, FAILED, ToolResult(True)], {STEP.key: STEP}, ["", "pay(\ud800)"])


RECORDS: dict[str, Callable[[], bytes]] = {
    "start": lambda: encode_form(start_form(START)),
    "empty_start": lambda: encode_form(start_form(EMPTY_START)),
    "end": lambda: encode_form(step_end_form(STEP, RESULT)),
    "failed_end": lambda: encode_form(step_end_form(STEP, FAILED)),
    "empty_end": lambda: encode_form(step_end_form(EMPTY_STEP, ToolResult(False, None, ""))),
    "unwritable_end": lambda: encode_form(step_end_form(EMPTY_STEP, ToolResult(True, object()))),
    "short_end": short_end,
    "note": lambda: encode_form({"entry": tag(AWKWARD)}),
    "request": lambda: encode_request(REQUEST),
    "decision": lambda: encode_decision(DECISION),
    "empty_decision": lambda: encode_decision(Decision(verdict="approve")),
    "rule": lambda: encode_rule(RULE),
    "run": lambda: encode_form(run_form(RUN)),
    "empty_run": lambda: encode_form(run_form(RunStart(run_id="", reply={}, protocol=""))),
    "divergence": lambda: encode_form({"result": result_form(FAILED)}),
    "outcome": lambda: encode_form(outcome(), REFERRING),
}

GOLDEN: dict[str, bytes] = ast.literal_eval((Path(__file__).parent / "golden_records.txt").read_text("ascii"))
"""The bytes that these records had when their form was fixed."""


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_written_as_it_always_was(name: str) -> None:
    assert ascii(RECORDS[name]()) == ascii(GOLDEN[name])


READ: dict[str, tuple[Callable[[dict[str, Any]], Any], Any]] = {
    "start": (read_start, START),
    "empty_start": (read_start, EMPTY_START),
    "request": (lambda form: read_plain(ApprovalRequest, form), REQUEST),
    "decision": (lambda form: read_plain(Decision, form), DECISION),
    "empty_decision": (lambda form: read_plain(Decision, form), Decision(verdict="approve")),
    "rule": (lambda form: read_plain(Rule, form), RULE),
    "run": (read_run, RUN),
    "run_before": (read_run, RUN),
    "empty_run": (read_run, RunStart(run_id="", reply={}, protocol="")),
    "end": (lambda form: read_step_end(form)[0], STEP),
    "short_end": (lambda form: read_step_end(expand_form(form, START, {"r_1/1": tag(AWKWARD)}))[0], STEP),
    "failed_end": (lambda form: read_step_end(form)[1].failure, FAILED.failure),
    "divergence": (lambda form: read_result(form["result"], None).failure, FAILED.failure),
    "note": (lambda form: form["entry"], tag(AWKWARD)),
}


@pytest.mark.parametrize("name", READ)
def test_a_golden_record_is_read_back_without_loss(name: str) -> None:
    make, value = READ[name]
    assert read_form(GOLDEN[name], make) == value


def test_results_are_read_back_without_loss() -> None:
    _, end = read_form(GOLDEN["end"], read_step_end)
    _, short = read_form(
        GOLDEN["short_end"], lambda form: read_step_end(expand_form(form, START, {"r_1/1": tag(AWKWARD)}))
    )
    first, second, third = read_form(
        GOLDEN["outcome"], lambda form: read_results(form, {STEP.key: end}, ["", "pay(\ud800)"])
    )
    for found in (end, short, first):
        assert (found.data, found.metadata, found.blocks) == (AWKWARD, {"tags": ("a", b"\x01")}, tuple(DEEP))
    assert (second.failure, second.call, third.call) == (FAILED.failure, FAILED.call, None)
    assert kept_reply.reply_of(read_form(GOLDEN["run"], read_run).reply) == REPLY


def test_the_summary_of_a_run_is_read_without_its_reply() -> None:
    summary = (RUN.protocol, tuple(RUN.tools), RUN.caller, RUN.conversation)
    # An older one has the reply before the summary.
    assert [read_summary(GOLDEN[name]) for name in ("run", "run_before")] == [summary] * 2
    head, mark, _ = GOLDEN["run"].rpartition(b',"reply":{')
    assert read_summary(head + mark + b"not JSON") == summary
    tool = replace(RUN, tools={"reply": "sha256:a", ',"reply":{': "sha256:b"})
    assert read_summary(encode_form(run_form(tool)))[1] == tuple(tool.tools)


@pytest.mark.parametrize("wrong", [None, 5, "text", [], {}, {"$t": "no", "v": 1}], ids=ascii)
@pytest.mark.parametrize("name", [name for name in READ if name != "note"])
def test_a_record_with_a_damaged_part_is_read_or_refused_with_a_code(name: str, wrong: Any) -> None:
    form = read_form(GOLDEN[name], dict)
    codes = {refusal(encode_form({**form, key: wrong}), READ[name][0]) for key in form}
    assert codes <= {"", "bad_mac", "schema_too_new"}


def refusal(data: bytes, make: Callable[[dict[str, Any]], Any]) -> str:
    """Returns the code of the refusal, or an empty text. Every other error passes."""
    try:
        read_form(data, make)
    except DecisionRefused as refused:
        return refused.code
    return ""


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("start", {"attempt": "two"}, "Start.attempt: Input should be a valid integer, unable to parse string as an "),
        ("start", {"step": {"key": 5}}, "Start.step.key: Input should be a valid string (in a value of type int)"),
        ("end", {"step": {}}, "Step.key: Field required (in a value of type dict)"),
        ("request", {"reasons": "text"}, "ApprovalRequest.reasons: Input should be a valid tuple (in a value of type "),
    ],
)
def test_the_refusal_of_a_damaged_record_names_the_place_and_the_type(
    name: str, change: dict[str, Any], message: str
) -> None:
    make = read_step_end if name == "end" else READ[name][0]
    with pytest.raises(DecisionRefused) as refused:
        read_form(encode_form({**read_form(GOLDEN[name], dict), **change}), make)
    told = str(refused.value)
    assert (refused.value.code, told.count("\n")) == ("bad_mac", 0)
    assert f"the record in the store is not in toolwire's format: {message}" in told
