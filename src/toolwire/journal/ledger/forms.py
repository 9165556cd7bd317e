"""The written forms of sealed data: results, steps, requests, decisions and starts of runs. They hold data only."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from toolwire.journal.ledger.large_values import IN_DATA, LargeValues, are_data, blocks_in, whole
from toolwire.journal.run import RunStart
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.exact import dumper
from toolwire.vocabulary.failures import FAILURE_RULES, Failure
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Start, Step
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes, utf8_text
from toolwire.vocabulary.values import tag, untag

T = TypeVar("T")

FORM = 5
"""The newest form that this version reads. It goes up when a form changes its meaning; older forms are still read."""

GIVEN = 5
"""The form of a note with variables of earlier programs. An older toolwire would replay the program without them."""

ONCE = 4
"""The form of a large record whose blocks are its data, written once."""

ASKING = 3
"""The form of a question. An older toolwire would read it as a request for approval."""

REFERRING = 2
"""The form of a record that refers to other records."""

TOOL_END = "\n"
"""Stands around each name in the column of a run's tools. No name of a tool holds it."""

WHOLE = 1
"""The form of a record that refers to no other record. Every record that is not large has it."""


def _refuse_value(value: Any) -> Any:
    raise TypeError(f"a record cannot hold a {type(value).__name__}")


_encoded = dumper(_refuse_value, allow_nan=True)


# Computed once: `dataclasses.fields` inspects the whole class, and every record needs both.
_START_FIELDS = tuple(field.name for field in dataclasses.fields(Start))
_STEP_FIELDS = tuple(field.name for field in dataclasses.fields(Step))
# Variables have a note of their own, so that a list of runs does not read them.
_RUN_FIELDS = tuple(field.name for field in dataclasses.fields(RunStart) if field.name not in ("reply", "variables"))
_start_values = attrgetter(*_START_FIELDS)
_step_values = attrgetter(*_STEP_FIELDS)
_run_values = attrgetter(*_RUN_FIELDS)


def encode_form(form: Mapping[str, Any], version: int = WHOLE) -> bytes:
    """Encodes a form as bytes."""
    return utf8_bytes(_encoded({"form": version, **form}))


def read_form(data: bytes, make: Callable[[dict[str, Any]], T]) -> T:
    """Decodes a form and returns the result of `make`.

    Raises:
        DecisionRefused: `schema_too_new`, or `bad_mac` for a form that toolwire did not write.
    """
    try:
        form = json.loads(utf8_text(data))
        if form["form"] > FORM:
            raise DecisionRefused("schema_too_new", "it was written by a newer toolwire: upgrade toolwire")
        return make(form)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise DecisionRefused("bad_mac", f"the record in the store is not in toolwire's format: {error}") from error


def result_form(result: ToolResult) -> dict[str, Any]:
    """Returns the form of a result, without its call and its exception object."""
    failure = result.failure
    blocks, data = _blocks(result), None
    try:
        data = tag(result.data)
    except Unrepresentable as error:
        blocks = blocks or [TextBlock(type="text", text=f"<{error}>")]
    kept = None
    if failure is not None:
        facts = _representable(failure.data)
        kept = {"kind": failure.kind, "hint": failure.hint, "path": failure.path, "data": facts}
    return {
        "success": result.success,
        "data": data,
        "error": result.error,
        "metadata": _representable(result.metadata),
        "blocks": blocks,
        "failure": kept,
    }


def read_result(form: Mapping[str, Any], call: ToolCall | None) -> ToolResult:
    """Returns the result that a form holds.

    Raises:
        ValueError: The form has an unknown kind of failure.
    """
    kept, failure = form["failure"], None
    if kept is not None:
        if kept["kind"] not in FAILURE_RULES:
            raise ValueError(f"unknown kind of failure: {kept['kind']!r}")
        failure = Failure(kind=kept["kind"], hint=kept["hint"], path=kept["path"], data=_untag_values(kept["data"]))
    return ToolResult(
        form["success"],
        untag(form["data"]),
        form["error"],
        _untag_values(form["metadata"]),
        content=tuple(untag(block) for block in form["blocks"]),
        failure=failure,
        call=call,
    )


def step_end_form(step: Step, result: ToolResult) -> dict[str, Any]:
    """Returns the form of a step that ended."""
    return {"step": _step_form(step), "result": result_form(result)}


def read_step_end(form: Mapping[str, Any]) -> tuple[Step, ToolResult]:
    """Returns the step and its result. The result carries the step's call."""
    step = _read_dataclass(Step, form["step"])
    return step, read_result(form["result"], call_of(step))


def shorten_form(form: Mapping[str, Any], shared: LargeValues, *, is_begun: bool) -> dict[str, Any]:
    """Returns the form of an ended step without data on record elsewhere.

    These are the arguments of a step that was begun, large values, and blocks that are the data.
    """
    step, result = dict(form["step"]), form["result"]
    if is_begun:
        del step["given"]
    values = {name: shared.shorten(result[name]) for name in _LARGE}
    if are_data(result["blocks"], result["data"]):
        values["blocks"] = IN_DATA
    return {"step": step, "result": {**result, **values}}


_LARGE = ("data", "blocks", "metadata")
"""The parts of a result that can hold another step's value. The metadata of a program hold the results of its calls."""


def expand_form(form: Mapping[str, Any], start: Start | None, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Restores a form that `shorten_form` made. `data` maps the key of each earlier step to its tagged data."""
    if form["form"] == WHOLE:
        return form
    step, result = form["step"], form["result"]
    if "given" not in step and start is not None:
        step = {**step, "given": start.step.given}
    values = {name: whole(result[name], data) for name in _LARGE}
    if result["blocks"] == IN_DATA:
        values["blocks"] = blocks_in(values["data"])
    return {**form, "step": step, "result": {**result, **values}}


def call_of(step: Step) -> ToolCall:
    """Returns the call that the step records."""
    return ToolCall(step.tool, untag(step.given), id=step.key, parent=step.parent)


def start_form(start: Start) -> dict[str, Any]:
    """Returns the form of a step that is about to run."""
    kept = dict(zip(_START_FIELDS, _start_values(start), strict=True))
    kept["arguments"], kept["step"] = tag(start.arguments), _step_form(start.step)
    return kept


def read_start(form: Mapping[str, Any]) -> Start:
    """Returns the `Start` that a form holds."""
    return _read_dataclass(Start, {**form, "arguments": untag(form["arguments"])})


def run_form(start: RunStart) -> dict[str, Any]:
    """Returns the form of a run's start. Its reply is in JSON types already."""
    form = tag(dict(zip(_RUN_FIELDS, _run_values(start), strict=True)))
    if not start.conversation:
        # The form of a run without a conversation is as old as the first store.
        del form["conversation"]
    # The last one, so that a list of runs does not decode it.
    return {**form, "reply": dict(start.reply)}


def read_run(form: Mapping[str, Any]) -> RunStart:
    """Returns the start of a run that a form holds."""
    return dataclasses.replace(read_plain(RunStart, {**form, "reply": {}}), reply=form["reply"])


def read_summary(data: bytes) -> tuple[str, tuple[str, ...], Caller, str]:
    """Returns the protocol, the tools, the caller and the conversation of a run's start.

    It decodes no reply, so that a list is cheap. Only older runs have the reply before these.

    Raises:
        DecisionRefused: As `read_form`.
    """
    head, mark, _ = data.partition(_BEFORE_REPLY)
    return read_form(head + b"}" if mark and _PROTOCOL in head else data, _summary_of)


_PROTOCOL, _BEFORE_REPLY = b',"protocol":', b',"reply":{'
"""No text holds these bytes: a quote in a text is escaped. No other member of a run is an object named `reply`."""


def _summary_of(form: Mapping[str, Any]) -> tuple[str, tuple[str, ...], Caller, str]:
    caller = _read_dataclass(Caller, untag(form["caller"]))
    return form["protocol"], tuple(untag(form["tools"])), caller, form.get("conversation", "")


def tools_text(tools: Iterable[str]) -> str:
    """Returns the column by which runs of a tool are found: each name between two line ends."""
    return "".join([TOOL_END, *(f"{name}{TOOL_END}" for name in tools)])


def texts_of(start: RunStart) -> list[str]:
    """Returns the model's own text for each call of the run."""
    return [call.get("raw_text", "") for call in start.reply.get("calls", ())]


def results_form(results: Sequence[ToolResult], steps: Mapping[str, Step], texts: Sequence[str]) -> dict[str, Any]:
    """Returns the form of a run's results, each with its call.

    A result whose call is in `steps` is written as a reference to that step. `texts` holds the model's own text for
    each call.
    """
    return {
        "results": [
            _outcome_form(result, steps, text)
            for result, text in zip(results, chain(texts, repeat(None)), strict=False)
        ]
    }


def read_results(
    form: Mapping[str, Any], steps: Mapping[str, ToolResult | None], texts: Sequence[str]
) -> tuple[ToolResult, ...]:
    """Returns the results that a form holds. `steps` maps the key of each step of the run to its result.

    Raises:
        LookupError: The form refers to a step that is missing.
    """
    return tuple(
        _read_outcome(one, steps, text) for one, text in zip(form["results"], chain(texts, repeat(None)), strict=False)
    )


def _outcome_form(result: ToolResult, steps: Mapping[str, Step], text: str | None) -> dict[str, Any]:
    call = result.call
    if call is None or call.id not in steps:
        return {"call": _call_form(call), "result": result_form(result)}
    form = _call_form(call)
    assert form is not None
    # A person may have edited the arguments, so the result's call can differ from the step's.
    if form["arguments"] == steps[call.id].given:
        del form["arguments"]
    if form["raw_text"] == text:
        del form["raw_text"]
    return {"step": call.id, "call": form}


def _read_outcome(form: Mapping[str, Any], steps: Mapping[str, ToolResult | None], text: str | None) -> ToolResult:
    if "step" not in form:
        return read_result(form["result"], _read_call(form["call"]))
    result = steps.get(form["step"])
    if result is None or result.call is None:
        raise LookupError(f"step {form['step']} is missing")
    call = {"arguments": _representable(result.call.arguments), "raw_text": text, **form["call"]}
    return dataclasses.replace(result, call=_read_call(call))


def plain_form(value: object) -> dict[str, Any]:
    """Returns the form of a dataclass with simple fields: a request, a decision or a rule."""
    return {name: tag(getattr(value, name)) for name in _field_names(cast("type[Any]", type(value)))}


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def read_plain(kind: type[T], form: Mapping[str, Any]) -> T:
    """Returns the dataclass that a form holds. Fields that this version does not know are ignored.

    Raises:
        ValueError: The form does not fit the dataclass.
    """
    names = _field_names(kind)
    values = {name: value for name, value in form.items() if name in names}
    # Most fields are texts and numbers, which no tag stands around.
    values.update({name: untag(value) for name, value in values.items() if type(value) in (dict, list)})
    return _read_dataclass(kind, values)


def _read_dataclass(kind: type[T], values: Mapping[str, Any]) -> T:
    """Builds a dataclass from the types that JSON has. It ignores fields that the dataclass lacks."""
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (kind.__name__, *first["loc"])))
        raise ValueError(f"{place}: {first['msg']} (in a value of type {type(first['input']).__name__})") from error


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def _step_form(step: Step) -> dict[str, Any]:
    return dict(zip(_STEP_FIELDS, _step_values(step), strict=True))


def _call_form(call: ToolCall | None) -> dict[str, Any] | None:
    if call is None:
        return None
    return {
        "name": call.name,
        "arguments": _representable(call.arguments),
        "id": call.id,
        "parent": call.parent,
        "raw_text": call.raw_text,
    }


def _read_call(form: Mapping[str, Any] | None) -> ToolCall | None:
    if form is None:
        return None
    arguments = _untag_values(form["arguments"])
    return ToolCall(form["name"], arguments, id=form["id"], parent=form["parent"], raw_text=form["raw_text"])


def _blocks(result: ToolResult) -> list[Any]:
    try:
        return [tag(block) for block in result.blocks]
    except Unrepresentable:
        return [TextBlock(type="text", text=result.text)]


def _representable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tagged entries that have a written form.

    The others are the host's own objects, useless after the run.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        try:
            found[str(name)] = tag(value)
        except Unrepresentable:
            continue
    return found


def _untag_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: untag(value) for name, value in values.items()}
