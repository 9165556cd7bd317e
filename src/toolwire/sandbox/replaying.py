"""The record of a resumable program while it runs: what it makes is compared with it, what is answered is added.

A program is a function of its source, its start, and the answers it takes, in their order. So a resumable one takes
answers only where it cannot go on without, one at a time; it is sent them in the order of completion, and only while
it waits. Each carries the time it was given, and nothing else moves the program's clocks. Its own timers need no
record: at each wait they go off or not by the time of the next answer, which is the same in every attempt.

No answer of this attempt is given a time before the last one of the record. A program has therefore always come to
where it was, timers included, before it takes the first of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from toolwire.sandbox.answers import DROPPED, PARKED, Answer, Recorded, Replay
from toolwire.sandbox.frames import CallFrame, WaitFrame
from toolwire.sandbox.reading import ProtocolViolation

BATCH_BYTES = 65_536
"""Bytes of recorded answers that are sent at once; a single larger one goes alone. The program may be writing while
they are sent: what fits into the channel's own buffer never makes both sides wait for each other."""

_CLOSE_S = 0.0005
"""A timer may go off so much too early: clocks of two kinds are compared."""
Encode = Callable[[Recorded], bytes]


class Diverged(Exception):
    """The program does what it did not do before. The text names the step."""


class Waiting(NamedTuple):
    """The program cannot go on by itself."""

    since: float
    """Seconds of the host's clock."""
    until_s: float | None
    """The program's time at which its next timer goes off."""


class Replaying:
    """One attempt. Safe from any thread; what a method gives to be sent may be sent without a lock, since nothing
    else will be until the program waits again."""

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
        """Calls that were dropped before and have been made again, until they are dropped again."""
        self._elapsed_s = max((one.elapsed_s for one in replay.recorded), default=0.0)
        self._recorded_s = self._elapsed_s
        self._offset = max((one.at - one.elapsed_s for one in answered), default=replay.started_at)
        self._waiting: Waiting | None = None
        self._lock = threading.RLock()

    @property
    def records(self) -> tuple[Recorded, ...]:
        """All calls so far, in order of issue, and those that this attempt has not come to."""
        with self._lock:
            records = self._known | self._records
        return tuple(records[ordinal] for ordinal in sorted(records))

    @property
    def is_waiting(self) -> bool:
        """Whether the program waits, so that something may have to be sent."""
        return self._waiting is not None

    def begin(self) -> bytes:
        """What follows the start frame."""
        with self._lock:
            return self._next_batch()

    def made(self, frame: CallFrame, tool: str, digest: str, now: float) -> Recorded | None:
        """Notes a call; its record if it has been answered or dropped before, None if it is to be made.

        Raises:
            Diverged: it is not the call that was made before.
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
            Diverged: it waits although it has the next recorded answer: for a call that it did not make.
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

    def settled(self, ordinal: int, answer: Answer, now: float) -> None:
        """Notes an answer; one that nobody waits for any more is none."""
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

    def parked(self, ordinal: int, now: float) -> None:
        """Notes that a call waits for a person."""
        with self._lock:
            if ordinal in self._open:
                self._open.discard(ordinal)
                self._parked.add(ordinal)
                self._note(replace(self._records[ordinal], elapsed_s=self._advance(now)))

    def dropped(self, ordinal: int, now: float) -> None:
        """Notes that the program gave a call up."""
        with self._lock:
            self._given_up.discard(ordinal)
            if ordinal in self._open or ordinal in self._parked:
                self._open.discard(ordinal)
                self._parked.discard(ordinal)
                self._note(replace(self._records[ordinal], answer=DROPPED, elapsed_s=self._advance(now)))

    def next(self, now: float) -> bytes:
        """What to send to a program that waits, if there is anything.

        Raises:
            Diverged: it waits for what it did not wait for before.
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
        """Seconds until the timer of a program that waits goes off; None when it waits for none."""
        with self._lock:
            waiting = self._waiting
            if waiting is None or waiting.until_s is None:
                return None
            return max(waiting.until_s - self._elapsed_s, 0.0)

    @property
    def is_suspended(self) -> bool:
        """Whether nothing but people can bring the program on."""
        with self._lock:
            is_idle = self._waiting is not None and self._sent == len(self._order)
            return is_idle and bool(self._parked) and not self._open

    def ended(self) -> None:
        """Called when the program has come to its own end.

        Raises:
            Diverged: without having made all the calls that it made before.
        """
        with self._lock:
            if len(self._records) < len(self._known):
                raise self._missing(len(self._records) + 1, "ended")

    def _wait(self, now: float, until_s: float | None) -> None:
        self._waiting = Waiting(now, until_s)

    def _advance(self, now: float) -> float:
        """The program's time: it moves while the program waits, and stands still while it computes."""
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
            differs = f" after {frame.taken} answers, it was made after {known.after}"
        else:
            return
        raise Diverged(f"step {frame.ordinal} is a call of {tool!r}{differs}")

    def _check_history(self) -> None:
        """Before it takes anything new, a program must have come to where it was."""
        if len(self._records) < len(self._known):
            raise self._missing(len(self._records) + 1)
        is_stuck = self._waiting is not None and self._waiting.until_s is None and self._sent == len(self._order)
        if is_stuck and self._given_up and not self._open and not self._parked:
            ordinal = min(self._given_up)
            tool = self._known[ordinal].tool
            raise Diverged(f"the program waits for step {ordinal}, a call of {tool!r}, which it had given up")

    def _missing(self, ordinal: int, does: str = "waits") -> Diverged:
        return Diverged(f"the program {does} without step {ordinal}, a call of {self._known[ordinal].tool!r}")
