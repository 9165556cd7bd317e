"""The output of the sandbox: how a program ended, the text it printed, and the calls it made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from toolwire.sandbox.answers import Recorded
from toolwire.vocabulary.blocks import ContentBlock, is_block, is_blocks, text_of
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.model_text import media_apart, model_output, show
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.cuts import cut_text, fit_text
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.variables import VariablesChange

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
CallStatus = Literal["answered", "failed", "dropped", "parked", "not_started", "cancelled", "running"]
IsolationLevel = Literal["none", "process", "wasm", "kernel", "kernel+namespaces"]
"""Isolation levels, the weakest first. At `none` the kernel's limits do not hold either, and nothing ever runs."""
MinIsolation = Literal["process", "wasm", "kernel", "kernel+namespaces"]
INSTALL_WASM = "pip install 'toolwire[wasm]'"
WASM_INSTEAD = f"Or run programs in WebAssembly, one wall inside this process: {INSTALL_WASM}, and runner='wasm'."
LEVELS: tuple[IsolationLevel, ...] = get_args(IsolationLevel)

NOTHING_TO_SHOW = (
    "The program ended without output and without a result. Assign the result to __result__, or print what matters."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramError:
    """The reason why a program did not finish, or the exception that it did not catch.

    Attributes:
        type: Name of the exception, `SourceRefused` for a program that was not started, `Stopped` for one that was
            ended.
        message: The event in one or two sentences.
        traceback: Traceback in Python's form, with lines of the program only. Ends with the exception; empty when not
            known.
        hint: The probable intention and how to write it; empty when it cannot be guessed.
        line: The program's line; None when not known.
    """

    type: str
    message: str
    traceback: str = ""
    hint: str = ""
    line: int | None = None


@dataclass(slots=True, kw_only=True)
class ProgramCallRecord:
    """One call as the host saw it. Not frozen, since the host fills it while the program runs.

    Attributes:
        ordinal: Position among the program's calls, from 1, in order of issue.
        tool: The name under which the tool is registered.
        arguments: By parameter name, as the tool's call received them.
        status: `dropped`: the program gave it up, and it was cancelled. `parked`: it waits for a person. `not_started`:
            it never began, because the program gave it up or ended first. `cancelled`: the program ended before the
            answer came. `running`: it was cancelled, and still ran when the time for its clean-up was over.
        duration_ms: Milliseconds until its answer, or until the program's end.
        arguments_digest: As `ProgramCall.arguments_digest`.
        completed: Position in the order of completion, from 1; 0 without an answer, or in a program that is not
            resumable.
        replayed: True if its answer or its drop came from the record, so that nothing was run for it.
    """

    ordinal: int
    tool: str
    arguments: dict[str, Any]
    status: CallStatus
    duration_ms: float = 0.0
    arguments_digest: str = ""
    completed: int = 0
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The isolation between the program and the host.

    Attributes:
        level: The level that was observed, not the one that was asked for.
        report: By layer: the finding of a child that tested it when the zygote started.
    """

    level: IsolationLevel
    report: dict[str, str]

    def reaches(self, least: IsolationLevel) -> bool:
        """Returns True if the level is at least `least`, and strong enough to run anything at all."""
        return LEVELS.index(self.level) >= max(LEVELS.index(least), LEVELS.index("process"))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProgramResult:
    """How a program ended. Its output and its calls are kept, however it ended.

    Attributes:
        status: Why it is over.
        value: Its result; None when `has_value` is false.
        has_value: True if `__result__` was assigned, or if the last line is an expression that is not None.
        stdout: The printed text, up to `Limits.output_bytes`.
        stdout_bytes: Bytes that were printed, kept or not.
        error: The error; None for a program that finished.
        calls: Its calls in order of issue, as the host recorded them.
        isolation: The isolation between it and the host.
        duration_s: Seconds from start to end, with the time spent waiting for tools and for a free place.
        cpu_s: Processor seconds, as the kernel counted them; 0 when they are not known.
        notice: A guess at the intention of a program that finished with nothing to show, or the loss of results that it
            assigned before the last one; empty otherwise.
        invocation_id: The id that all its calls share, in the log too; empty for a program that the sandbox ran by
            itself.
        variables: The difference that it made to the variables of its conversation; None if it keeps none, or if it
            was stopped before its end.
        variables_note: The line for the model about variables that are not kept; empty if all are.
        recorded: All calls of a resumable program, with those of earlier attempts: `Replay.recorded` of the next
            attempt.
    """

    status: ProgramStatus
    value: Any
    has_value: bool
    stdout: str
    stdout_bytes: int
    error: ProgramError | None
    calls: tuple[ProgramCallRecord, ...]
    isolation: Isolation
    duration_s: float
    cpu_s: float
    notice: str = ""
    invocation_id: str = ""
    variables: VariablesChange | None = None
    variables_note: str = ""
    recorded: tuple[Recorded, ...] = ()

    def __str__(self) -> str:
        return self.for_model

    def __repr__(self) -> str:
        return f"<ProgramResult {self._summary}>"

    @property
    def _summary(self) -> str:
        error = "" if self.error is None else f"{self.error.type}, "
        return f"{self.status}: {error}{count_of(len(self.calls), 'call')}, {self.duration_s:.2f} s"

    def _repr_html_(self) -> str:
        """Returns the text for a model and the images of the value, which notebooks show. All texts are escaped."""
        from toolwire.vocabulary.html_display import html_images, html_text

        return html_text(self.for_model) + html_images(_media_of(self.value)) + html_text(self._summary)

    @property
    def for_model(self) -> str:
        """The text for a model: the output, then the result or the error. Output alone is given byte for byte."""
        return self.text_within(None)

    def text_within(self, limit_bytes: int | None) -> str:
        """Returns `for_model` with output and result cut so that they fit; an error is never cut.

        The output gives way to the result, up to half of the room, since the result is the program's purpose.
        """
        result = self._result(limit_bytes)
        output = printed = model_output(self.stdout)
        if limit_bytes is not None:
            output = fit_text(output, max(limit_bytes - _utf8_size(result), limit_bytes // 2))
        kept, total = _utf8_size(output), self.stdout_bytes
        if printed is not self.stdout:
            total += _utf8_size(printed) - _utf8_size(self.stdout)
        parts = [result] if result else []
        if kept < total:
            parts.insert(0, f"[output cut: the first {kept:,} of {total:,} bytes are shown]")
        is_empty = not parts and self.error is None and not output
        if self.notice and (self.has_value or is_empty):
            parts.append(self.notice)
        elif is_empty:
            parts.append(NOTHING_TO_SHOW)
        if self.variables_note:
            parts.append(self.variables_note)
        parts += [*_lines_of_open_calls(self.calls), *self._error_lines()]
        if not parts:
            return output
        after = "\n".join(parts)
        return _join_lines(output, after) if output else after

    def _result(self, limit_bytes: int | None) -> str:
        if self.error is not None or not self.has_value:
            return ""
        text = model_output(_value_text(self.value))
        return text if limit_bytes is None else cut_text(text, limit_bytes // 2 if self.stdout else limit_bytes)

    def _error_lines(self) -> list[str]:
        if self.error is None:
            return []
        said = [model_output(self.error.traceback.rstrip("\n") or self.error.message)]
        return [*said, f"Hint: {self.error.hint}"] if self.error.hint else said


_LEFT: dict[CallStatus, str] = {
    "not_started": "[not run, because the program ended or gave the call up first: {}. Await a call to run it.]",
    "cancelled": "[cancelled, because the program ended first: {}. It may have taken effect.]",
    "running": "[still running after the program has ended: {}. It may yet take effect.]",
}
"""The lines that tell of calls which a program has left, by status."""


def _lines_of_open_calls(calls: Iterable[ProgramCallRecord]) -> list[str]:
    found: dict[CallStatus, dict[str, int]] = {}
    for call in calls:
        if call.status in _LEFT:
            counts = found.setdefault(call.status, {})
            counts[call.tool] = counts.get(call.tool, 0) + 1
    return [
        line.format(
            ", ".join(
                name if count == 1 else f"{name} ({count_of(count, 'call')})" for name, count in found[status].items()
            )
        )
        for status, line in _LEFT.items()
        if status in found
    ]


def _utf8_size(text: str) -> int:
    return len(utf8_bytes(text))


def _join_lines(first: str, second: str) -> str:
    separator = "" if first.endswith("\n") else "\n"
    return f"{first}{separator}{second}"


def _media_of(value: Any) -> list[ContentBlock]:
    if is_block(value):
        return [value]
    return value if is_blocks(value) else media_apart(value)[1]


def _value_text(value: Any) -> str:
    if is_block(value):
        return text_of([value])
    if is_blocks(value):
        return text_of(value)
    value, _ = media_apart(value)
    try:
        return show(value)
    except Unrepresentable:
        # Python has values that JSON lacks, such as a dict with tuples as keys.
        return repr(value)
