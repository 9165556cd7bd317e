"""`code_execution`: runs a program that a model wrote. Its only effects are the calls that the program makes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from toolwire.builtin.program_record import (
    HostsMistakes,
    ProgramRecordHost,
    failure_of_removed_tool,
    note_issue,
    program_id,
    replay_of,
    variables_of,
)
from toolwire.definition.from_schema import from_schema
from toolwire.definition.naming import program_name, program_path
from toolwire.definition.renderings.python_text import sections, signature_line
from toolwire.definition.tool import Tool, Validated
from toolwire.sandbox.admission import Overloaded
from toolwire.sandbox.limits import Limits, require_limits
from toolwire.sandbox.program import (
    PARKED,
    Answer,
    AnswerError,
    AnswerFamily,
    Parked,
    Program,
    ProgramCall,
    ProgramParameter,
    ProgramTool,
    Replay,
    require_isolation,
    require_modules,
)
from toolwire.sandbox.program_failure import STOPPED, hint_of
from toolwire.sandbox.report import CallStatus, MinIsolation, ProgramResult
from toolwire.sandbox.runner import CallHandlers, LaterAnswer, ProgramRunner, usual_isolation
from toolwire.sandbox.variable_rules import usable_variables, variables_note
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.calls import CODE_EXECUTION, PROGRAM_MODULES, ToolCall
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.model_text import media_apart
from toolwire.vocabulary.results import Outcome, Pending, ToolResult

if TYPE_CHECKING:
    from toolwire.runtime.loop_calls import LoopCalls

ID_BYTES = 16
"""Random bytes of a program's id if its calls are not on record. The id is a part of their idempotency keys."""

DESCRIPTION = (
    "Run a Python program that calls the other tools as functions. Only its printed output and its "
    "result (assigned to __result__, or its last expression) come back."
)

KEPT = "Plain variables and functions of your earlier programs are still there."
"""Stands in the description if they are."""

ENDED = "The program ended with its call of {!r}."
"""The text of a program without output whose call ended the turn."""

FAMILIES: Mapping[FailureKind, AnswerFamily] = {
    "denied": "denied",
    "approval_required": "denied",
    "approval_expired": "denied",
    "approval_mismatch": "denied",
    "invalid_arguments": "arguments",
    "timeout": "timeout",
    "unknown_outcome": "timeout",
    "limit": "limit",
    "overloaded": "limit",
    "unknown_tool": "unavailable",
    "inactive_tool": "unavailable",
    "unavailable": "unavailable",
}
"""The exception class that a failed call raises in the program, by kind of failure; any other kind is a plain
ToolError.
"""

NOT_ANSWERED: frozenset[CallStatus] = frozenset({"cancelled", "dropped", "not_started"})
"""States of a call that the program did not wait for."""

_READS_DOCSTRINGS = re.compile(r"__doc__|\bhelp\b|\bgetattr\b")
"""Found in each program that reads a docstring. Other programs get no docstrings: making and sending them takes time.
"""


class ProgramHost(ProgramRecordHost, Protocol):
    """The path's interface for a tool that makes calls of its own."""

    @property
    def can_suspend(self) -> bool: ...
    @property
    def ending_call_id(self) -> str: ...
    @property
    def tools(self) -> Sequence[tuple[str, Tool]]: ...
    @property
    def is_blocking(self) -> bool: ...
    @property
    def has_deferred_tools(self) -> bool: ...
    @property
    def deadline(self) -> float | None: ...
    @property
    def result_limit_bytes(self) -> int | None: ...
    def is_call_deferred(self, name: str) -> bool: ...
    def is_nameable(self, name: str) -> bool: ...
    def loop_calls(self) -> LoopCalls: ...
    def async_calls(self, run_id: str) -> Callable[[ToolCall], Coroutine[Any, Any, Outcome | None]]: ...
    def blocking_calls(self, run_id: str) -> Callable[[ToolCall], Outcome | None]: ...
    async def end_calls(self, limit_s: float) -> list[ToolCall]: ...
    def tell_not_started(self, call: ToolCall, run_id: str) -> None: ...


def code_execution_tool(
    tools: Callable[[], Iterable[tuple[str, Tool]]],
    modules: Sequence[str] = PROGRAM_MODULES,
    function: Callable[[str], ToolResult] | None = None,
    *,
    keeps_variables: bool = False,
) -> Tool:
    """Returns the tool as models see it. Its description lists the signatures of `tools()`, read anew each time.

    With `keeps_variables` it says that variables of earlier programs are there. `function` runs a program for an owner
    who calls the tool itself, and not by a registry.
    """
    usable = f"Modules that it may import: {' '.join(modules)}."
    if keeps_variables:
        usable = f"{KEPT} {usable}"

    def describe() -> str:
        signatures = [f"- {signature_line(tool, program_name(name))}" for name, tool in tools()]
        return "\n".join(
            [
                f"{DESCRIPTION} {usable}",
                "A program may call:" if signatures else "There are no tools to call.",
                *signatures,
            ]
        )

    return from_schema(
        name=CODE_EXECUTION,
        description=describe,
        input_schema={
            "type": "object",
            "properties": {"code": {"type": "string", "description": "The Python source text"}},
            "required": ["code"],
            "additionalProperties": False,
        },
        function=function,
    )


class CodeExecution:
    """Runs programs in a sandbox; each call that a program makes goes down the same path as the program's own call."""

    def __init__(
        self,
        runner: Callable[[], ProgramRunner],
        *,
        limits: Limits,
        source_checks: bool = True,
        min_isolation: MinIsolation | None = None,
        modules: Iterable[str] | None = None,
        keeps_variables: bool = False,
    ) -> None:
        self._runner = runner
        self.limits = require_limits(limits)
        self.modules = require_modules(modules)
        self.keeps_variables = keeps_variables
        """True if models read that a program has the variables of earlier ones."""
        self.source_checks = source_checks
        self.min_isolation: MinIsolation | None = None if min_isolation is None else require_isolation(min_isolation)
        """The least isolation that was asked for; None: that of the runner that this machine gives."""
        self.last_invocation_id: str | None = None
        """`tr_ptc_` and hex digits: the id that all calls of the program that ended last share; None before the first.
        """

    async def __call__(self, validated: Validated, inner: ProgramHost) -> Outcome:
        """Runs the program and returns its output and result as text; `metadata["program"]` has the whole
        `ProgramResult`.

        `metadata["isolation"]` is the isolation between the program and the host, for the log. A program that can go on
        only after its waiting calls gives `Pending` with them, if calls may wait for a person.
        """
        gone = failure_of_removed_tool(inner, inner.tools)
        if gone is not None:
            return gone
        waiting: list[Pending] = []
        try:
            result = await self.run(validated.values["code"], inner, waiting)
        except Overloaded as overloaded:
            return ToolResult.failed("overloaded", str(overloaded), call=inner.call)
        if result.status == "suspended":
            ids = (request_id for pending in waiting for request_id in pending.request_ids)
            return Pending(call=inner.call, request_ids=tuple(sorted(ids)))
        return result_of_program(result, inner)

    async def run(self, source: str, inner: ProgramHost, waiting: list[Pending] | None = None) -> ProgramResult:
        """Runs the program and returns how it ended; `waiting` receives its calls that wait for a person.

        Raises:
            Overloaded: too many programs are running already.
            SandboxUnavailable: no sandbox as strong as `min_isolation` can be had here.
            BoundValueError: a call of the program would have used a bound value of the host that does not fit. It is
                raised after the program has ended.
        """
        is_kept = inner.can_suspend and bool(inner.ledger_id)
        run_id = program_id(inner) if is_kept else f"tr_ptc_{os.urandom(ID_BYTES).hex()}"
        runner = self._runner()
        program = self._program(source, inner, replay_of(inner, _answer_from) if is_kept else None, runner)
        program, refused = _program_with_variables(program, inner)
        begun: set[int] = set()

        # The host numbers and names the calls: it never trusts the program's own claims.
        def child(call: ProgramCall) -> ToolCall:
            begun.add(call.ordinal)
            if is_kept:
                note_issue(inner, call, source)
            return ToolCall(call.tool, call.arguments, id=f"{run_id}/{call.ordinal}", parent=inner.call.id)

        def answer_or_park(outcome: Outcome | None, made: ToolCall) -> Answer | Parked:
            if outcome is None:
                return PARKED
            if isinstance(outcome, ToolResult):
                is_end = made.id == inner.ending_call_id
                return Answer(ends=ENDED.format(made.name)) if is_end else _answer_from(outcome)
            if waiting is not None:
                waiting.append(outcome)
            return PARKED

        mistakes = HostsMistakes()
        invoke_here, invoke = inner.blocking_calls(run_id), inner.async_calls(run_id)

        def answer(call: ProgramCall) -> Answer | Parked:
            made = child(call)
            with mistakes:
                return answer_or_park(invoke_here(made), made)
            return mistakes.answer

        async def answer_later(call: ProgramCall) -> Answer | Parked:
            made = child(call)
            with mistakes:
                return answer_or_park(await invoke(made), made)
            return mistakes.answer

        try:
            result = await _run_program(runner, program, inner, answer, answer_later)
        except BaseException:
            # Without an event loop only an interrupt of the process leads here.
            if not inner.is_blocking:
                await inner.end_calls(self.limits.cleanup_s)
            raise
        result = _with_variables(replace(result, invocation_id=run_id), inner, refused)
        self.last_invocation_id = run_id
        _note_left(result, begun, await inner.end_calls(self.limits.cleanup_s), inner)
        mistakes.raise_first()
        return result

    def _program(self, source: str, inner: ProgramHost, replay: Replay | None, runner: ProgramRunner) -> Program:
        limits = self.limits
        if inner.deadline is not None:
            left = max(inner.deadline - time.monotonic(), 0.001)
            limits = replace(limits, deadline_s=min(limits.deadline_s, left))
        is_told = _READS_DOCSTRINGS.search(source) is not None
        return Program(
            source=source,
            tools=tuple(
                program_tool(name, tool, is_told=is_told, is_nameable=inner.is_nameable(name))
                for name, tool in inner.tools
            ),
            limits=limits,
            source_checks=self.source_checks,
            min_isolation=self.min_isolation or usual_isolation(runner),
            modules=self.modules,
            replay=replay,
        )


async def _run_program(
    runner: ProgramRunner,
    program: Program,
    inner: ProgramHost,
    answer: Callable[[ProgramCall], Answer | Parked],
    answer_later: Callable[[ProgramCall], Coroutine[Any, Any, Answer | Parked]],
) -> ProgramResult:
    if inner.is_blocking:
        return runner.run(program, answer)
    if not inner.has_deferred_tools:
        return await runner.run_beside(program, answer)
    async with inner.loop_calls() as calls:

        def start(call: ProgramCall, ended: Callable[[LaterAnswer], None]) -> Callable[[], None] | None:
            return calls.start(lambda: answer_later(call), ended) if inner.is_call_deferred(call.tool) else None

        # A plain call is answered in the program's own thread, whatever other tools there are.
        return await runner.run_beside(program, CallHandlers(answer, start))


def _program_with_variables(program: Program, inner: ProgramHost) -> tuple[Program, dict[str, str]]:
    """Returns the program with the variables that it starts with, and those refused to it, each with the reason."""
    variables = variables_of(inner)
    if variables is None:
        return program, {}
    usable, refused = usable_variables(variables, program)
    return replace(program, variables=usable), refused


def _with_variables(result: ProgramResult, inner: ProgramHost, refused: Mapping[str, str]) -> ProgramResult:
    """Passes on what the program has changed in the variables, and notes what is not kept.

    `refused` are the variables of earlier programs that it could not have, each with the reason.
    """
    shared, change = inner.variables, result.variables
    if shared is None:
        return result
    if change is not None:
        left_out = {**refused, **change.left_out}
        change = replace(change, removed=(*change.removed, *refused), left_out=left_out)
        shared.change(inner.call.id, change)
    note = variables_note(result, refused if change is None else change.left_out, shared.language)
    return replace(result, variables=change, variables_note=note)


def _note_left(result: ProgramResult, begun: set[int], running: Sequence[ToolCall], inner: ProgramHost) -> None:
    """Notes which calls still run and which never began, and tells the observers of the latter."""
    ids, run_id = {call.id for call in running}, result.invocation_id
    for record in result.calls:
        made = ToolCall(record.tool, record.arguments, id=f"{run_id}/{record.ordinal}", parent=inner.call.id)
        if made.id in ids:
            record.status = "running"
        elif record.ordinal not in begun and record.status in NOT_ANSWERED and not record.replayed:
            record.status = "not_started"
            inner.tell_not_started(made, run_id)


def program_tool(name: str, tool: Tool, *, is_told: bool, is_nameable: bool = True) -> ProgramTool:
    """Returns a tool as the sandbox describes it to a program; with `is_told` also the annotated signature and
    docstring. Hints name it only with `is_nameable`.
    """
    written = program_name(name)
    return ProgramTool(
        name=name,
        program_name=written,
        path=program_path(name),
        is_nameable=is_nameable,
        signature=signature_line(tool, written) if is_told else "",
        docstring="\n\n".join(sections(tool, lambda _: written)) if is_told else "",
        parameters=tuple(
            ProgramParameter(
                name=parameter.name,
                program_name=parameter.program_name,
                kind=parameter.kind,
                required=parameter.required,
            )
            for parameter in tool.visible_parameters
        ),
        raises=tool.raises,
    )


def _answer_from(result: ToolResult) -> Answer:
    failure = result.failure
    if failure is None:
        return Answer(value=result.text if result.data is None and result.blocks else result.data)
    family = FAMILIES.get(failure.kind, "tool")
    name = failure.data.get("exception", "ToolError") if failure.kind == "tool_error" else ""
    message = failure.data.get("message", result.error) if failure.kind == "tool_error" else result.text
    return Answer(error=AnswerError(type_name=name, message=message, family=family))


def result_of_program(result: ProgramResult, inner: ProgramHost) -> ToolResult:
    """Returns the result of the call that ran the program."""
    isolation = {"level": result.isolation.level, "report": dict(result.isolation.report)}
    metadata: dict[str, Any] = {"isolation": isolation, "invocation_id": result.invocation_id}
    if result.variables is not None:
        # On record once, in the form that a later pass over the run reads.
        metadata["variables"] = result.variables.form
    metadata["program"] = replace(result, variables=None)
    # Output and result are cut separately: a flood of prints must not displace the result.
    text = result.text_within(inner.result_limit_bytes)
    if result.status == "finished":
        _, media = media_apart(result.value)
        content = (TextBlock(type="text", text=text), *media)
        return ToolResult(True, text, None, metadata, content=content, call=inner.call)
    return ToolResult.failed(
        STOPPED.get(result.status, "tool_error"),
        text,
        hint=hint_of(result),
        data={"status": result.status},
        metadata=metadata,
        call=inner.call,
    )
