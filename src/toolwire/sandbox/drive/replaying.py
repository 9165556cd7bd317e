"""The record of a resumable program while it runs: compares its calls with the record and adds their answers.

A program is a function of its source, its start, and the answers it takes, in their order. So a resumable program takes
answers one at a time, and only when it cannot go on without one. The host sends them in the order of completion, and
only while the program waits. Each answer carries its time, and nothing else moves the program's clocks. The program's
own timers need no record. At each wait they are compared with the time of the next answer, which is the same in every
attempt.

No answer of this attempt gets a time before the last one of the record. So a program has replayed all its history,
timers included, before it takes its first new answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from toolwire.sandbox.answers import DROPPED, PARKED, Answer, Recorded, Replay
from toolwire.sandbox.channel.frames import CallFrame, WaitFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation
from toolwire.vocabulary.texts.counting import count_of

BATCH_BYTES = 65_536
"""Bytes of recorded answers to send at once; a single larger one goes alone. The program may be writing meanwhile. A
batch that fits into the channel's own buffer never makes both sides wait for each other.
"""

_CLOSE_S = 0.0005
"""A timer may go off this many seconds too early, since clocks of two kinds are compared."""
Encode = Callable[[Recorded], bytes]


class Diverged(Exception):
    """The program does not repeat the recorded steps. The text names the step."""


class WaitTime(NamedTuple):
    """The program cannot go on by itself."""

    since: float
    """Seconds of the host's clock."""
    until_s: float | None
    """The program's time at which its next timer goes off; None without a timer."""


class Replaying:
    """One attempt. Safe from any thread.

    The bytes that a method returns may be sent without a lock: nothing else is sent until the program waits again.
    """

    def __init__(self, replay: Replay, encode: Encode, batch: Callable[[int], bytes], woke: bytes) -> None:
        self._replay = replay
        self._encode = encode
        self._batch = batch
        self._woke = woke
        self._known = {one.ordinal: one for one in replay.recorded}
        answered = sorted((one for one in replay.recorded if one.completed), key=lambda one: one.completed)
        self._order = answered
        """Answers in the order in which the program takes them."""
        self._recorded_answers = len(answered)
        self._sent = 0
        self._records: dict[int, Recorded] = {}
        self._open: set[int] = set()
        self._parked: set[int] = set()
        self._given_up: set[int] = set()
        """Calls that are recorded as dropped and have been made again, until they are dropped again."""
        self._elapsed_s = max((one.elapsed_s for one in replay.recorded), default=0.0)
        self._recorded_s = self._elapsed_s
        self._offset = max((one.at - one.elapsed_s for one in answered), default=replay.started_at)
        self._waiting: WaitTime | None = None
        self._lock = threading.RLock()

    @property
    def records(self) -> tuple[Recorded, ...]:
        """All calls so far in order of issue, with the recorded calls that this attempt has not made yet."""
        with self._lock:
            records = self._known | self._records
        return tuple(records[ordinal] for ordinal in sorted(records))

    @property
    def is_waiting(self) -> bool:
        """True if the program waits, so that there may be bytes to send."""
        return self._waiting is not None

    def begin(self) -> bytes:
        """Returns the bytes that follow the start frame."""
        with self._lock:
            return self._next_batch()

    def match_call(self, frame: CallFrame, tool: str, digest: str, now: float) -> Recorded | None:
        """Notes a call. Returns its record if it was answered or dropped before, None if it must be made.

        Raises:
            Diverged: it is not the recorded call.
            ProtocolViolation: the program says that it took more answers than it was sent.
        """
        with self._lock:
            self._check_taken(frame.taken)
            known = self._known.get(frame.ordinal)
            self._compare(frame, tool, digest, known)
            if not frame.parallel and frame.taken == self._sent:
                self._wait(now, None)
            if known is not None and known.answer is not PARKED:
                if known.answer is DROPPED:
                    self._given_up.add(frame.ordinal)
                self._records[frame.ordinal] = known
                return known
            self._open.add(frame.ordinal)
            self._records[frame.ordinal] = Recorded(
                ordinal=frame.ordinal,
                tool=tool,
                arguments_digest=digest,
                answer=PARKED,
                elapsed_s=self._advance(now),
                after=frame.taken,
            )
            return None

    def waits(self, frame: WaitFrame, now: float) -> None:
        """Notes that the program waits.

        Raises:
            Diverged: it waits although it has the next recorded answer; so it did not make the call of that answer.
            ProtocolViolation: its count of answers cannot be true.
        """
        with self._lock:
            self._check_taken(frame.taken)
            if frame.taken < self._sent:
                ordinal = self._order[frame.taken].ordinal
                if ordinal not in self._known:
                    raise ProtocolViolation("a wait with an answer left")
                raise self._missing(ordinal)
            self._elapsed_s = max(self._elapsed_s, frame.now_s)
            self._wait(now, frame.until_s)

    def settle_call(self, ordinal: int, answer: Answer, now: float) -> None:
        """Notes an answer; ignores it if the program no longer waits for it."""
        with self._lock:
            if ordinal not in self._open:
                return
            self._open.discard(ordinal)
            elapsed_s = self._advance(now)
            self._offset = max(self._offset, time.time() - elapsed_s)
            record = replace(
                self._records[ordinal],
                answer=answer,
                completed=len(self._order) + 1,
                at=elapsed_s + self._offset,
                elapsed_s=elapsed_s,
            )
            self._note(record)
            self._order.append(record)

    def park_call(self, ordinal: int, now: float) -> None:
        """Notes that a call waits for a person."""
        with self._lock:
            if ordinal in self._open:
                self._open.discard(ordinal)
                self._parked.add(ordinal)
                self._note(replace(self._records[ordinal], elapsed_s=self._advance(now)))

    def drop_call(self, ordinal: int, now: float) -> None:
        """Notes that the program gave a call up."""
        with self._lock:
            self._given_up.discard(ordinal)
            if ordinal in self._open or ordinal in self._parked:
                self._open.discard(ordinal)
                self._parked.discard(ordinal)
                self._note(replace(self._records[ordinal], answer=DROPPED, elapsed_s=self._advance(now)))

    def next(self, now: float) -> bytes:
        """Returns the bytes to send to a program that waits; empty when there are none.

        Raises:
            Diverged: it waits without having repeated the recorded calls.
        """
        with self._lock:
            waiting = self._waiting
            if waiting is None:
                return b""
            if self._sent < self._recorded_answers:
                self._waiting = None
                return self._next_batch()
            until_s = waiting.until_s
            if until_s is None or until_s > self._recorded_s:
                self._check_history()
                self._advance(now)
                if self._sent < len(self._order):
                    self._waiting = None
                    return self._next_batch()
                if until_s is None or until_s > self._elapsed_s + _CLOSE_S:
                    return b""
                self._elapsed_s = max(self._elapsed_s, until_s)
            self._waiting = None
            return self._woke

    def patience(self) -> float | None:
        """Seconds until the timer of a waiting program goes off; None without a timer."""
        with self._lock:
            waiting = self._waiting
            if waiting is None or waiting.until_s is None:
                return None
            return max(waiting.until_s - self._elapsed_s, 0.0)

    @property
    def is_suspended(self) -> bool:
        """True if only people can bring the program further."""
        with self._lock:
            is_idle = self._waiting is not None and self._sent == len(self._order)
            return is_idle and bool(self._parked) and not self._open

    def check_end(self) -> None:
        """Checks the record when the program has come to its own end.

        Raises:
            Diverged: the program has not made all the recorded calls.
        """
        with self._lock:
            if len(self._records) < len(self._known):
                raise self._missing(len(self._records) + 1, "ended")

    def _wait(self, now: float, until_s: float | None) -> None:
        self._waiting = WaitTime(now, until_s)

    def _advance(self, now: float) -> float:
        """Advances and returns the program's time: it moves while the program waits, and stands still while it
        computes.
        """
        if self._waiting is not None:
            self._elapsed_s += max(now - self._waiting.since, 0.0)
            self._waiting = self._waiting._replace(since=now)
        return self._elapsed_s

    def _note(self, record: Recorded) -> None:
        self._records[record.ordinal] = record
        if self._replay.on_recorded is not None:
            self._replay.on_recorded(record)

    def _next_batch(self) -> bytes:
        frames: list[bytes] = []
        room = BATCH_BYTES
        while self._sent < len(self._order):
            frame = self._encode(self._order[self._sent])
            if frames and len(frame) > room:
                break
            room -= len(frame)
            frames.append(frame)
            self._sent += 1
            if room <= 0 or (len(frame) > BATCH_BYTES):
                break
        return b"".join([self._batch(len(frames)), *frames])

    def _check_taken(self, taken: int) -> None:
        if taken > self._sent:
            raise ProtocolViolation("answers that it was not given")

    def _compare(self, frame: CallFrame, tool: str, digest: str, known: Recorded | None) -> None:
        if known is None:
            if frame.taken >= self._recorded_answers:
                return
            differs = ", which was not made then"
        elif known.tool != tool:
            differs = f", it was one of {known.tool!r}"
        elif known.arguments_digest != digest:
            differs = " with other arguments than before"
        elif known.after is not None and known.after != frame.taken:
            differs = f" after {count_of(frame.taken, 'answer')}, it was made after {known.after}"
        else:
            return
        raise Diverged(f"step {frame.ordinal} is a call of {tool!r}{differs}")

    def _check_history(self) -> None:
        """Checks that a program has replayed its history before it takes anything new."""
        if len(self._records) < len(self._known):
            raise self._missing(len(self._records) + 1)
        is_stuck = self._waiting is not None and self._waiting.until_s is None and self._sent == len(self._order)
        if is_stuck and self._given_up and not self._open and not self._parked:
            ordinal = min(self._given_up)
            tool = self._known[ordinal].tool
            raise Diverged(f"the program waits for step {ordinal}, a call of {tool!r}, which it had given up")

    def _missing(self, ordinal: int, does: str = "waits") -> Diverged:
        return Diverged(f"the program {does} without step {ordinal}, a call of {self._known[ordinal].tool!r}")
