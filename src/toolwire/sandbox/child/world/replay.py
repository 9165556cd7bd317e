"""Tool calls of a resumable program: it takes its answers one at a time, and only when it cannot go on without one.

So the program depends only on its answers and their order. The recorded answers are here before it asks for them. The
host still gets each call, and ends the program if the call is not the recorded one.
"""

import asyncio
import itertools
import sys
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

from ..wire import Wire, encode
from .determinism import Clock
from .exceptions import ToolExceptions
from .source import FILENAME
from .stdout import ProgramOutput
from .tool_calls import CallChannel, Deadlock

_FRAME_CAP = 1024
_KEPT_BYTES = 32_768
_LONGEST_S = 86_400.0


class NumberedTask(asyncio.Task[Any]):
    """A task with a number as its hash, so that its place in asyncio's sets does not depend on its address."""

    def __init__(self, number: int, work: Any, **options: Any) -> None:
        self._number = number
        super().__init__(work, **options)

    def __hash__(self) -> int:
        return self._number


def number_tasks(loop: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """Returns the same loop; its tasks are numbered in the order in which they are made."""
    numbers = itertools.count(1)

    def make(own: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        return NumberedTask(next(numbers), work, loop=own, **options)

    loop.set_task_factory(make)
    return loop


class News:
    """Keeps frames that need no answer, and sends them with the next frame: writing is the main cost of a replay."""

    def __init__(self, write: Callable[[bytes], int]) -> None:
        self._write = write
        self._kept: list[bytes] = []
        self._size = 0

    def keep(self, frame: bytes) -> None:
        """Keeps a frame to be sent before the next one."""
        self._kept.append(frame)
        self._size += len(frame)
        if self._size > _KEPT_BYTES:
            self(b"")

    def __call__(self, data: bytes) -> int:
        """Writes the kept frames, then all of `data`."""
        left = memoryview(b"".join([*self._kept, data]) if self._kept else data)
        self._kept.clear()
        self._size = 0
        while left:
            left = left[self._write(bytes(left)) :]
        return len(data)


class ReplayedCalls(CallChannel):
    """Works as `CallChannel`, for a program that may be run again."""

    def __init__(self, wire: Wire, output: ProgramOutput, exceptions: ToolExceptions, clock: Clock) -> None:
        super().__init__(wire, output, exceptions)
        self._clock = clock
        self._answers: deque[list[Any]] = deque()
        self._taken_count = 0
        self._taken = "0,"
        self._news = News(wire.write)
        wire.write = self._news
        self._tell = self._send_or_keep
        self._receive_batch()

    def place(self) -> str:
        """Works as `CallChannel.place`: the innermost line of the program, 0 if none is under way."""
        # `inspect` would be one more module for each program to start with.
        frame: FrameType | None = sys._getframe()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        while frame is not None and frame.f_code.co_filename != FILENAME:
            frame = frame.f_back
        return f"{0 if frame is None else frame.f_lineno},"

    def now(self, tool: int, arguments: dict[str, Any]) -> Any:
        """Works as `CallChannel.now`."""
        ordinal = self._send(tool, arguments, self.place(), parallel=False)
        # The host knows that plain code waits.
        is_told = not self._answers
        while True:
            answer = self._take(None, is_told=is_told)
            is_told = False
            if answer is not None and answer[1] == ordinal:
                if answer[0] == "answer":
                    return answer[4]
                raise self._exceptions.of(*answer[4])
            self._hand_out(answer)

    def wait(self, timeout: float | None) -> None:
        """Blocks until the next answer has been handed out, or the program's own time is over. See `CallChannel.wait`.

        A program that only yields must not see how many answers have come meanwhile. So it waits too, also for its next
        timer.
        """
        self._output.flush()
        self._send_held()
        if timeout is None and not self._waiting:
            raise Deadlock("the program awaits something that can no longer happen")
        if timeout is not None:
            until = self._clock.elapsed + timeout if timeout > 0 else self._timer()
            if until is None and not self._waiting:
                return
            timeout = until
        self._hand_out(self._take(timeout, is_told=False))

    def _timer(self) -> float | None:
        loop: Any = asyncio.get_running_loop()
        when: float | None = loop.next_timer()
        return None if when is None else min(when, self._clock.elapsed + _LONGEST_S)

    def _take(self, until: float | None, *, is_told: bool) -> list[Any] | None:
        """Returns the next answer; None when `until` comes before it."""
        if not self._answers:
            if not is_told:
                self._tell_waiting(until)
            self._receive_batch()
        answer = self._answers[0] if self._answers else None
        if until is not None and (answer is None or until <= answer[2]):
            self._clock.move(until)
            return None
        if answer is None or answer[1] > self._ordinal:
            # This answer belongs to a call that was not made this time; the host must learn of it.
            self._tell_waiting(until)
            self._receive_batch()
            return None
        self._answers.popleft()
        self._taken_count += 1
        self._taken = f"{self._taken_count},"
        self._clock.move(answer[2], answer[3])
        return answer

    def _send_or_keep(self, frame: bytes) -> None:
        if self._answers:
            self._news.keep(frame)
        else:
            self._wire.send(frame)

    def _tell_waiting(self, until: float | None) -> None:
        self._wire.send(encode(f'["wait",{self._taken}{self._clock.elapsed!r},', until, _FRAME_CAP))

    def _receive_batch(self) -> None:
        frame = self._wire.receive()
        if frame[0] == "batch":
            self._answers.extend(self._wire.receive() for _ in range(frame[1]))

    def _hand_out(self, answer: list[Any] | None) -> None:
        if answer is not None:
            self._deliver([answer[0], answer[1], answer[4]])
