"""The in-memory log of calls: bounded, newest first, safe to read while calls run."""

from __future__ import annotations

import datetime
import json
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
"""Bytes, as JSON, of one call's arguments or of its result that the log keeps: 10,000 of them may be kept."""

LOG_ENTRIES = 10_000
"""Calls that the log keeps; the oldest is dropped for the newest. About a day of one busy agent."""


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
    """What went wrong; None on success."""
    isolation: Mapping[str, Any] | None = None
    """What stood between a program and the host, as `level` and `report`; None for calls that ran no program."""
    approval: Mapping[str, Any] | None = None
    """Who decided and through what, and what an edit changed; None when nobody had to be asked."""


class ExecutionLog:
    """An observer that remembers the last `LOG_ENTRIES` calls."""

    def __init__(self, entries: int = LOG_ENTRIES) -> None:
        self._entries: deque[tuple[Any, ...]] = deque(maxlen=entries)

    def ended(self, record: Ended, /) -> None:
        """Takes one call down. Arguments and result are copied, so that later changes do not reach the log."""
        self._entries.appendleft(row_of(record))

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
        fitting = (
            row
            for row in list(self._entries)
            if (invocation_id is None or row[1] == invocation_id)
            and (tool_name is None or row[3] == tool_name)
            and (status is None or row[5] == status)
            and (after is None or row[4] >= after)
        )
        return [entry_of(row) for row in islice(fitting, limit)]

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forgets everything."""
        self._entries.clear()


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
        result.error,
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
        arguments=plain(row[7]),
        result=plain(row[8]),
        error=row[9],
        isolation=plain(row[10]),
        approval=plain(row[11]),
    )


def _copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Most calls: nothing in it can change, or be too long.
    if len(arguments) <= _FEW and all(map(_is_plain, arguments.values())):
        return {str(name): value for name, value in arguments.items()}
    try:
        found = plain(arguments)
    except Unrepresentable:
        return {str(name): _copy(value) for name, value in arguments.items()}
    return found if _is_small(found) else {name: _copy(value) for name, value in found.items()}


def _copy(value: Any) -> Any:
    if _is_plain(value):
        return value
    try:
        found = plain(value)
        return found if _is_small(found) else f"<not kept: more than {VALUE_LIMIT_BYTES} bytes>"
    except Unrepresentable as error:
        # Not its repr: that is the tool's code once more, and may be as long as it likes.
        return f"<{error}>"


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
