"""Runs as lists describe them, by filters, in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, or_, select, tuple_

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import HAS_READY_AT, IS_HELD, IS_UNFINISHED, OWNERS, REQUESTS, RUNS, STEPS
from toolwire.journal.ledger import approvals
from toolwire.journal.ledger.forms import read_summary, tools_text
from toolwire.journal.page import Page, cursor_of, page_of, read_cursor
from toolwire.journal.reading.holders import Holders
from toolwire.journal.run import RunInfo, RunStatus
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import Caller

KIND = "runs"
"""The kind of the cursors of these lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Selects runs. A run must match every field that is set; `Store.runs` describes them."""

    status: RunStatus | None = None
    conversation: str | None = None
    caller: Caller | None = None
    agent: str | None = None
    tool: str | None = None
    is_held: bool | None = None
    since: float | None = None
    before: float | None = None


def list_runs(
    connection: Connection, sealer: Sealer, wanted: RunFilter, now: float, *, limit: int, after: str | None
) -> Page[RunInfo]:
    """Returns the runs that match, newest first.

    Raises:
        ConfigurationError: `after` is not the cursor of a page of runs.
    """
    place = None if after is None else read_cursor(KIND, after)
    query = _apply_filter(connection, wanted, now).limit(limit + 1)
    query = query.order_by(RUNS.c.created_at.desc(), RUNS.c.run_id.desc())
    found: list[RunInfo] = []
    while True:
        one = query if place is None else query.where(tuple_(RUNS.c.created_at, RUNS.c.run_id) < place)
        read = _read_infos(connection, sealer, one, now)
        found += [info for info in read if wanted.tool is None or info.damaged or wanted.tool in info.tools]
        if len(read) <= limit or len(found) > limit:
            break
        # Runs of an older schema are found only when they are opened.
        place = read[-1].created_at, read[-1].run_id
    runs, more = page_of(found, limit)
    return Page(runs, more=more, cursor=cursor_of(KIND, runs[-1].created_at, runs[-1].run_id) if runs else "")


def list_ready(connection: Connection, sealer: Sealer, now: float, *, limit: int) -> list[RunInfo]:
    """Returns the runs that are due and that no living process holds, those that are due longest first."""
    owner_lives = select(OWNERS.c.owner).where(OWNERS.c.owner == RUNS.c.owner, OWNERS.c.alive_until > now).exists()
    # A process of an older toolwire does not take back the time of a run that it ends.
    is_open = RUNS.c.status.in_(("queued", "running", "suspended"))
    query = _DESCRIPTION.where(HAS_READY_AT, RUNS.c.ready_at <= now, is_open, ~owner_lives)
    found = _read_infos(connection, sealer, query.order_by(RUNS.c.ready_at).limit(limit), now)
    return [info for info in found if not info.is_held]


def read_run_info(connection: Connection, sealer: Sealer, run_id: str, now: float) -> RunInfo:
    """Returns the description of one run.

    Raises:
        DecisionRefused: `unknown_run`, `bad_mac`, or `schema_too_new`.
    """
    found = _read_infos(connection, sealer, _DESCRIPTION.where(RUNS.c.run_id == run_id), now)
    if not found:
        raise DecisionRefused("unknown_run", f"there is no run {run_id!r}")
    if found[0].damaged:
        # Read once more, for the refusal with its code.
        sealed = connection.execute(select(RUNS.c.start).where(RUNS.c.run_id == run_id)).scalar_one()
        read_summary(sealer.open(sealed, "runs", run_id, "start"))
    return found[0]


def _apply_filter(connection: Connection, wanted: RunFilter, now: float) -> Any:
    query = _DESCRIPTION
    same = {"status": wanted.status, "conversation": wanted.conversation, "agent": wanted.agent}
    if wanted.caller is not None:
        same |= {"principal": wanted.caller.principal, "tenant": wanted.caller.tenant}
        query = query.where(RUNS.c.agent == wanted.caller.agent) if wanted.caller.agent else query
    for name, value in same.items():
        query = query if value is None else query.where(RUNS.c[name] == value)
    if wanted.status not in (None, "finished"):
        query = query.where(IS_UNFINISHED)
    if wanted.tool is not None:
        # As `replace`, since LIKE ignores case in SQLite.
        others = func.replace(RUNS.c.tools, tools_text([wanted.tool]), "")
        query = query.where(or_(RUNS.c.tools != others, RUNS.c.tools.is_(None)))
    if wanted.is_held is not None:
        held = RUNS.c.run_id.in_(_find_held(connection, now))
        query = query.where(held if wanted.is_held else ~held)
    if wanted.since is not None:
        query = query.where(RUNS.c.created_at >= wanted.since)
    return query if wanted.before is None else query.where(RUNS.c.created_at < wanted.before)


def _find_held(connection: Connection, now: float) -> list[str]:
    """Returns the ids of the runs that a process which may be alive holds. Only runs at work or crashed have owners."""
    columns = (RUNS.c.run_id, RUNS.c.owner, RUNS.c.lease_until, OWNERS.c.alive_until)
    query = select(*columns).outerjoin(OWNERS, OWNERS.c.owner == RUNS.c.owner).where(IS_HELD)
    holders = Holders(now)
    return [row.run_id for row in connection.execute(query) if holders.is_held(row)]


_FACTS = ("run_id", "status", "rev", "created_at", "updated_at", "expires_at", "taken_over")
"""The columns that a description has as they are."""


def _make_description() -> Any:
    """Returns the query for descriptions of runs. Their outcomes, which may be large, are not among the columns."""
    names = (*_FACTS, "owner", "lease_until", "start", "conversation", "principal", "agent", "tenant")
    steps = select(func.count()).where(STEPS.c.run_id == RUNS.c.run_id, STEPS.c.ended.is_not(None))
    # `|| ''` keeps SQLite from the index of all waiting requests, which it would walk once for each run.
    state = REQUESTS.c.state.concat("")
    waiting = select(func.count()).where(REQUESTS.c.run_id == RUNS.c.run_id, approvals.waits(bindparam("now"), state))
    alive_until = select(OWNERS.c.alive_until).where(OWNERS.c.owner == RUNS.c.owner)
    return select(
        *(RUNS.c[name] for name in names),
        steps.correlate(RUNS).scalar_subquery().label("steps"),
        waiting.correlate(RUNS).scalar_subquery().label("pending"),
        alive_until.correlate(RUNS).scalar_subquery().label("alive_until"),
    )


_DESCRIPTION = _make_description()


def _read_infos(connection: Connection, sealer: Sealer, wanted: Any, now: float) -> list[RunInfo]:
    """Returns the descriptions of the runs that a form of `_DESCRIPTION` selects, in its order."""
    holders = Holders(now)
    rows = connection.execute(wanted, {"now": now})
    return [_info_of_row(sealer, row, is_held=holders.is_held(row)) for row in rows]


def _info_of_row(sealer: Sealer, row: Any, *, is_held: bool) -> RunInfo:
    damaged = ""
    try:
        protocol, tools, caller, conversation = read_summary(sealer.open(row.start, "runs", row.run_id, "start"))
    except DecisionRefused as refused:
        caller = Caller(principal=row.principal, agent=row.agent, tenant=row.tenant)
        protocol, tools, conversation, damaged = "", (), row.conversation, str(refused)
    return RunInfo(
        **{name: getattr(row, name) for name in _FACTS},
        protocol=protocol,
        tools=tools,
        caller=caller,
        steps=row.steps,
        pending=row.pending,
        is_held=is_held,
        conversation=conversation,
        damaged=damaged,
    )
