"""The in-memory log of calls: bounded, newest first, safe to read while calls run."""

from __future__ import annotations

import datetime
import json
import marshal
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain

VALUE_LIMIT_BYTES = 65_536
"""Bytes of JSON that the log keeps of one call's arguments, and of its result; the same of the text of its error."""

LOG_ENTRIES = 10_000
"""Calls that the log keeps; the oldest is dropped for the newest. About a day of one busy agent."""

LOG_LIMIT_BYTES = 64 * 1024 * 1024
"""Bytes of memory that all entries of a log may take; the oldest are dropped for the newest. 10,000 calls of 6 kB fit,
and a host can spare that."""


class Ended(Protocol):
    """What an observer is told of one call (`invocation.scope.CallRecord`)."""

    call: ToolCall
    result: ToolResult
    run_id: str
    started_at: float
    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One call that ended."""

    id: str
    """The call's id."""
    invocation_id: str
    """The run it belongs to; all calls of one program share it (`tr_ptc_...`)."""
    parent: str
    """The id of the call whose program made this one; empty at the top."""
    tool_name: str
    """The name it was called by."""
    timestamp: datetime.datetime
    """When it began, in UTC."""
    status: str
    """`success`, or the kind of failure (`tool_error`, `denied`, `invalid_arguments`, ...)."""
    duration_ms: float
    """Milliseconds from the call to its result, waiting for a person included."""
    arguments: Mapping[str, Any]
    """As the model gave them, in JSON types; one that has no JSON form as a short text about it."""
    result: Any
    """The data, in JSON types, or a short text about them; None for a failure."""
    error: str | None
    """What went wrong, cut at `VALUE_LIMIT_BYTES`; None on success."""
    isolation: Mapping[str, Any] | None = None
    """What stood between a program and the host, as `level` and `report`; None for calls that ran no program."""
    approval: Mapping[str, Any] | None = None
    """Who decided and through what, and what an edit changed; None when nobody had to be asked."""


class ExecutionLog:
    """An observer that remembers the last `LOG_ENTRIES` calls, or as many of them as fit into `bytes_limit`."""

    def __init__(self, entries: int = LOG_ENTRIES, *, bytes_limit: int = LOG_LIMIT_BYTES) -> None:
        self._limit, self._bytes_limit = entries, bytes_limit
        self._lock = threading.Lock()
        # Values as bytes: of known size, safe from later changes, and a twentieth of what nested lists take.
        self._entries: deque[tuple[int, tuple[Any, ...], bytes]] = deque()
        """Bytes of each entry, its names and times, and its values; newest first."""
        self._bytes = 0

    def ended(self, record: Ended, /) -> None:
        """Takes one call down. Arguments and result are copied, so that later changes do not reach the log."""
        row = row_of(record)
        head, values = row[:_HEAD], marshal.dumps(row[_HEAD:])
        call_id, run_id, parent, name, *_ = head
        size = _ROW_BYTES + len(values) + _CHARACTER_BYTES * (len(call_id) + len(run_id) + len(parent) + len(name))
        with self._lock:
            self._entries.appendleft((size, head, values))
            self._bytes += size
            while self._bytes > self._bytes_limit or len(self._entries) > self._limit:
                self._bytes -= self._entries.pop()[0]

    def get_entries(
        self,
        invocation_id: str | None = None,
        tool_name: str | None = None,
        status: str | None = None,
        since: datetime.datetime | float | None = None,
        limit: int | None = None,
    ) -> list[LogEntry]:
        """Calls that ended, newest first; each filter that is given must fit. What is given back is the caller's own.

        `status` is `success` or a kind of failure; `since` is a time (a naive one is taken as UTC) or seconds since
        the epoch, that time included; `limit` is how many at most, None for all.

        Raises:
            ConfigurationError: a `limit` below 0.
        """
        check_limit(limit)
        after = None if since is None else seconds_of(since)
        with self._lock:
            rows = [(head, values) for _, head, values in self._entries]
        fitting = (
            (head, values)
            for head, values in rows
            if (invocation_id is None or head[1] == invocation_id)
            and (tool_name is None or head[3] == tool_name)
            and (status is None or head[5] == status)
            and (after is None or head[4] >= after)
        )
        return [_entry(head, values) for head, values in islice(fitting, limit)]

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0


def row_of(record: Ended) -> tuple[Any, ...]:
    """The call as `entry_of` reads it. Arguments and result are copied."""
    call, result = record.call, record.result
    failure = result.failure
    return (
        call.id,
        record.run_id,
        call.parent,
        call.name,
        record.started_at,
        "success" if failure is None else failure.kind,
        record.duration_s,
        _copied(call.arguments),
        None if failure is not None else _copy(result.data),
        None if result.error is None else _cut(result.error),
        _copy(result.metadata.get("isolation")),
        _copy(result.metadata.get("approval")),
    )


def seconds_of(since: datetime.datetime | float) -> float:
    """Seconds since the epoch; a naive time is taken as UTC."""
    if not isinstance(since, datetime.datetime):
        return since
    return (since if since.tzinfo else since.replace(tzinfo=datetime.UTC)).timestamp()


def check_limit(limit: int | None) -> None:
    """Refuses a number of entries that none can be.

    Raises:
        ConfigurationError: it is below 0.
    """
    if limit is not None and limit < 0:
        raise ConfigurationError(f"limit={limit}: give how many entries at most, or None for all")


def entry_of(row: tuple[Any, ...]) -> LogEntry:
    """The entry of a row."""
    return LogEntry(
        id=row[0],
        invocation_id=row[1],
        parent=row[2],
        tool_name=row[3],
        timestamp=datetime.datetime.fromtimestamp(row[4], datetime.UTC),
        status=row[5],
        duration_ms=row[6] * 1000,
        arguments=row[7],
        result=row[8],
        error=row[9],
        isolation=row[10],
        approval=row[11],
    )


def _entry(head: tuple[Any, ...], values: bytes) -> LogEntry:
    return entry_of((*head, *marshal.loads(values)))  # noqa: S302 - bytes of this process, which nobody else writes


def _copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Most calls: nothing in it can change, or be too long.
    if len(arguments) <= _FEW and all(map(_is_plain, arguments.values())) and all(map(_is_plain, arguments)):
        return {str(name): value for name, value in arguments.items()}
    try:
        found = plain(arguments)
    except Unrepresentable:
        found = {str(name): _copy(value) for name, value in arguments.items()}
    if _is_small(found):
        return found
    found = {_cut(name): _copy(value) for name, value in found.items()}
    if len(found) <= _FEW or _is_small(found):
        return found
    return {"*": _not_kept(f"{len(found):,} arguments, together ")}


def _copy(value: Any) -> Any:
    if _is_plain(value):
        return value
    try:
        found = plain(value)
        return found if _is_small(found) else _not_kept()
    except Unrepresentable as error:
        # Not its repr: that is the tool's code once more, and may be as long as it likes.
        return f"<{error}>"


def _not_kept(what: str = "") -> str:
    return f"<not kept: {what}more than {VALUE_LIMIT_BYTES} bytes>"


def _cut(text: str) -> str:
    text = str.__str__(text)
    if _is_small(text):
        return text
    kept = text.encode("utf-8", "replace")[:VALUE_LIMIT_BYTES].decode("utf-8", "ignore")
    return f"{kept}<cut: more than {VALUE_LIMIT_BYTES} bytes>"


def _is_plain(value: Any) -> bool:
    """Whether it is kept as it is: no container, and short whatever it says."""
    kind = cast("object", type(value))
    if kind is int:
        return -_LARGE_INT < value < _LARGE_INT
    return value is None or kind is bool or (kind is str and len(value) <= _SHORT_TEXT)


def _is_small(value: Any) -> bool:
    """Whether the log can keep it. Most values are told at a glance; only the others are written out to be measured."""
    if isinstance(value, str):
        return len(value) <= VALUE_LIMIT_BYTES // 4 or len(value.encode("utf-8", "replace")) <= VALUE_LIMIT_BYTES
    if not isinstance(value, dict | list):
        return True
    items = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else cast("list[Any]", value)
    if len(items) <= _FEW and all(type(item) in _SHORT for item in items):
        return True
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) <= VALUE_LIMIT_BYTES


_FEW = 16
_LARGE_INT = 1 << 53
_SHORT_TEXT = 256
_SHORT = frozenset({int, float, bool, type(None)})
_HEAD = 7
"""Fields of a row that stand before its values: what entries are found by, and how long the call took."""
_ROW_BYTES = 400
"""Bytes of an entry besides its names and values: two tuples, their numbers, and its place in the log."""
_CHARACTER_BYTES = 4
"""The most bytes that a character of a name takes."""
