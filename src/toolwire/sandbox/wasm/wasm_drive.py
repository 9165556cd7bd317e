"""Drives a program in the guest, which calls the host's functions in the drive's thread. No pipe, signal or fork."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from toolwire.runtime.workers import Workers
from toolwire.sandbox.channel.frames import CallFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.sandbox.drive.call_drive import Call, CallDrive, clock
from toolwire.sandbox.drive.live_program import LiveProgram
from toolwire.sandbox.wasm.machine import THREAD_STACK_BYTES, GuestDied, HostFunctions
from toolwire.sandbox.wasm.wasm_process import WasmProcess
from toolwire.vocabulary.texts.counting import count_of

_SHORTEST_S = 0.01
"""Shortest time between two looks at a guest's processor seconds."""


_starting = threading.Lock()


def _start_thread(target: Callable[[], None]) -> None:
    """Starts a thread with the stack that a guest needs."""
    with _starting:
        before = threading.stack_size(THREAD_STACK_BYTES)
        try:
            threading.Thread(target=target, name="toolwire-wasm", daemon=True).start()
        finally:
            threading.stack_size(before)


class _ProgramOver(Exception):
    """Ends the guest from inside one of the host's functions."""


class WasmDrive(CallDrive):
    """The guest has a thread of its own, which serves its reads and writes. The drive's thread watches its clocks."""

    def __init__(self, live: LiveProgram, process: WasmProcess, call: Call, callers: Workers) -> None:
        super().__init__(live, call, callers)
        self._process = process
        # Reentrant: a garbage collection in here may end a call, and its answer is written.
        self._changed = threading.Condition(threading.RLock())
        self._frames: deque[bytes] = deque()
        self._has_ended = threading.Event()

    def run(self) -> None:
        """Sends the program, and returns when the guest has ended."""
        self._write(self._conversation.start())
        try:
            _start_thread(self._play)
            self._watch()
            self._has_ended.wait()
        finally:
            self._cancel_later()
        self.raise_fatal()

    def stop(self) -> None:
        """Ends the guest; the drive's thread then ends."""
        self._process.kill()
        self._cancel_later()
        self._rouse()

    def _play(self) -> None:
        host = HostFunctions(self._read, self._receive, self._pause)
        try:
            self._process.play(host, self._live.limits.memory_mb)
            self._live.give_up("crashed", "the program ended its interpreter before it came to its end.")
        except _ProgramOver:
            pass
        except ProtocolViolation as violation:
            self._live.give_up("protocol_violation", str(violation))
        except GuestDied as died:
            self._live.give_up("crashed", f"the program broke its interpreter: {died}.")
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._conversation.end_by(error)
        finally:
            self._has_ended.set()

    def _read(self) -> str:
        """Returns what is there for the program, as soon as there is something; each character is a byte."""
        while True:
            if clock() >= self._look_at:
                self._look_at_clocks()
            with self._changed:
                if self._live.is_over:
                    raise _ProgramOver
                if not self._frames:
                    self._changed.wait(max(self._look_at - clock(), 0))
                data = b"".join(self._frames)
                self._frames.clear()
            if data:
                return data.decode("latin-1")

    def _receive(self, text: str) -> None:
        try:
            data = text.encode("latin-1")
        except UnicodeEncodeError:
            raise ProtocolViolation("what it sent is no bytes") from None
        self._take(data)
        if self._live.is_over:
            raise _ProgramOver

    def _pause(self, seconds: float) -> None:
        until = clock() + seconds
        with self._changed:
            while not self._live.is_over and (left := until - clock()) > 0:
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
        if self._live.is_over:
            raise _ProgramOver

    def _wait_for_room(self, frame: CallFrame) -> None:
        self._is_full = True
        effect = self._conversation.take(frame)
        while effect is frame and not self._live.is_over:
            with self._changed:
                self._changed.wait(_SHORTEST_S)
            self._look_at_clocks()
            effect = self._conversation.take(frame)
        self._is_full = False
        if effect is not frame:
            self._carry_out(effect)

    def _watch(self) -> None:
        """Ends the guest when one of its clocks has run out."""
        live = self._live
        while not self._has_ended.wait(self._patience()):
            status = live.overdue(clock())
            if status is None and self._process.cpu_s >= live.limits.cpu_s:
                status = "timeout_cpu"
            if status is not None:
                live.give_up(status)
            if live.is_over:
                self.stop()
                return

    def _patience(self) -> float:
        """Returns seconds during which no clock can run out."""
        left = min(self._live.patience(clock()), self._live.limits.cpu_s - self._process.cpu_s)
        return max(min(left, threading.TIMEOUT_MAX), _SHORTEST_S)

    def _write(self, data: bytes) -> None:
        limit = self._live.limits.outstanding_calls
        with self._changed:
            self._frames.append(data)
            is_flood = len(self._frames) > limit
            self._changed.notify_all()
        if is_flood:
            self._live.give_up("protocol_violation", f"more than {count_of(limit, 'unread answer')}")
            self._rouse()

    def _rouse(self) -> None:
        with self._changed:
            self._changed.notify_all()
