"""The log of calls in memory: bounded, newest first, safe to read while calls run."""

from __future__ import annotations

import datetime
import json
import marshal
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Protocol, cast

from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.errors import ConfigurationError, Unrepresentable
from toolwire.vocabulary.html_display import html_table
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain_value

VALUE_LIMIT_BYTES = 65_536
"""Bytes of JSON kept for the arguments of one call, and for its result; also the bytes kept of its error text."""

LOG_ENTRIES = 10_000
"""Maximum number of entries. The oldest is dropped for the newest. It covers about a day of one busy agent."""

LOG_LIMIT_BYTES = 64 * 1024 * 1024
"""Maximum bytes of memory for all entries; the oldest are dropped first. 10,000 calls of 6 kB fit, which a host can
spare.
"""

SHOWN_ENTRIES = 100
"""Number of calls that a notebook shows of a log: a few pages."""


class EndedCall(Protocol):
    """The record of one call that an observer receives (`invocation.ports.ports.CallRecord`)."""

    call: ToolCall
    result: ToolResult
    run_id: str
    started_at: float
    duration_s: float
    is_from_record: bool
    conversation: str
    caller: Caller
    log_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One call that ended.

    Attributes:
        id: The call's id.
        invocation_id: The run of the call. All calls of one program share it (`tr_ptc_...`).
        parent: The id of the call that made this one: a program, or a tool through its context. Empty for a top-level
            call.
        tool_name: The name under which the tool was called.
        timestamp: Start of the call, in UTC.
        status: `success`, or the kind of failure (`tool_error`, `denied`, `invalid_arguments`, ...).
        duration_ms: Milliseconds from the call to its result, including the wait for a person.
        arguments: The model's arguments in JSON types. A short text replaces a value that is too long or has no JSON
            form.
        result: The data in JSON types, or a short text if they are too long or have no JSON form; None for a failure.
        error: The error message, cut at `VALUE_LIMIT_BYTES`; None on success.
        isolation: The isolation of a program as `level` and `report`; None for a call that ran no program.
        approval: The decision: its author, the channel, and the changes of an edit. None if the call needed no
            decision.
    """

    id: str
    invocation_id: str
    parent: str
    tool_name: str
    timestamp: datetime.datetime
    status: str
    duration_ms: float
    arguments: Mapping[str, Any]
    result: Any
    error: str | None
    isolation: Mapping[str, Any] | None = None
    approval: Mapping[str, Any] | None = None

    def _repr_html_(self) -> str:
        """Returns the entry as an HTML table, which notebooks show. All texts are escaped."""
        return html_table([(field.name, getattr(self, field.name)) for field in fields(self)])


class ExecutionLog:
    """An observer that keeps the last `LOG_ENTRIES` calls, or as many of them as fit into `bytes_limit`."""

    def __init__(self, entries: int = LOG_ENTRIES, *, bytes_limit: int = LOG_LIMIT_BYTES) -> None:
        self._limit, self._bytes_limit = entries, bytes_limit
        self._lock = threading.Lock()
        # A row is kept as bytes: its size is known, later changes cannot reach it, and nested lists take 20 times the
        # memory.
        self._rows: deque[bytes] = deque()
        """The row of each call that ended; newest first."""
        self._bytes = 0

    def ended(self, record: EndedCall, /) -> None:
        """Records one call. Arguments and result are copied, so that later changes do not reach the log."""
        row = _encode_row(row_of(record))
        with self._lock:
            self._rows.appendleft(row)
            self._bytes += len(row) + _ROW_BYTES
            while self._bytes > self._bytes_limit or len(self._rows) > self._limit:
                self._bytes -= len(self._rows.pop()) + _ROW_BYTES

    def get_entries(
        self,
        invocation_id: str | None = None,
        tool_name: str | None = None,
        status: str | None = None,
        since: datetime.datetime | float | None = None,
        limit: int | None = None,
    ) -> list[LogEntry]:
        """Returns ended calls, newest first. A call must match every filter that is given. The entries are copies.

        `status` is `success` or a kind of failure. `since` is an inclusive time: a datetime (naive means UTC), or
        seconds since the epoch. `limit` is the maximum number of entries; None returns all.

        Raises:
            ConfigurationError: `limit` is below 0.
        """
        check_limit(limit)
        after = None if since is None else seconds_of(since)
        with self._lock:
            rows = list(self._rows)
        fitting = (
            row
            for row in map(marshal.loads, rows)  # these bytes were made in this process
            if (invocation_id is None or row[1] == invocation_id)
            and (tool_name is None or row[3] == tool_name)
            and (status is None or row[5] == status)
            and (after is None or row[4] >= after)
        )
        return [entry_of(row) for row in islice(fitting, limit)]

    def _repr_html_(self) -> str:
        """Returns the newest `SHOWN_ENTRIES` calls as an HTML table, which notebooks show. All texts are escaped."""
        shown = self.get_entries(limit=SHOWN_ENTRIES)
        names = ("timestamp", "tool_name", "status", "duration_ms", "arguments", "result", "error")
        return html_table([[getattr(entry, name) for name in names] for entry in shown], head=names)

    def __len__(self) -> int:
        return len(self._rows)

    def clear(self) -> None:
        """Removes all entries."""
        with self._lock:
            self._rows.clear()
            self._bytes = 0


def row_of(record: EndedCall) -> tuple[Any, ...]:
    """Returns the call as the row that `entry_of` reads. Arguments and result are copied."""
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
        copy_arguments(call.arguments),
        None if failure is not None else copy_of(result.data),
        None if result.error is None else cut_log_text(result.error),
        copy_of(result.metadata.get("isolation")),
        copy_of(result.metadata.get("approval")),
    )


def seconds_of(since: datetime.datetime | float) -> float:
    """Converts a time to seconds since the epoch. A naive datetime is taken as UTC."""
    if not isinstance(since, datetime.datetime):
        return since
    return (since if since.tzinfo else since.replace(tzinfo=datetime.UTC)).timestamp()


def check_limit(limit: int | None) -> None:
    """Checks a maximum number of entries.

    Raises:
        ConfigurationError: `limit` is below 0.
    """
    if limit is not None and limit < 0:
        raise ConfigurationError(f"limit={limit}: give how many entries at most, or None for all")


def entry_of(row: tuple[Any, ...]) -> LogEntry:
    """Returns the entry of a row. Both have the same fields in the same order; a row has times in seconds."""
    facts = dict(zip(LogEntry.__dataclass_fields__, row, strict=True))
    facts["timestamp"] = datetime.datetime.fromtimestamp(facts["timestamp"], datetime.UTC)
    facts["duration_ms"] *= 1000
    return LogEntry(**facts)


def _encode_row(row: tuple[Any, ...]) -> bytes:
    try:
        return marshal.dumps(row)
    except ValueError:
        # A name or an id is of a subclass of `str`. The values are of JSON types.
        return marshal.dumps(tuple(str.__str__(field) if isinstance(field, str) else field for field in row))


def copy_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments in JSON types, bounded as the log keeps them."""
    if len(arguments) <= _FEW:
        for name, value in arguments.items():
            if type(name) is not str or len(name) > _SHORT_TEXT or not _is_plain(value):
                break
        else:
            # The usual call: no value can change or be too long.
            return dict(arguments)
    try:
        found = plain_value(arguments)
    except Unrepresentable:
        found = {str(name): copy_of(value) for name, value in arguments.items()}
    if _is_small(found):
        return found
    found = {cut_log_text(name): copy_of(value) for name, value in found.items()}
    if len(found) <= _FEW or _is_small(found):
        return found
    return {"*": _omission_text(f"{len(found):,} arguments, together ")}


def copy_of(value: Any) -> Any:
    """Returns a value in JSON types; a short text about it if it is too large or has no JSON form."""
    if _is_plain(value):
        return value
    try:
        found = plain_value(value)
        return found if _is_small(found) else _omission_text()
    except Unrepresentable as error:
        # The text is not a repr: a repr would run the tool's code again, and could have any length.
        return f"<{error}>"


def _omission_text(what: str = "") -> str:
    return f"<not kept: {what}more than {VALUE_LIMIT_BYTES} bytes>"


def cut_log_text(text: str) -> str:
    """Returns the text, or its beginning if it is longer than `VALUE_LIMIT_BYTES`."""
    text = str.__str__(text)
    if _is_small(text):
        return text
    kept = text[:VALUE_LIMIT_BYTES].encode("utf-8", "replace")[:VALUE_LIMIT_BYTES].decode("utf-8", "ignore")
    return f"{kept}<cut: more than {VALUE_LIMIT_BYTES} bytes>"


def _is_plain(value: object) -> bool:
    """True if the log keeps the value as it is: it is not a container and is short."""
    if type(value) is int:
        return -_LARGE_INT < value < _LARGE_INT
    if type(value) is str:
        return len(value) <= _SHORT_TEXT
    return value is None or type(value) is bool


def _is_small(value: Any) -> bool:
    """True if the value is small enough for the log. Only values of uncertain size are encoded to measure them."""
    if isinstance(value, str):
        # A text of 100 MB is not encoded only to see that it is too large.
        if not VALUE_LIMIT_BYTES // 4 < len(value) <= VALUE_LIMIT_BYTES:
            return len(value) <= VALUE_LIMIT_BYTES
        return len(value.encode("utf-8", "replace")) <= VALUE_LIMIT_BYTES
    if not isinstance(value, dict | list):
        return True
    items = list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else cast("list[Any]", value)
    if len(items) <= _FEW and all(type(item) in _SHORT for item in items):
        return True
    if sum(len(item) for item in items if type(item) is str) > VALUE_LIMIT_BYTES:
        return False
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) <= VALUE_LIMIT_BYTES


_FEW = 16
_LARGE_INT = 1 << 53
_SHORT_TEXT = 256
_SHORT = frozenset({int, float, bool, type(None)})
_ROW_BYTES = 48
"""Bytes of a row besides its text: the header of a bytes object, and its place in the log."""
