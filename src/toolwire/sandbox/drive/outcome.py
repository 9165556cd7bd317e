"""Composes the result of a program that is over, and the texts that tell how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any, assert_never

from toolwire.sandbox.channel.frames import FailedFrame, ResultFrame
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.forked import Exit
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import Isolation, ProgramError, ProgramResult, ProgramStatus
from toolwire.sandbox.source_checks import SourceRefusal
from toolwire.sandbox.variable_rules import change_by
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.variables import VariablesChange

STOPPED = "Stopped"
REFUSED = "SourceRefused"
NOTHING_RAN = "Nothing of the program has run."
_NEARLY_S = 0.1
_SAID = {
    "finished": "the program has finished.",
    "failed": "the program has failed.",
    "cancelled": "the program was cancelled.",
    "suspended": "the program waits for a person.",
}


def compose(live: LiveProgram, end: Exit | None, isolation: Isolation, now: float) -> ProgramResult:
    """Returns the result of a program that is over."""
    status = _status(live, end)
    frame = live.end if live.stop is None else None
    value, has_value, notice = None, False, ""
    if isinstance(frame, ResultFrame):
        value, has_value, notice = frame.value, frame.has_value, frame.notice
    if live.stop == "finished":
        notice = live.detail
    return ProgramResult(
        status=status,
        value=value,
        has_value=has_value,
        stdout=live.output,
        stdout_bytes=live.printed_bytes,
        error=_error(status, live, end),
        calls=live.records(now),
        isolation=isolation,
        duration_s=now - live.started,
        cpu_s=end.cpu_s if end is not None else 0.0,
        notice=notice,
        variables=_change(live, status),
        recorded=live.replay_records,
    )


def _change(live: LiveProgram, status: ProgramStatus) -> VariablesChange | None:
    """Returns what the program changed in the variables, if it came to its own end."""
    frame = live.variables
    if frame is None or status not in ("finished", "failed", "memory"):
        return None
    return change_by(live.program, frame)


def source_error(program: Program, found: Sequence[SourceRefusal]) -> ProgramError:
    """Returns the error for a program that the source checks refuse."""
    texts = "\n".join(one.text(program.source) for one in found)
    message = "; ".join(f"line {one.line}: {one.reason}" for one in found)
    return ProgramError(type=REFUSED, message=message, traceback=texts, hint=NOTHING_RAN, line=found[0].line)


def oversize(program: Program) -> ProgramError | None:
    """Returns the error for a program that is too long; None when it is not."""
    size, cap = len(utf8_bytes(program.source)), program.limits.source_bytes
    if size <= cap:
        return None
    message = f"the program is {size:,} bytes long, at most {cap:,} are allowed"
    return ProgramError(type=REFUSED, message=message, hint="Write a shorter one, or several. Nothing of it has run.")


def not_started(error: ProgramError, isolation: Isolation, duration_s: float) -> ProgramResult:
    """Returns the result of a program that was refused."""
    return ProgramResult(
        status="failed",
        value=None,
        has_value=False,
        stdout="",
        stdout_bytes=0,
        error=error,
        calls=(),
        isolation=isolation,
        duration_s=duration_s,
        cpu_s=0.0,
    )


def _status(live: LiveProgram, end: Exit | None) -> ProgramStatus:
    if live.stop is not None:
        return live.stop
    if isinstance(live.end, ResultFrame):
        return "finished"
    if isinstance(live.end, FailedFrame):
        return "memory" if live.end.type == "MemoryError" else "failed"
    # The program ended without a last frame. The kernel's account shows if the processor limit ended it.
    return "timeout_cpu" if end is not None and _is_by_cpu_limit(end, live.limits) else "crashed"


def _is_by_cpu_limit(end: Exit, limits: Limits) -> bool:
    if not os.WIFSIGNALED(end.status):
        return False
    return os.WTERMSIG(end.status) == signal.SIGXCPU or end.cpu_s >= limits.cpu_s - _NEARLY_S


def _error(status: ProgramStatus, live: LiveProgram, end: Exit | None) -> ProgramError | None:
    if status == "finished":
        return None
    if live.stop is None and isinstance(live.end, FailedFrame):
        return _own_words(status, live.end, live.limits)
    message = reason(status, live.limits, live.detail, end)
    place = live.place
    where = f"{place.traceback.rstrip()}\n" if place and place.traceback else ""
    line = place.line if place else None
    return ProgramError(type=STOPPED, message=message, traceback=f"{where}{STOPPED}: {message}", line=line)


def _own_words(status: ProgramStatus, frame: FailedFrame, limits: Limits) -> ProgramError:
    hint = frame.hint
    if status == "memory" and not hint:
        hint = f"It needed more than {limits.memory_mb} MiB. Handle the data in smaller pieces."
    return ProgramError(type=frame.type, message=frame.message, traceback=frame.traceback, hint=hint, line=frame.line)


def reason(status: ProgramStatus, limits: Limits, detail: str, end: Exit | None) -> str:
    """Returns in one line why a program was ended, with the limit."""
    match status:
        case "timeout_cpu":
            return f"the program used more than {_number(limits.cpu_s)} s of processor time."
        case "timeout_program":
            return (
                f"the program ran for more than {_number(limits.wall_s)} s, time spent waiting for tools not counted."
            )
        case "deadline":
            return f"the program was not done {_number(limits.deadline_s)} s after its start, tools included."
        case "memory":
            return f"the program needed more than {_number(limits.memory_mb)} MiB of memory."
        case "output":
            return f"the program printed more than {limits.output_flood_bytes:,} bytes."
        case "calls":
            return f"the program made more than {count_of(limits.calls, 'tool call')}."
        case "protocol_violation":
            return f"the program's process broke the protocol: {detail}."
        case "crashed":
            return _crash(detail, end)
        case "divergence":
            return f"the program is not the one that was recorded: {detail}. Nothing was run for this step."
        case "finished" | "failed" | "cancelled" | "suspended":
            return _SAID[status]
    assert_never(status)


def _crash(detail: str, end: Exit | None) -> str:
    if detail:
        return detail
    if end is None:
        return (
            "the program's process was lost together with the one that watched it: check what its calls have done "
            "before the program is sent once more."
        )
    code = os.waitstatus_to_exitcode(end.status)
    if code >= 0:
        return f"the program's process ended with exit code {code} before the program came to its end."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return f"the program's process was killed by {name} before the program came to its end."


def _number(value: Any) -> str:
    return f"{value:g}"
