"""Requests as lists give them: those that wait, and all of them with their decisions, in pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, func, or_, select, tuple_

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import REQUESTS
from toolwire.journal.ledger.approvals import WITH_DECISION, read_decision, read_request, waits
from toolwire.journal.page import Page, cursor_of, page_of, read_cursor
from toolwire.journal.run import RequestInfo, RequestState, Waiting
from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.vocabulary.calls import Caller

T = TypeVar("T")

"""The kind of the cursors of these lists."""

_MORE = (REQUESTS.c.attempt, REQUESTS.c.tool, REQUESTS.c.principal, REQUESTS.c.agent, REQUESTS.c.tenant)
_ROWS = WITH_DECISION.add_columns(*_MORE)


def list_pending(
    connection: Connection,
    sealer: Sealer,
    run_id: str | None,
    now: float,
    *,
    limit: int | None,
    after: str | None,
    caller: Caller | None,
    tool: str | None,
) -> Page[ApprovalRequest]:
    """Returns the requests that wait and have not expired, oldest first.

    Raises:
        ConfigurationError: `after` is not the cursor of a page of requests.
    """

    def is_wanted(request: ApprovalRequest) -> bool:
        is_of_tool = tool is None or request.tool == tool
        return is_of_tool and (caller is None or _is_of_caller(request.caller, caller))

    query = _ROWS.where(waits(now), *_same("tool", tool))
    if caller is not None:
        query = query.where(*_same("principal", caller.principal), *_same("tenant", caller.tenant))
        query = query.where(*_same("agent", caller.agent or None))
    if run_id is not None:
        query = query.where(REQUESTS.c.run_id == run_id)
    order = (REQUESTS.c.created_at, REQUESTS.c.request_id)

    def read(row: Any) -> ApprovalRequest | None:
        request = _read_or_damaged(sealer, row)
        return request if request.damaged or is_wanted(request) else None

    return _page(connection, query.order_by(*order), read, limit=limit, after=after, is_newest_first=False)


def list_requests(
    connection: Connection,
    sealer: Sealer,
    run_id: str | None,
    now: float,
    *,
    state: RequestState | None,
    limit: int | None,
    after: str | None,
) -> Page[RequestInfo]:
    """Returns requests in every state with their decisions, newest first.

    Raises:
        ConfigurationError: `after` is not the cursor of a page of requests.
    """
    query = _ROWS
    if state == "pending":
        query = query.where(waits(now))
    elif state == "expired":
        query = query.where(REQUESTS.c.state == "pending", REQUESTS.c.expires_at != 0, REQUESTS.c.expires_at < now)
    elif state is not None:
        query = query.where(REQUESTS.c.state == state)
    if run_id is not None:
        query = query.where(REQUESTS.c.run_id == run_id)
    order = (REQUESTS.c.created_at.desc(), REQUESTS.c.request_id.desc())

    def read(row: Any) -> RequestInfo:
        return _info_of_row(sealer, row, now)

    return _page(connection, query.order_by(*order), read, limit=limit, after=after, is_newest_first=True)


def count_waiting(connection: Connection, now: float) -> Waiting:
    """Returns how many requests wait, and since when the oldest does. It opens none of them."""
    query = select(func.count(), func.min(REQUESTS.c.created_at)).where(waits(now))
    count, oldest = connection.execute(query).one()
    return Waiting(count=count, oldest_s=None if oldest is None else max(now - oldest, 0.0))


def _page(
    connection: Connection,
    query: Any,
    read: Callable[[Any], T | None],
    *,
    limit: int | None,
    after: str | None,
    is_newest_first: bool,
) -> Page[T]:
    """Returns the entries that `read` makes of the rows; None leaves a row out."""
    # The two lists run in opposite orders.
    kind = "requests" if is_newest_first else "pending requests"
    place = None if after is None else read_cursor(kind, after)
    own, query = tuple_(REQUESTS.c.created_at, REQUESTS.c.request_id), query.limit(None if limit is None else limit + 1)
    found: list[tuple[T, Any]] = []
    while True:
        beyond = () if place is None else (own < place if is_newest_first else own > place,)
        rows: Sequence[Any] = connection.execute(query.where(*beyond)).all()
        found += [(entry, row) for row in rows if (entry := read(row)) is not None]
        if limit is None or len(rows) <= limit or len(found) > limit:
            break
        # Requests of an older schema are found only when they are opened.
        place = rows[-1].created_at, rows[-1].request_id
    kept, more = page_of(found, limit)
    cursor = cursor_of(kind, kept[-1][1].created_at, kept[-1][1].request_id) if kept else ""
    return Page([entry for entry, _ in kept], more=more, cursor=cursor)


def _same(name: str, value: str | None) -> tuple[Any, ...]:
    """Returns the condition for a column that older rows do not have."""
    column = REQUESTS.c[name]
    return () if value is None else (or_(column == value, column.is_(None)),)


def _is_of_caller(owner: Caller, wanted: Caller) -> bool:
    same = (owner.principal, owner.tenant) == (wanted.principal, wanted.tenant)
    return same and wanted.agent in ("", owner.agent)


def _read_or_damaged(sealer: Sealer, row: Any) -> ApprovalRequest:
    """Returns the request, or what its columns tell of a damaged one."""
    try:
        return read_request(sealer, row)
    except DecisionRefused as refused:
        return ApprovalRequest(
            id=row.request_id,
            call_id=row.call_id,
            tool=row.tool or "",
            arguments={},
            reasons=(),
            caller=Caller(principal=row.principal or "", agent=row.agent or "", tenant=row.tenant or ""),
            run_id=row.run_id,
            attempt=row.attempt,
            created_at=row.created_at,
            expires_at=row.expires_at,
            damaged=str(refused),
        )


def _info_of_row(sealer: Sealer, row: Any, now: float) -> RequestInfo:
    request, decision, damaged = _read_or_damaged(sealer, row), None, ""
    try:
        decision = read_decision(sealer, row)
    except DecisionRefused as refused:
        damaged = str(refused)
    is_late = bool(row.expires_at) and now > row.expires_at
    state: RequestState = "expired" if row.state == "pending" and is_late else row.state
    return RequestInfo(request=request, state=state, decision=decision, damaged=request.damaged or damaged)
