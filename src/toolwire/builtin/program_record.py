"""A program's record: the calls that its run has kept, in the form that the sandbox replays."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolwire.sandbox.answers import DROPPED, PARKED, Answer, Recorded, Replay
from toolwire.sandbox.program import AnswerError, ProgramCall
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import BoundValueError
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.run_step import Step
from toolwire.vocabulary.variables import SharedVariables

RUN_ID_DIGITS = 16
"""Hex digits of a recorded program's id: enough that two programs of one store never share it."""


class ProgramRecordHost(Protocol):
    """The path's interface for the program of a recorded run."""

    call: ToolCall
    started_at: float

    @property
    def ledger_id(self) -> str: ...
    @property
    def earlier_steps(self) -> Sequence[tuple[Step, ToolResult]]: ...
    @property
    def notes(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def variables(self) -> SharedVariables | None: ...
    def note(self, entry: Mapping[str, Any]) -> None: ...


class HostsMistakes:
    """Keeps the host's wrong bound values that a program's calls met, until the program has ended."""

    answer = Answer(
        error=AnswerError(
            type_name="",
            message="It cannot run: a value that the host sets does not fit. The host is told.",
            family="unavailable",
        )
    )
    """The answer for the program. The value and its name are only for the host."""

    def __init__(self) -> None:
        self._found: list[BoundValueError] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, BoundValueError):
            return False
        self._found.append(error)
        return True

    def raise_first(self) -> None:
        """Raises the first mistake, if there is one."""
        if self._found:
            raise self._found[0]


def program_id(inner: ProgramRecordHost) -> str:
    """Returns `tr_ptc_` and hex digits: the same for each attempt of the recorded program."""
    return f"tr_ptc_{_hash(inner)[:RUN_ID_DIGITS]}"


def replay_of(inner: ProgramRecordHost, answer: Callable[[ToolResult], Answer]) -> Replay:
    """Returns the replay that brings the program to its former place; new steps are noted in the run."""

    def note(one: Recorded) -> None:
        inner.note(_entry(one))

    return Replay(
        seed=int(_hash(inner)[RUN_ID_DIGITS:32], 16),
        started_at=inner.started_at,
        recorded=_read_records(inner, answer),
        on_recorded=note,
    )


def note_issue(inner: ProgramRecordHost, call: ProgramCall, source: str) -> None:
    """Notes that the program made this call, before the call is handled. Its line is for readers alone."""
    entry = {"ordinal": call.ordinal, "tool": call.tool, "digest": call.arguments_digest, "state": "parked"}
    # The functions of earlier programs have the lines after those of the source.
    is_own = 0 < call.line <= source.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    inner.note({**entry, "line": call.line} if is_own else entry)


def variables_of(inner: ProgramRecordHost) -> dict[str, str] | None:
    """Returns the variables that the program starts with: those on record, if it began before. None: it keeps none."""
    shared = inner.variables
    if shared is None:
        return None
    noted = next((note["variables"] for note in inner.notes if "variables" in note), None)
    if noted is not None:
        return dict(noted)
    given = shared.now()
    inner.note({"variables": given})
    return given


def _notes_of_calls(inner: ProgramRecordHost) -> list[Mapping[str, Any]]:
    return [note for note in inner.notes if "ordinal" in note]


def failure_of_removed_tool(inner: ProgramRecordHost, tools: Sequence[tuple[str, object]]) -> ToolResult | None:
    """Returns the failure of a program that called a removed tool, since it cannot be replayed; else None."""
    called = dict.fromkeys(str(note["tool"]) for note in _notes_of_calls(inner))
    there = {name for name, _ in tools} if called else set[str]()
    for name in called:
        if name not in there:
            return ToolResult.failed(
                "unknown_tool",
                f"The program was not continued: it calls {name!r}, and there is no such tool any more.",
                hint="Its finished calls took effect. Write the rest of the program without that tool.",
                data={"tool": name},
                call=inner.call,
            )
    return None


def _entry(one: Recorded) -> dict[str, Any]:
    state = "answered" if isinstance(one.answer, Answer) else one.answer.value
    return {
        "ordinal": one.ordinal,
        "tool": one.tool,
        "digest": one.arguments_digest,
        "state": state,
        "completed": one.completed,
        "at": one.at,
        "elapsed_s": one.elapsed_s,
        "after": one.after,
    }


def _read_records(inner: ProgramRecordHost, answer: Callable[[ToolResult], Answer]) -> tuple[Recorded, ...]:
    results = {step.key: result for step, result in inner.earlier_steps}
    latest: dict[int, Mapping[str, Any]] = {}
    for entry in _notes_of_calls(inner):
        known = latest.get(entry["ordinal"])
        # The note of a call's end replaces the note of its issue, whichever was written last.
        if known is None or known["state"] == "parked":
            latest[entry["ordinal"]] = entry
    found: list[Recorded] = []
    for ordinal in range(1, len(latest) + 1):
        entry = latest.get(ordinal)
        if entry is None:
            # A crash lost the note of an earlier call: the calls after it are looked up one by one.
            break
        found.append(_one(entry, results.get(f"{program_id(inner)}/{ordinal}"), answer))
    return _in_order(found)


def _one(entry: Mapping[str, Any], result: ToolResult | None, answer: Callable[[ToolResult], Answer]) -> Recorded:
    state = entry["state"]
    if state == "answered" and result is not None:
        return Recorded(
            ordinal=entry["ordinal"],
            tool=entry["tool"],
            arguments_digest=entry["digest"],
            answer=answer(result),
            completed=entry["completed"],
            at=entry["at"],
            elapsed_s=entry["elapsed_s"],
            after=entry["after"],
        )
    return Recorded(
        ordinal=entry["ordinal"],
        tool=entry["tool"],
        arguments_digest=entry["digest"],
        answer=DROPPED if state == "dropped" else PARKED,
        at=entry.get("at", 0.0),
        elapsed_s=entry.get("elapsed_s", 0.0),
        after=entry.get("after"),
    )


def _in_order(found: list[Recorded]) -> tuple[Recorded, ...]:
    """Returns the records with completions counted without gaps; the cut-off part may have left some."""
    ended = sorted((one for one in found if isinstance(one.answer, Answer)), key=lambda one: one.completed)
    places = {one.ordinal: place for place, one in enumerate(ended, 1)}
    return tuple(_with_completed(one, places.get(one.ordinal, 0)) for one in found)


def _with_completed(one: Recorded, completed: int) -> Recorded:
    return one if one.completed == completed else replace(one, completed=completed)


def _hash(inner: ProgramRecordHost) -> str:
    return hashlib.sha256(f"{inner.ledger_id}:{inner.call.id}".encode()).hexdigest()
