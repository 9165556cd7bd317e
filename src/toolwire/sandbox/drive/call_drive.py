"""What drives a program makes its calls and passes their answers on. How the bytes move is for the drive of a runner.

- A call from plain code is answered in the drive's thread: one read, the tool, one write.
- Calls from async code go to workers, so that they run side by side.
- A call that is answered later (`CallHandlers`) takes no thread. Its answer is written where its future is resolved.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial

from toolwire.runtime.workers import PROGRAM_SHARE, Workers, WorkersExhausted
from toolwire.sandbox.answers import Answer, Parked
from toolwire.sandbox.channel.frames import CallFrame, DropFrame, WakeFrame
from toolwire.sandbox.drive.conversation import Conversation, Effect, fault
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.program import ProgramCall
from toolwire.sandbox.runner import CallHandlers, LaterAnswer

SHARE = PROGRAM_SHARE - 1
"""Parallel calls of one program that run at once. Together with the call of plain code, each may need one worker."""
_LONGEST_WAIT_S = 3600.0
"""Longest wait in one system call, in seconds: the kernel counts milliseconds, up to 24 days."""
clock = time.monotonic

Call = Callable[[ProgramCall], Answer | Parked]


class CallDrive(ABC):
    """Serves one program until it is over. Call `run` once, from one thread."""

    def __init__(self, live: LiveProgram, call: Call, callers: Workers) -> None:
        self._live = live
        self._call, self._start = (call.answer, call.start) if isinstance(call, CallHandlers) else (call, None)
        self._later: dict[int, Callable[[], None]] = {}
        """By ordinal, the functions that cancel the calls which are answered later and have not ended."""
        self._callers = callers
        self._share_lock = threading.Lock()
        self._answering = 0
        """Number of calls that workers are answering."""
        self._queue: deque[ProgramCall] = deque()
        """Calls that wait until fewer are being answered."""
        self._conversation = Conversation(live, clock)
        self._is_full = False
        """True while a call waits until the open calls leave room. Nothing is read meanwhile."""
        self._look_at = 0.0
        """The time at which a clock may have run out."""
        self._wake: tuple[float, int] | None = None

    @abstractmethod
    def run(self) -> None:
        """Sends the program, and returns when it is over and its last frames are read. Its clock starts here.

        Raises:
            DefinitionError: a program could not write the name of a tool or parameter.
            BaseException: an exception that is meant for the caller of the run.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ends the run of a program that is over, from any thread. A tool in the drive's own thread is not stopped."""

    @abstractmethod
    def _write(self, data: bytes) -> None:
        """Sends bytes to the program, from any thread, and never waits."""

    @abstractmethod
    def _rouse(self) -> None:
        """Makes the drive's thread look at what has changed, from any thread."""

    @abstractmethod
    def _wait_for_room(self, frame: CallFrame) -> None:
        """Waits until the open calls leave room for this one. Nothing is read meanwhile; the clocks go on."""

    def raise_fatal(self) -> None:
        """Raises the exception that ended the program and is meant for the caller of the run, if there is one."""
        if self._conversation.fatal is not None:
            raise self._conversation.fatal

    def _cancel_later(self) -> None:
        """Cancels the calls that are answered later: those that have not begun do not begin."""
        for cancel in list(self._later.values()):
            cancel()

    def _take(self, data: bytes) -> None:
        """Takes bytes that the program has written. Raises ProtocolViolation."""
        live, take = self._live, self._conversation.take
        for frame in self._conversation.channel.receive(data):
            effect = take(frame)
            if type(effect) is ProgramCall:
                self._make(effect)
            else:
                self._carry_out(effect)
            if clock() >= self._look_at:
                self._look_at_clocks()
            if live.is_over:
                return

    def _carry_out(self, effect: Effect) -> None:
        if type(effect) is bytes:
            if effect:
                self._write(effect)
        elif type(effect) is ProgramCall:
            self._make(effect)
        elif type(effect) is WakeFrame:
            self._set_wake(effect)
        elif type(effect) is CallFrame:
            self._wait_for_room(effect)
        elif type(effect) is DropFrame and (cancel := self._later.get(effect.ordinal)) is not None:
            cancel()

    def _make(self, call: ProgramCall) -> None:
        if (
            self._start is not None
            and (cancel := self._start(call, partial(self._end_later, call.ordinal))) is not None
        ):
            self._later[call.ordinal] = cancel
        elif call.parallel:
            self._answer_beside(call)
        else:
            self._answer(call)
            if self._live.weights:
                self._live.release(call.ordinal)

    def _end_later(self, ordinal: int, outcome: LaterAnswer) -> None:
        """Writes the answer of a call that has ended, in the thread in which it ended."""
        self._later.pop(ordinal, None)
        if outcome is not None:
            self._tell(ordinal, outcome)
        elif self._live.is_awaited(ordinal):
            # Only the end of its event loop cancels a call that its program awaits.
            self._live.give_up("cancelled")
            self.stop()
        self._release(ordinal)

    def _release(self, ordinal: int) -> None:
        self._live.release(ordinal)
        if self._is_full:
            self._rouse()

    def _answer_beside(self, call: ProgramCall) -> None:
        """Answers a call in a worker: at once, or after another call of this program when its share is in use."""
        with self._share_lock:
            if self._answering == SHARE:
                self._queue.append(call)
                return
            self._answering += 1
        try:
            self._callers.start(lambda: self._answer_in_turn(call))
        except WorkersExhausted:
            # Other programs use all workers: this thread answers the call, and reads nothing meanwhile.
            self._answer_in_turn(call)

    def _answer_in_turn(self, call: ProgramCall) -> None:
        while True:
            if self._live.is_awaited(call.ordinal):
                self._answer(call)
            self._release(call.ordinal)
            with self._share_lock:
                if not self._queue:
                    self._answering -= 1
                    return
                call = self._queue.popleft()

    def _answer(self, call: ProgramCall) -> None:
        try:
            outcome = self._call(call)
        except BaseException as error:  # noqa: BLE001 - an error to the program, or to the caller of the run
            outcome = error
        self._tell(call.ordinal, outcome)

    def _tell(self, ordinal: int, outcome: Answer | Parked | BaseException) -> None:
        """Writes how a call ended. The program reads only the type of an exception, which is our own fault."""
        if isinstance(outcome, Exception):
            outcome = fault(outcome)
        if isinstance(outcome, BaseException):
            self._conversation.end_by(outcome)
        else:
            self._carry_out(self._conversation.answer_call(ordinal, outcome))
        if self._live.is_over and not self._live.is_asked_where:
            # Another thread may be waiting.
            self.stop()

    def _set_wake(self, frame: WakeFrame) -> None:
        self._wake = (clock() + frame.seconds, frame.number)
        # Never later than before: a program that keeps setting timers would otherwise put off the other clocks.
        if self._wake[0] < self._look_at:
            self._look_at = self._wake[0]
            self._rouse()

    def _look_at_clocks(self) -> None:
        patience_s = self._conversation.look_at_clocks()
        now = clock()
        self._look_at = now + min(patience_s, _LONGEST_WAIT_S)
        if self._wake is None:
            return
        at, number = self._wake
        if now < at:
            self._look_at = min(self._look_at, at)
            return
        self._wake = None
        self._carry_out(self._conversation.woke(number))
