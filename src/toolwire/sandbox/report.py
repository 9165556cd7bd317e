"""What comes out of the sandbox: how a program ended, what it printed, what it called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from toolwire.sandbox.answers import Recorded
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.text import cut_text, kept_text
from toolwire.vocabulary.values import show

ProgramStatus = Literal[
    "finished",
    "failed",
    "timeout_cpu",
    "timeout_program",
    "deadline",
    "memory",
    "output",
    "calls",
    "protocol_violation",
    "crashed",
    "cancelled",
    "suspended",
    "divergence",
]
CallStatus = Literal["answered", "failed", "dropped", "parked", "unknown"]
IsolationLevel = Literal["none", "process", "kernel", "kernel+namespaces"]
"""From the least to the most. At `none` not even the kernel's limits hold: nothing runs, whatever is asked for."""
MinIsolation = Literal["process", "kernel", "kernel+namespaces"]
LEVELS: tuple[IsolationLevel, ...] = get_args(IsolationLevel)

NOTHING_TO_SHOW = (
    "The program ended without output and without a result. Assign the result to __result__, or print what matters."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramError:
    """Why a program did not finish, or what it did not catch."""

    type: str
    """Name of the exception, `SourceRefused` for a program that was not started, `Stopped` for one that was ended."""
    message: str
    """What happened, in one or two sentences."""
    traceback: str = ""
    """Where, as Python writes it: only lines of the program. Ends with the exception; empty when not known."""
    hint: str = ""
    """What was probably meant; empty when we cannot tell."""
    line: int | None = None
    """The program's line; None when not known."""


@dataclass(slots=True, kw_only=True)
class CallRecord:
    """One call as the host saw it. Filled while the program runs: not frozen, as one is made for each call."""

    ordinal: int
    """Position among the program's calls, from 1, in order of issue."""
    tool: str
    """The name the tool is registered under."""
    arguments: dict[str, Any]
    """By parameter name, as the tool's call received them."""
    status: CallStatus
    """`dropped`: the program stopped waiting for it. `parked`: it waits for a person. `unknown`: the program ended
    before it was answered."""
    duration_ms: float = 0.0
    """Milliseconds until its answer, or until the program's end."""
    arguments_digest: str = ""
    """As `ProgramCall.arguments_digest`."""
    completed: int = 0
    """Place in the order of completion, from 1; 0 without an answer, or in a program that is not resumable."""
    replayed: bool = False
    """Its answer, or that it was dropped, came from the record: nothing was run for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What stood between the program and the host."""

    level: IsolationLevel
    """The level that was observed, not the one asked for."""
    report: dict[str, str]
    """Layer by layer, what a child that ran into it found when the zygote started."""

    def reaches(self, least: IsolationLevel) -> bool:
        """Whether it is as strong as `least`, and strong enough to run anything at all."""
        return LEVELS.index(self.level) >= max(LEVELS.index(least), LEVELS.index("process"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """How a program ended. What it printed and called until then is kept, however it ended."""

    status: ProgramStatus
    """Why it is over."""
    value: Any
    """Its result; None when `has_value` is false."""
    has_value: bool
    """`__result__` was assigned, or the last line is an expression that is not None."""
    stdout: str
    """What was printed, up to `Limits.output_bytes`."""
    stdout_bytes: int
    """Bytes that were printed, kept or not."""
    error: ProgramError | None
    """None for a program that finished."""
    calls: tuple[CallRecord, ...]
    """Its calls in order of issue, written by the host."""
    isolation: Isolation
    """What stood between it and the host."""
    duration_s: float
    """Seconds from start to end, waiting for tools and for a free place included."""
    cpu_s: float
    """Processor seconds, as the kernel counted them; 0 when they are not known."""
    notice: str = ""
    """What a program that finished with nothing to show probably meant to do."""
    invocation_id: str = ""
    """The id that all its calls share, in the log too; empty for a program that the sandbox ran by itself."""
    recorded: tuple[Recorded, ...] = ()
    """All calls of a resumable program, earlier attempts' too: `Replay.recorded` of the next attempt."""

    @property
    def for_model(self) -> str:
        """What a model reads: the output, then the result or the error. Output alone is given byte for byte."""
        return self.shown(None)

    def shown(self, limit_bytes: int | None) -> str:
        """`for_model` with output and result cut so that they fit; an error is always whole.

        The output gives way to the result, which is what the program was run for, up to half of the room.
        """
        result = self._result(limit_bytes)
        output = self.stdout
        if limit_bytes is not None:
            output = kept_text(output, max(limit_bytes - _size(result), limit_bytes // 2))
        kept = _size(output)
        parts = [result] if result else []
        if kept < self.stdout_bytes:
            parts.insert(0, f"[output cut: the first {kept:,} of {self.stdout_bytes:,} bytes are shown]")
        parts += self._error_lines()
        if not parts:
            return output or self.notice or NOTHING_TO_SHOW
        after = "\n".join(parts)
        return _joined(output, after) if output else after

    def _result(self, limit_bytes: int | None) -> str:
        if self.error is not None or not self.has_value:
            return ""
        text = _value_text(self.value)
        return text if limit_bytes is None else cut_text(text, limit_bytes // 2 if self.stdout else limit_bytes)

    def _error_lines(self) -> list[str]:
        if self.error is None:
            return []
        said = [self.error.traceback.rstrip("\n") or self.error.message]
        return [*said, f"Hint: {self.error.hint}"] if self.error.hint else said


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _joined(first: str, second: str) -> str:
    separator = "" if first.endswith("\n") else "\n"
    return f"{first}{separator}{second}"


def _value_text(value: Any) -> str:
    try:
        return show(value)
    except Unrepresentable:
        # Python has values that JSON has no word for, such as a dict with tuples as keys.
        return repr(value)
