"""A run as the store keeps it: its start, its state while it waits for a person, and its entry in a list of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolwire.permission.approval import ApprovalRequest, Decision
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.variables import Variables

RunStatus = Literal["queued", "running", "suspended", "parked", "finished", "stopped", "diverged"]
"""queued: no process has begun the run. running: a process works on it, or died while doing so. suspended: it waits for
a person. parked: process after process died over it, and only a person puts it back. finished: its results are on
record. stopped: a person ended it. diverged: it did not follow its record, and nothing of it runs again.
"""

RUN_LIFE_S = 30 * 86_400.0
"""Seconds after which a suspended run can no longer be resumed: 30 days, several times the life of a request."""

KEYED = "k_"
"""The beginning of the id of a run that has a key: the rest is made of its conversation and its key."""

RUN_LIMIT_BYTES = 256 * 1024 * 1024
"""Bytes that one run may have on record.

Resuming a run reads all of them, and a host can spare that much for one turn.
"""

SHOWN_REQUESTS = 5
"""Number of pending requests that the `repr` of a run names, so that it stays one line."""


class ConversationChanged(Exception):
    """Another turn changed what the conversation has read while this one began. Nothing of it was run or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """The request that a run starts from.

    A run is a pure function of its reply, so replaying it makes the same calls.

    Attributes:
        run_id: The id of the run.
        reply: The parsed reply in JSON types (`journal/kept_reply.py` writes and reads it).
        protocol: Name of the model's calling format; empty for a format of the user's own.
        caller: The caller for which the run is made.
        policy_digest: `sha256:` of the rules in force at the start.
        tools: Maps the name of each tool that the reply calls to the `sha256:` of that tool.
        taints: Labels of the data read before the run.
        engine: The engine that runs its programs. A record is replayed only on the same engine.
        created_at: Seconds since the epoch.
        expires_at: Time after which the run cannot be resumed, in seconds since the epoch; 0 means never.
        conversation: The conversation that the run belongs to; empty for none.
        variables: The variables that its programs start with; None: each of them starts empty. For a caller with a
            principal, `Store.start` reads those of the conversation, whatever is given here.
    """

    run_id: str
    reply: Mapping[str, Any]
    protocol: str
    caller: Caller = NOBODY
    policy_digest: str = ""
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: tuple[Label, ...] = ()
    engine: str = ""
    created_at: float = 0.0
    expires_at: float = 0.0
    conversation: str = ""
    variables: Variables | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SuspendedRun:
    """A run that waits for a person, as it was when it was suspended. The store stays the authority on its state.

    Attributes:
        start: The request that the run started from.
        rev: The revision of the run. If two views of a run differ, the one with the higher revision is newer.
        head: Number of steps on record.
        root: `sha256:` over these steps.
        pending: The requests that wait for a decision, in the order in which they were made.
        key: The key that signs the portable form of the run.
    """

    start: RunStart
    rev: int
    head: int
    root: str
    pending: tuple[ApprovalRequest, ...]
    key: bytes = field(default=b"", repr=False, compare=False)

    def __repr__(self) -> str:
        names = ", ".join(request.tool for request in self.pending[:SHOWN_REQUESTS])
        more = ", ..." if len(self.pending) > SHOWN_REQUESTS else ""
        return f"<{type(self).__name__} {self.run_id!r}: {len(self.pending)} pending, {names}{more}>"

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.start.run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run as `Store.runs` and `Store.run` describe it. Reading it does not open the run.

    Attributes:
        run_id: The id of the run.
        status: The state of the run.
        rev: The revision; it goes up with every change.
        created_at: Start of the run, in seconds since the epoch.
        updated_at: Last change of the run, in seconds since the epoch.
        expires_at: Time after which the run cannot be resumed, in seconds since the epoch; 0 means never.
        protocol: Name of the calling format.
        tools: Names of the tools that the model called.
        caller: The caller for which the run was made.
        steps: Number of calls that have ended, calls of programs included.
        pending: Number of requests that wait for a person.
        is_held: True if a process that may still be alive holds the lease.
        conversation: The conversation that the run belongs to; empty for none.
        taken_over: Number of times that the run was taken from a process that died, since it last recorded a step.
        damaged: What is wrong with the record of the run, if `Store.runs` cannot read it; else empty. A damaged run has
            no protocol and no tools here, its caller and conversation cannot be verified, and it cannot be resumed.
    """

    run_id: str
    status: RunStatus
    rev: int
    created_at: float
    updated_at: float
    expires_at: float
    protocol: str
    tools: tuple[str, ...]
    caller: Caller
    steps: int
    pending: int
    is_held: bool
    conversation: str = ""
    taken_over: int = 0
    damaged: str = ""


RequestState = Literal[
    "pending", "approved", "reserved", "done", "denied", "answered", "stopped", "superseded", "expired"
]
"""pending: the request waits for a person. approved: its call has not begun. reserved: its call has begun.
done: its call has ended, or its tool has the answer. denied: a person refused. answered: a person gave the answer.
stopped: a person stopped the run by it. superseded: the run ended without it. expired: no decision came in time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestInfo:
    """A request as `Store.requests` gives it.

    Attributes:
        request: The request.
        state: The state of the request.
        decision: The decision that counts; None without one.
        damaged: What is wrong with the record of the request or of its decision, if it cannot be read; else empty.
    """

    request: ApprovalRequest
    state: RequestState
    decision: Decision | None = None
    damaged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The requests of a store that wait for a person.

    Attributes:
        count: Number of them.
        oldest_s: Age of the oldest one in seconds; None if none waits.
    """

    count: int
    oldest_s: float | None


CallState = Literal["waiting", "decided", "running", "in_doubt", "ended", "expired", "stopped"]
"""waiting: a person has to decide on the call, on its question, or on a call that it made. decided: the decision was
made, and takes effect when the run is resumed. running: it has begun, and a process works on the run. in_doubt: it has
begun and its end is not on record. ended: its result is on record. expired: no decision came in time; the resumed run
says so. stopped: the run ended before it began.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call of a run, as `Store.calls` returns it.

    Attributes:
        id: The id of the call.
        parent: The id of the call that made this one: a program, or a tool through its context. Empty for a call of the
            model.
        tool: The name under which the tool was called.
        arguments: The model's arguments.
        attempt: Number of the attempt, from 1; 0 if the call ended before it began, such as a denied one, or waits.
        started_at: Start of the last attempt, in seconds since the epoch; None if the call did not begin.
        ended_at: Time of its end, in seconds since the epoch; None while it runs, or if a crash hid its end.
        result: The result; None while it runs, or if a crash hid it.
        state: The state of the call.
        request_id: The last request for approval of the call, or the question for which it waits. Empty without one.
        final_arguments: The arguments that it ran with, as plain JSON: with defaults, conversions and a person's edit.
            None if it did not begin, or if its tool may run any number of times: the start of such a call is not on
            record.
        line: The line of the program that made the call, from 1; None for another call, or if it is not known.
    """

    id: str
    parent: str
    tool: str
    arguments: Mapping[str, Any]
    attempt: int
    started_at: float | None
    ended_at: float | None
    result: ToolResult | None
    state: CallState = "ended"
    request_id: str = ""
    final_arguments: Mapping[str, Any] | None = None
    line: int | None = None
