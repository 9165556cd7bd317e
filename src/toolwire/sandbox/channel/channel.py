"""The host's end of a channel as a pure state machine: bytes in, typed frames or a violation out.

It holds no descriptors.

Frames from the program:                                   Frames to the program:
    ["call", ordinal, tool, parallel, arguments]               ["start", options, source]
    ["drop", ordinal]        the program gave it up            ["answer", ordinal, value]
    ["left", ordinal]        the program has come to its end   ["error", ordinal, [type, message, family]]
    ["print", text]                                            ["woke", number]
    ["wake", number, seconds]   a timer; replaces the last
    ["result", has_value, notice, value]
    ["failed", [type, message, traceback, hint, line]]
    ["stopped", [reason, traceback, line]]
    ["variables", text]      once, before its result or failure, if its variables are kept

A call with null as `parallel` was given up before it was sent: it counts as made, and is never made.

A resumable program says how many answers it had taken when it made a call, and when it waits, and the line of a call.
It gets answers only while it waits. Recorded answers come several at a time, each with its time:
    ["call", ordinal, tool, parallel, taken, line, arguments]  ["batch", number of answers that follow]
    ["wait", taken, now, until]    instead of "wake"           ["answer", ordinal, elapsed, at, value]
    ["unfit", text]                in place of all others      ["error", ordinal, elapsed, at, [...]]

The channel assumes that the other side is hostile. It checks lengths before it allocates memory for them. Every frame
must have its exact shape, and its values must not weigh more than their cap. Anything else is a `ProtocolViolation`,
which ends the program and is reported in its result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from typing import Any, cast

from toolwire.sandbox.answers import AnswerError, arguments_digest
from toolwire.sandbox.channel.frames import (
    CallFrame,
    DropFrame,
    FailedFrame,
    Frame,
    PrintFrame,
    ResultFrame,
    StoppedFrame,
    UnfitFrame,
    VariablesFrame,
    WaitFrame,
    WakeFrame,
)
from toolwire.sandbox.channel.parsing import (
    ProtocolViolation,
    guard_read,
    parse_frame,
    raw_strings,
    too_heavy,
    untag_value,
)
from toolwire.sandbox.channel.variables_frame import read_variables
from toolwire.sandbox.limits import Limits
from toolwire.sandbox.program import ProgramTool
from toolwire.sandbox.wire import (
    HEADER_BYTES,
    LARGE_BYTES,
    RAW,
    WEIGHT_CAP,
    dump,
    encode,
    kind_of,
    settle,
    weigh,
    weight_of,
)
from toolwire.vocabulary.variables import VARIABLES_LIMIT_BYTES

FRAME_SLACK = 65_536
"""Bytes that a frame may have above its payload's own limit: names, numbers and quoting."""
RAW_STRINGS_CAP = 1024
TEXT_CAP = 65_536
"""Characters in a traceback, a message or a piece of output."""
WAKE_CAP_S = 1e9
UNWEIGHED_BYTES = 256
"""Frames up to this size, in bytes, have their weight estimated: to weigh them would take as long as to read them."""
_UNWEIGHED_FACTOR = 8
_VARIED = ("var_positional", "var_keyword")


class Channel:
    """One program's channel. The caller feeds `receive` with the bytes of each read, in pieces of any size."""

    def __init__(
        self, tools: tuple[ProgramTool, ...], limits: Limits, *, resumable: bool = False, has_variables: bool = False
    ) -> None:
        self._limits = limits
        self._tools = [{parameter.name: parameter.kind for parameter in tool.parameters} for tool in tools]
        self._ordinary = [
            frozenset(name for name, kind in kinds.items() if kind not in _VARIED) for kinds in self._tools
        ]
        """The parameters of each tool that take a value of any kind."""
        variables_bytes = VARIABLES_LIMIT_BYTES if has_variables else 0
        self._cap = max(limits.call_bytes, limits.result_bytes, variables_bytes) + FRAME_SLACK
        self._pending = bytearray()
        self._wrapped: Any = None
        self._raw_sizes: list[int] | None = None
        self._header_bytes = 0
        self._weight = 0
        """Weight of the header whose raw strings are still to come."""
        self._last_ordinal = 0
        self._dropped: set[int] = set()
        """Ordinals that the program dropped: an honest program gives a call up once."""
        self._readers: dict[str, Callable[[list[Any], int, int], Frame]] = {
            "call": self._call,
            "drop": self._drop,
            "left": self._drop,
            "print": self._print,
            "wake": self._wake,
            "result": self._result,
            "failed": self._failure,
            "stopped": self._stop,
        }
        self._is_resumable = resumable
        if resumable:
            del self._readers["wake"]
            self._readers |= {"wait": self._wait, "unfit": self._unfit}
        if has_variables:
            self._readers["variables"] = self._variables

    def receive(self, data: bytes, *, at_most: int | None = None) -> Iterable[Frame]:
        """Returns the frames that `data` completes. Each is decoded when the caller takes it.

        Stops before a frame of more than `at_most` bytes; `has_whole` is then true.

        Raises:
            ProtocolViolation: the bytes are not frames that our stubs send. The channel cannot be used afterwards.
        """
        if not self._pending and self._raw_sizes is None:
            size = int.from_bytes(data[:HEADER_BYTES], "big")
            if size + HEADER_BYTES == len(data) and size <= (at_most or self._cap):
                frame = self._read(data[HEADER_BYTES:])
                return () if frame is None else (frame,)
        self._pending += data
        return self._frames(at_most or self._cap)

    @property
    def missing(self) -> int:
        """Bytes that the current frame still lacks, as far as its length is known; 0 between frames."""
        if not self._pending and self._raw_sizes is None:
            return 0
        return max(self._next_size() - len(self._pending), 0)

    @property
    def has_whole(self) -> bool:
        """True if a whole frame, or its whole header, has been received and not yet taken."""
        is_idle = not self._pending and self._raw_sizes is None
        return not is_idle and len(self._pending) >= self._next_size()

    def start(self, source: str, options: dict[str, Any]) -> bytes:
        """Returns the frame that starts a program. It is trusted and has no cap."""
        return encode(f'["start",{dump(options)},', source, 1 << 31)

    def answer(self, ordinal: int, value: Any, *times: float) -> bytes:
        """Returns the frame that gives a call its value.

        Raises:
            Unrepresentable: no tag stands for the value; answer with an error instead.
            Oversized: the frame would be larger than `Limits.call_bytes`; answer with an error instead.
        """
        return encode(_head("answer", ordinal, times), value, self._limits.call_bytes)

    def error(self, ordinal: int, error: AnswerError, *times: float) -> bytes:
        """Returns the frame that gives a call its exception."""
        told = [error.type_name[:200], error.message[:TEXT_CAP], error.family]
        return encode(_head("error", ordinal, times), told, 1 << 31)

    def batch(self, answers: int) -> bytes:
        """Returns the frame that says how many answers follow it."""
        return encode('["batch",', answers, 1024)

    def woke(self, number: int) -> bytes:
        """Returns the frame that says that a timer has run out."""
        return encode('["woke",', number, 1024)

    def _frames(self, at_most: int) -> Generator[Frame]:
        while (wanted := self._next_size()) <= min(len(self._pending), at_most + HEADER_BYTES):
            frame = self._take(wanted)
            if frame is not None:
                yield frame

    def _next_size(self) -> int:
        """Returns the size of the next piece in bytes: the rest of a header, a header's frame, or its raw strings."""
        if self._raw_sizes is not None:
            return sum(self._raw_sizes)
        if len(self._pending) < HEADER_BYTES:
            return HEADER_BYTES
        size = int.from_bytes(self._pending[:HEADER_BYTES], "big")
        if size > self._cap:
            raise ProtocolViolation(f"a frame of {size:,} bytes, at most {self._cap:,} are allowed")
        return HEADER_BYTES + size

    def _take(self, size: int) -> Frame | None:
        sizes = self._raw_sizes
        if sizes is None:
            with memoryview(self._pending) as view:
                data = bytes(view[HEADER_BYTES:size])
            del self._pending[:size]
            return self._read(data)
        with memoryview(self._pending) as view:
            raws = raw_strings(view, sizes)
        del self._pending[:size]
        wrapped, self._wrapped, self._raw_sizes = self._wrapped, None, None
        weight = self._weight + sum(map(sys.getsizeof, raws))
        if weight > WEIGHT_CAP:
            raise too_heavy(weight)
        parts = guard_read(lambda: settle(wrapped, raws))
        if kind_of(parts) is not list or not parts:
            raise ProtocolViolation("a frame that is not one JSON list")
        return self._frame(parts, self._header_bytes + size, weight, tagged=True)

    def _read(self, data: bytes) -> Frame | None:
        """Returns the frame; None for a header whose raw strings are still to come."""
        size = len(data)
        weight = weigh(data) if size > UNWEIGHED_BYTES else size * _UNWEIGHED_FACTOR
        if weight > WEIGHT_CAP:
            raise too_heavy(weight)
        parts, tagged = parse_frame(data)
        if parts[0] == RAW:
            self._announce(parts, size, weight)
            return None
        return self._frame(parts, size, weight, tagged=tagged)

    def _announce(self, parts: list[Any], size: int, weight: int) -> None:
        sizes = parts[1] if len(parts) == 3 else None
        if type(sizes) is not list or not 0 < len(cast("list[Any]", sizes)) <= RAW_STRINGS_CAP:
            raise ProtocolViolation("a frame whose raw strings are not announced as they must be")
        sizes = cast("list[Any]", sizes)
        if not all(type(item) is int and item >= 0 for item in sizes) or sum(sizes) + size > self._cap:
            raise ProtocolViolation(f"a frame whose raw strings are larger than {self._cap:,} bytes")
        self._wrapped, self._raw_sizes, self._header_bytes = parts[2], sizes, size
        self._weight = weight

    def _frame(self, parts: list[Any], size: int, weight: int, *, tagged: bool) -> Frame:
        kind = parts[0]
        reader = self._readers.get(kind) if type(kind) is str else None
        if reader is None:
            raise ProtocolViolation("a frame of an unknown kind")
        if tagged and kind in ("call", "result"):
            parts[-1] = untag_value(parts[-1])
        if size > LARGE_BYTES and (weight := weight_of(parts)) > WEIGHT_CAP:
            raise too_heavy(weight)
        return reader(parts, size, weight)

    def _call(self, parts: list[Any], size: int, weight: int) -> CallFrame:
        if len(parts) != (7 if self._is_resumable else 5):
            raise ProtocolViolation("a call that is not complete")
        taken, line = (parts.pop(4), parts.pop(4)) if self._is_resumable else (0, 0)
        _, ordinal, tool, parallel, arguments = parts
        if type(ordinal) is not int or ordinal != self._last_ordinal + 1:
            raise ProtocolViolation("a call out of order")
        if type(tool) is not int or not 0 <= tool < len(self._tools):
            raise ProtocolViolation("a call of an unknown tool")
        if (
            (type(parallel) is not bool and parallel is not None)
            or kind_of(arguments) is not dict
            or not _is_count(taken)
            or not _is_count(line)
        ):
            raise ProtocolViolation("a call that is not complete")
        if size > self._limits.call_bytes + FRAME_SLACK:
            raise ProtocolViolation(f"arguments of {size:,} bytes, at most {self._limits.call_bytes:,} are allowed")
        if not arguments.keys() <= self._ordinary[tool]:
            kinds = self._tools[tool]
            if not all(_fits(kinds.get(name), value) for name, value in arguments.items()):
                raise ProtocolViolation("an argument that the tool does not have")
        self._last_ordinal = ordinal
        digest = arguments_digest(arguments) if self._is_resumable else ""
        is_withdrawn = parallel is None
        return CallFrame(
            ordinal,
            tool,
            parallel is not False,
            arguments,
            size,
            weight,
            taken,
            digest,
            is_withdrawn=is_withdrawn,
            line=line,
        )

    def _drop(self, parts: list[Any], _size: int, _weight: int) -> DropFrame:
        if len(parts) != 2 or type(parts[1]) is not int or not 0 < parts[1] <= self._last_ordinal:
            raise ProtocolViolation("a drop of no known call")
        if parts[1] in self._dropped:
            raise ProtocolViolation("a second drop of one call")
        self._dropped.add(parts[1])
        return DropFrame(parts[1], is_left=parts[0] == "left")

    def _print(self, parts: list[Any], _size: int, _weight: int) -> PrintFrame:
        if len(parts) != 2 or not _is_text(parts[1]):
            raise ProtocolViolation("output that is not text")
        if not parts[1]:
            raise ProtocolViolation("output without text")
        return PrintFrame(parts[1])

    def _wake(self, parts: list[Any], _size: int, _weight: int) -> WakeFrame:
        if len(parts) != 3 or type(parts[1]) is not int or type(parts[2]) not in (int, float):
            raise ProtocolViolation("a timer that is not complete")
        if not 0 <= parts[2] <= WAKE_CAP_S or not 0 < parts[1] < 1 << 53:
            raise ProtocolViolation("a timer out of range")
        return WakeFrame(parts[1], float(parts[2]))

    def _wait(self, parts: list[Any], _size: int, _weight: int) -> WaitFrame:
        if len(parts) != 4 or not _is_count(parts[1]) or not _is_time(parts[2]):
            raise ProtocolViolation("a wait that is not complete")
        if parts[3] is not None and not _is_time(parts[3]):
            raise ProtocolViolation("a wait out of range")
        return WaitFrame(*parts[1:])

    def _unfit(self, parts: list[Any], _size: int, _weight: int) -> UnfitFrame:
        if len(parts) != 2 or not _is_text(parts[1]):
            raise ProtocolViolation("a reason that is not text")
        return UnfitFrame(parts[1])

    def _result(self, parts: list[Any], size: int, _weight: int) -> ResultFrame:
        if len(parts) != 4 or type(parts[1]) is not bool or not _is_text(parts[2]):
            raise ProtocolViolation("a result that is not complete")
        if size > self._limits.result_bytes + FRAME_SLACK:
            raise ProtocolViolation(f"a result of {size:,} bytes, at most {self._limits.result_bytes:,} are allowed")
        return ResultFrame(parts[1], parts[2], parts[3] if parts[1] else None)

    def _variables(self, parts: list[Any], size: int, _weight: int) -> VariablesFrame:
        del self._readers["variables"]
        if len(parts) != 2 or type(parts[1]) is not str:
            raise ProtocolViolation("variables that are not text")
        if size > VARIABLES_LIMIT_BYTES + FRAME_SLACK:
            raise ProtocolViolation(f"variables of {size:,} bytes, at most {VARIABLES_LIMIT_BYTES:,} are allowed")
        return read_variables(parts[1])

    def _failure(self, parts: list[Any], _size: int, _weight: int) -> FailedFrame:
        told = _end_fields(parts, 5)
        if not all(_is_text(item) for item in told[:4]) or not _is_line(told[4]):
            raise ProtocolViolation("a failure that is not complete")
        return FailedFrame(*told)

    def _stop(self, parts: list[Any], _size: int, _weight: int) -> StoppedFrame:
        told = _end_fields(parts, 3)
        if told[0] not in ("cpu", "asked") or not _is_text(told[1]) or not _is_line(told[2]):
            raise ProtocolViolation("a stop that is not complete")
        return StoppedFrame(*told)


def _head(kind: str, ordinal: int, times: tuple[float, ...]) -> str:
    return f'["{kind}",{ordinal},{dump(times)[1:-1]},' if times else f'["{kind}",{ordinal},'


def _fits(kind: str | None, value: Any) -> bool:
    if kind == "var_positional":
        return type(value) is list
    if kind == "var_keyword":
        return type(value) is dict and all(type(key) is str for key in cast("dict[Any, Any]", value))
    return kind is not None


def _end_fields(parts: list[Any], count: int) -> list[Any]:
    told = parts[1] if len(parts) == 2 else None
    if type(told) is not list or len(cast("list[Any]", told)) != count:
        raise ProtocolViolation("an end that is not complete")
    return cast("list[Any]", told)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 31


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= WAKE_CAP_S


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= TEXT_CAP


def _is_line(value: Any) -> bool:
    return value is None or (type(value) is int and 0 < value < 1 << 31)
