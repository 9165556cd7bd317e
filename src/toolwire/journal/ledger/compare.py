"""Compares a store's runs and steps with its log: what one mentions, the other must have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import LOG, RUNS, STEPS, clear_text
from toolwire.journal.ledger.forms import read_form, read_run
from toolwire.journal.log.chain import entry_of
from toolwire.journal.log.checking import Read
from toolwire.journal.log.heads import before_first, read_heads
from toolwire.journal.log.redaction import redact

NAMED = 100
"""Missing runs and steps that are named: more than a person looks through."""

_AT_ONCE = 500
"""Number of steps, of runs and of rows in one query."""


Span = str | list[Any]
"""The key of a step, or `[path, first, last]` for keys that differ only in their last number."""


def spans(keys: Iterable[str]) -> list[Span]:
    """Compresses the keys of steps: `["r_1", 1, 3]` stands for `r_1/1`, `r_1/2` and `r_1/3`."""
    numbers: dict[str, list[int]] = {}
    found: list[Span] = []
    for key in keys:
        path, slash, number = key.rpartition("/")
        if slash and number.isdecimal() and number.isascii() and str(int(number)) == number:
            numbers.setdefault(path, []).append(int(number))
        else:
            found.append(key)
    for path, of_path in numbers.items():
        for _, group in groupby(enumerate(sorted(of_path)), lambda pair: pair[1] - pair[0]):
            run = [number for _, number in group]
            found.append([path, run[0], run[-1]])
    return found


def keys_of(spans: Iterable[Span]) -> Iterator[str]:
    """Returns the keys that `spans` compressed."""
    for span in spans:
        if isinstance(span, str):
            yield span
        else:
            path, first, last = span
            yield from (f"{path}/{number}" for number in range(first, last + 1))


def find_missing(read: Read[Any]) -> tuple[str, ...]:
    """Returns the runs and steps that the log mentions and the store no longer has, at most `NAMED`.

    Each slice of the log is compared with the store as it is then, so runs may come and go meanwhile.
    """
    runs = read(_read_run_ids)
    found: dict[str, None] = {}
    mentions = _read_mentions(read, runs)
    while some := list(islice(mentions, _AT_ONCE)):
        found.update(dict.fromkeys(read(partial(_find_lost, mentions=some, runs=runs))))
        if len(found) >= NAMED:
            break
    return tuple(found)[:NAMED]


def find_unlogged(read: Read[Any], sealer: Sealer) -> tuple[str, ...]:
    """Returns the runs and steps of the store that the log does not mention, at most `NAMED`.

    Every change of a run is in the log, in the same transaction. So one that is not there was cut off, even if an
    earlier signed end of the log was put back. The steps of a run are named when it waits or ends. Those of a run that
    is under way or has crashed have the rows of their calls. In a run that an older toolwire worked on, these rows
    followed in later transactions, which a crash prevents, so they are not looked for. If the log was pruned, a run
    from before its latest pruned row may have had its rows pruned.
    """
    found: list[str] = []
    after: str | None = ""
    while after is not None and len(found) < NAMED:
        page: _RunPage = read(partial(_compare_runs, sealer=sealer, after=after))
        found += page.unlogged
        after = page.last
    return tuple(found[:NAMED])


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunPage:
    """Some runs that were compared with the log."""

    unlogged: list[str]
    """What the log does not mention of them."""
    last: str | None
    """The last of them; None if no runs are left."""


def _compare_runs(connection: Connection, sealer: Sealer, after: str) -> _RunPage:
    ended = RUNS.c.outcome.is_not(None)
    query = select(RUNS.c.run_id, RUNS.c.status, ended.label("has_outcome")).where(RUNS.c.run_id > after)
    runs = connection.execute(query.order_by(RUNS.c.run_id).limit(_AT_ONCE)).all()
    last = _read_last_rows(connection, [_log_text(run.run_id) for run in runs])
    begins = _read_begin(connection, sealer)
    found: list[str] = []
    for run in runs:
        # The column of the status is not sealed.
        status = "finished" if run.has_outcome else run.status
        row = last.get(_log_text(run.run_id))
        if row is None:
            if _is_whole(connection, sealer, run.run_id, begins):
                found.append(f"run {run.run_id}")
        elif status not in _STATUSES.get(row.status, (row.status,)):
            found.append(f"run {run.run_id} is {status}, and {row.status} in the log")
        elif row.steps is not None:
            found += _steps_not_named(connection, run.run_id, row.steps)
        elif row.has_calls and _is_whole(connection, sealer, run.run_id, begins):
            found += _steps_without_rows(connection, run.run_id)
    return _RunPage(unlogged=found, last=runs[-1].run_id if len(runs) == _AT_ONCE else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunRow:
    """A row of the log about a run."""

    place: tuple[int, bool, int]
    """Orders the rows of one run, which may be in several chains: by the lease, and within one by its end."""
    status: str
    steps: list[Span] | None
    has_calls: bool
    """True if each call of the run has its row in the transaction of its end: no older toolwire worked on the run."""


def _read_last_rows(connection: Connection, run_ids: Sequence[str]) -> dict[str, _RunRow]:
    """Returns the last row of each of these runs."""
    last: dict[str, _RunRow] = {}
    older = set[str]()
    query = select(LOG.c.seq, LOG.c.run_id, LOG.c.status, LOG.c.entry)
    for row in connection.execute(query.where(LOG.c.kind == "run", LOG.c.run_id.in_(run_ids))):
        entry = entry_of(row.entry) or {}
        lease = entry.get("lease")
        # Rows of an older toolwire have no lease, and all of them are in chain 0.
        place = (lease, row.status in _ENDS, row.seq) if isinstance(lease, int) and lease else (0, False, row.seq)
        if not place[0]:
            older.add(row.run_id)
        if row.run_id not in last or place > last[row.run_id].place:
            last[row.run_id] = _RunRow(place=place, status=row.status, steps=entry.get("steps"), has_calls=True)
    return {run_id: replace(row, has_calls=run_id not in older) for run_id, row in last.items()}


def _read_begin(connection: Connection, sealer: Sealer) -> float | None:
    """Returns the time from which all chains are whole; None if no rows were pruned."""
    pruned = [head for chain, head in read_heads(connection, sealer).items() if head.pruned > before_first(chain)]
    if not pruned:
        return None
    times = [head.pruned_at for head in pruned if head.pruned_at]
    if len(times) < len(pruned):
        # An older toolwire pruned chain 0 and did not write until when.
        first = connection.execute(select(LOG.c.at).order_by(LOG.c.seq).limit(1)).scalar()
        times.append(math.inf if first is None else first)
    return max(times)


def _read_start_time(connection: Connection, sealer: Sealer, run_id: str) -> float:
    """Returns the time of a run's start from its sealed record. A change of it needs the key."""
    start = connection.execute(select(RUNS.c.start).where(RUNS.c.run_id == run_id)).scalar_one()
    return read_form(sealer.open(start, "runs", run_id, "start"), read_run).created_at


def _is_whole(connection: Connection, sealer: Sealer, run_id: str, begins: float | None) -> bool:
    """True if no row of the run was pruned."""
    return begins is None or _read_start_time(connection, sealer, run_id) > begins


def _steps_without_rows(connection: Connection, run_id: str) -> list[str]:
    """Returns the ended steps of the model's calls that have no row. Inner calls have other subjects in the log."""
    ended = select(STEPS.c.key).where(STEPS.c.run_id == run_id, STEPS.c.ended.is_not(None)).order_by(STEPS.c.key)
    keys = [key for key in connection.execute(ended).scalars() if key.rpartition("/")[0] == run_id]
    rows = select(LOG.c.subject).where(LOG.c.run_id == _log_text(run_id), LOG.c.kind == "call")
    known = set(connection.execute(rows).scalars())
    return [f"step {key} of run {run_id}" for key in keys if _log_text(key) not in known]


def _steps_not_named(connection: Connection, run_id: str, logged: list[Span]) -> list[str]:
    known = set(keys_of(logged))
    keys = connection.execute(select(STEPS.c.key).where(STEPS.c.run_id == run_id).order_by(STEPS.c.key)).scalars()
    return [f"step {key} of run {run_id}" for key in keys if _log_text(key) not in known]


_ENDS = ("suspended", "finished", "stopped", "diverged", "forgotten")
"""The statuses of a row that is written after another of the same lease."""

_STATUSES: Mapping[str, tuple[str, ...]] = {
    "queued": ("queued",),
    "started": ("running",),
    "parked": ("parked",),
    "requeued": ("running",),
    "resumed": ("running", "suspended", "stopped"),
    "stopping": ("running", "suspended"),
    "stopped": ("stopped", "finished"),
    "diverged": ("diverged", "finished"),
}
"""The statuses that a run may have after its last row. A resumed run keeps its status until it waits or ends. A run
with results counts as finished here, however it ended.
"""


def _read_run_ids(connection: Connection) -> dict[str, str]:
    """Returns the ids of all runs, by the text that the log has for each."""
    return {_log_text(run_id): run_id for run_id in connection.execute(select(RUNS.c.run_id)).scalars()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mention:
    """Steps that a row of the log mentions."""

    run_id: str
    """The run, as the log writes it."""
    keys: Sequence[str]


def _read_mentions(read: Read[Any], runs: Mapping[str, str]) -> Iterator[_Mention]:
    known = set(runs)
    for row in _read_rows(read, LOG.c.kind == "run"):
        known.add(row.run_id)
        yield _Mention(run_id=row.run_id, keys=list(keys_of((entry_of(row.entry) or {}).get("steps", ()))))
    # A failed call may never have been on record: it was interrupted, or the run was full.
    for row in _read_rows(read, (LOG.c.kind == "call") & (LOG.c.status == "success")):
        path, _, number = row.subject.rpartition("/")
        if path != row.run_id or not number.isdecimal():
            # A tool made this call through its context; the record of the tool's own call stands for it.
            continue
        parent = str((entry_of(row.entry) or {}).get("parent", "")).rpartition("/")[0]
        for run_id in (row.run_id, parent):
            if run_id in known:
                yield _Mention(run_id=run_id, keys=[row.subject])
                break


def _read_rows(read: Read[Any], wanted: ColumnElement[bool]) -> Iterator[Any]:
    """Returns the rows of all chains that fulfil a condition, read in slices."""
    query = select(LOG.c.seq, LOG.c.run_id, LOG.c.subject, LOG.c.entry).where(wanted).order_by(LOG.c.seq)
    rows, after = list[Any](), 0
    while after == 0 or len(rows) == _AT_ONCE:
        part = query.where(LOG.c.seq > after).limit(_AT_ONCE)
        rows = read(lambda connection, part=part: connection.execute(part).all())
        yield from rows
        after = rows[-1].seq if rows else -1


def _find_lost(connection: Connection, mentions: Sequence[_Mention], runs: Mapping[str, str]) -> list[str]:
    """Returns the runs and steps among the mentioned ones that the store does not have."""
    names = {mention.run_id: runs.get(mention.run_id, mention.run_id) for mention in mentions}
    query = select(RUNS.c.run_id).where(RUNS.c.run_id.in_(set(names.values())))
    there = set(connection.execute(query).scalars())
    gone = [run_id for run_id, name in names.items() if name not in there]
    # The log is signed, so no one without the key can say that a run was forgotten.
    said = select(LOG.c.run_id).where(LOG.c.kind == "run", LOG.c.status == "forgotten", LOG.c.run_id.in_(gone))
    forgotten = set(connection.execute(said).scalars()) if gone else set[str]()
    lost: list[str] = []
    for mention in mentions:
        if mention.run_id in forgotten:
            continue
        lost += [f"run {mention.run_id}"] if mention.run_id in gone else []
        steps = _find_steps(connection, names[mention.run_id], mention.keys)
        lost += [f"step {key} of run {mention.run_id}" for key in mention.keys if key not in steps]
    return lost


def _find_steps(connection: Connection, run_id: str, keys: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(keys), _AT_ONCE):
        wanted = keys[start : start + _AT_ONCE]
        query = select(STEPS.c.key).where(STEPS.c.run_id == run_id, STEPS.c.key.in_(wanted))
        found.update(connection.execute(query).scalars())
    return found


def _log_text(text: str) -> str:
    """Returns the text as the log shows it."""
    shown: Any = redact(text)
    return clear_text(str(shown))
