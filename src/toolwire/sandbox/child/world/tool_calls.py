"""Tool calls over the channel: the blocking call, the awaitable call, and the wait for answers."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

from ..values import NotData
from ..wire import TooLarge, Wire, encode
from .exceptions import LimitReached, ToolExceptions
from .stdout import ProgramOutput

HELD_BYTES = 32_768
"""Bytes of calls of async code that are kept until the program waits. Beyond it they are sent at once."""


class Deadlock(RuntimeError):
    """The program awaits an event that can no longer happen."""

    __module__ = "builtins"  # shown by its bare name


class CallChannel:
    """Sends calls and hands out answers. All in one thread: the reader of a frame delivers it to its waiter."""

    def __init__(self, wire: Wire, output: ProgramOutput, exceptions: ToolExceptions) -> None:
        self._wire = wire
        self._tell = wire.send
        self._output = output
        self._exceptions = exceptions
        self._names: list[str] = []
        self._cap_bytes = 0
        self._free = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._held: dict[int, bytes] = {}
        """Calls that are sent when the program waits; a call that it gives up before never begins."""
        self._held_bytes = 0
        self._ordinal = 0
        self._wake = 0
        self._taken = ""
        """For a resumable program: the number of answers it has taken, as JSON and a comma."""

    def place(self) -> str:
        """For a resumable program: the line that makes a call now, as JSON and a comma."""
        return ""

    def begin(self, names: list[str], limits: dict[str, Any]) -> None:
        """Takes the tools' names and the limits `call_bytes` and `outstanding_calls`."""
        self._names = names
        self._cap_bytes = limits["call_bytes"]
        self._free = limits["outstanding_calls"]

    def now(self, tool: int, arguments: dict[str, Any]) -> Any:
        """Returns the tool's value; blocks until it has come. Raises the tool's exception."""
        ordinal = self._send(tool, arguments, self.place(), parallel=False)
        receive = self._wire.receive
        while True:
            frame = receive()
            if frame[0] == "answer" and frame[1] == ordinal:
                return frame[2]
            if frame[0] == "error" and frame[1] == ordinal:
                raise self._exceptions.of(*frame[2])
            self._deliver(frame)

    def later(self, tool: int, arguments: dict[str, Any]) -> Coroutine[Any, Any, Any]:
        """Returns the tool's value, while other tasks go on. At most `outstanding_calls` are sent at a time."""
        # The coroutine may be awaited elsewhere, so the line is that of the call.
        return self._later(tool, arguments, self.place())

    async def _later(self, tool: int, arguments: dict[str, Any], place: str) -> Any:
        loop = asyncio.get_running_loop()
        while not self._free:
            turn: asyncio.Future[None] = loop.create_future()
            self._queue.append(turn)
            await turn
        self._free -= 1
        try:
            ordinal = self._send(tool, arguments, place, parallel=True)
            answer = self._waiting[ordinal] = loop.create_future()
            try:
                return await answer
            except asyncio.CancelledError:
                if self._waiting.pop(ordinal, None) is not None:
                    self._give_up(ordinal, is_left=getattr(loop, "is_ending", False))
                raise
        finally:
            self._free += 1
            self._next_turn()

    def wait(self, timeout: float | None) -> None:
        """Blocks until an answer has come or the time is over.

        Raises:
            Deadlock: the wait has no time limit, and no call is under way.
        """
        self._output.flush()
        self._send_held()
        if timeout is None:
            if not self._waiting:
                raise Deadlock("the program awaits something that can no longer happen")
            self._deliver(self._wire.receive())
            return
        self._wake += 1
        self._wire.send(encode(f'["wake",{self._wake},', timeout, 1024))
        while True:
            frame = self._wire.receive()
            if frame[0] != "woke":
                self._deliver(frame)
                return
            if frame[1] == self._wake:
                return

    def _send(self, tool: int, arguments: dict[str, Any], place: str, *, parallel: bool) -> int:
        self._output.flush()
        try:
            ordinal = self._ordinal + 1
            head = f'["call",{ordinal},{tool},{"true" if parallel else "false"},{self._taken}{place}'
            frame = encode(head, arguments, self._cap_bytes)
        except NotData as error:
            raise TypeError(f"{self._names[tool]}() cannot be given {error}") from None
        except TooLarge as error:
            raise LimitReached(f"{self._names[tool]}() cannot be given so much: {error}") from None
        self._ordinal = ordinal
        if parallel:
            self._held[ordinal] = frame
            self._held_bytes += len(frame)
            if self._held_bytes > HELD_BYTES:
                self._send_held()
        else:
            self._send_held()
            self._tell(frame)
        return ordinal

    def _send_held(self) -> None:
        if self._held:
            frames = b"".join(self._held.values())
            self._held.clear()
            self._held_bytes = 0
            self._tell(frames)

    def _give_up(self, ordinal: int, *, is_left: bool) -> None:
        if ordinal in self._held:
            self._withdraw(ordinal)
        else:
            self._wire.send(encode('["left",' if is_left else '["drop",', ordinal, 1024))

    def _withdraw(self, ordinal: int) -> None:
        """Marks a call that was not sent: the host notes it and does not make it."""
        # The head is the first place of the frame that can hold this text.
        start = f'["call",{ordinal},'.encode()
        before, _, after = self._held[ordinal].partition(start)
        tool, _, rest = after.partition(b",")
        if rest.startswith(b"true,"):
            self._held[ordinal] = before + start + tool + b",null" + rest.removeprefix(b"true")

    def end(self) -> None:
        """Tells the host of the calls that the program has left and that were not sent."""
        for ordinal in self._held:
            self._withdraw(ordinal)
        self._send_held()

    def _deliver(self, frame: list[Any]) -> None:
        if frame[0] == "woke":
            return
        answer = self._waiting.pop(frame[1], None)
        if answer is None or answer.done():
            return
        if frame[0] == "answer":
            answer.set_result(frame[2])
        else:
            answer.set_exception(self._exceptions.of(*frame[2]))

    def _next_turn(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
