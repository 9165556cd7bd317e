"""Conversations in a store: their callers, and the data that their turns have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, func, select, tuple_

from toolwire.journal.conversation_info import ConversationInfo, is_owner, refuse_other
from toolwire.journal.database.driver import run_statement
from toolwire.journal.database.gathering import find_part
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import CONVERSATIONS, DOCUMENTS, RUNS, clear_text
from toolwire.journal.ledger.forms import encode_form, plain_form, read_form, read_plain, tools_text
from toolwire.journal.ledger.leases import Lease, NewLeases, Owner, living_holder
from toolwire.journal.page import Page, cursor_of, page_of, read_cursor
from toolwire.journal.run import ConversationChanged, RunStart
from toolwire.permission.approval import DecisionRefused
from toolwire.permission.seen_urls import with_urls
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.effects import Label

KIND = "conversations"
"""The kind of the cursors of their list."""

SEEN_STATES = 1_000
"""Conversations whose state is kept in memory: a gateway has about as many clients at a time."""

SEEN_BYTES = 4_096
"""Maximum bytes of a sealed state that is kept in memory. All together take a few megabytes then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationState:
    """The sealed state of a conversation."""

    caller: Caller
    taints: frozenset[Label] = frozenset()
    urls: tuple[str, ...] = ()
    """URLs that stood whole in results, the oldest first."""
    groups: frozenset[str] = frozenset()
    """The tool groups that were active at the end of the last turn."""
    sealed: bytes = field(default=b"", compare=False)
    """The state as it stands in its row; empty if it has none yet."""


class SeenStates:
    """The states of conversations as this process saw them last, so that a new run need not read them.

    Another process may have changed one since. Each is compared with its row when a run that started from it is
    written.
    """

    def __init__(self) -> None:
        self._states = dict[str, ConversationState]()

    def find(self, run: RunStart) -> ConversationState | None:
        """Returns the state of the conversation that a new run is about to enter; None if it has to be read."""
        if not run.conversation:
            return ConversationState(caller=run.caller)
        state = self._states.get(run.conversation)
        return state if state is not None and is_owner(state.caller, run.caller) else None

    def keep(self, conversation: str, state: ConversationState | None) -> None:
        """Keeps a state in place of the one before; None and a large one are not kept."""
        self._states.pop(conversation, None)
        if state is None or len(state.sealed) > SEEN_BYTES:
            return
        if len(self._states) >= SEEN_STATES:
            self._states.clear()
        self._states[conversation] = state


def look_at_conversation(connection: Connection, sealer: Sealer, run: RunStart) -> ConversationState:
    """Returns the state of the conversation that a new run is about to enter. Nothing is locked.

    Raises:
        DecisionRefused: `not_permitted`.
    """
    row = None
    if run.conversation:
        row = run_statement(connection, _READ_STATE, clear_text(run.conversation)).fetchone()
    if row is None:
        return ConversationState(caller=run.caller)
    state = state_of(sealer, run.conversation, row[0])
    refuse_other(run.conversation, state.caller, run.caller)
    return state


def join_conversation(
    connection: Connection, sealer: Sealer, run: RunStart, known: ConversationState, now: float
) -> ConversationState | None:
    """Enters a new run into its conversation. `known` is the state from which the run started.

    Returns the state from now on; None for a run without a conversation. The conversation stays locked until the end of
    the transaction.

    Raises:
        DecisionRefused: `not_permitted`.
        ConversationChanged: Another turn has read more since.
    """
    if not run.conversation:
        return None
    state = lock_conversation(connection, sealer, run.conversation, run.caller, now, known)
    refuse_other(run.conversation, state.caller, run.caller)
    if (state.taints, state.urls) != (known.taints, known.urls):
        raise ConversationChanged
    both = state.taints | set(run.taints)
    return state if both == state.taints else _keep(connection, sealer, run.conversation, replace(state, taints=both))


def whose(run: RunStart) -> dict[str, str]:
    """Returns the columns by which runs are found. The sealed start of the run has the same values, and counts."""
    caller = run.caller
    return {
        "conversation": run.conversation,
        "principal": caller.principal,
        "agent": caller.agent,
        "tenant": caller.tenant,
    }


def insert_run(
    connection: Connection,
    run: RunStart,
    lease: Lease,
    sealed: bytes,
    owner: Owner,
    now: float,
    *,
    lease_until: float,
) -> None:
    """Inserts a new run, with the lease that holds it until then. `sealed` is its sealed start.

    Lock its conversation first.

    Raises:
        DecisionRefused: `conversation_busy`.
    """
    times = (run.created_at or now, now, run.expires_at)
    held = (lease.owner, lease.number, lease_until)
    texts = (run.run_id, *whose(run).values(), tools_text(run.tools))
    row = (*times, *held, sealed, *map(clear_text, texts), lease_until)
    name = clear_text(run.conversation)
    if not name or not run_statement(connection, _INSERT_IF_FREE, *row, name, lease.owner).rowcount:
        if name:
            refuse_busy(connection, run.conversation, owner, now, run_id=run.run_id)
        run_statement(connection, _INSERT_RUN, *row)
    find_part(connection, NewLeases).leases.add(lease)


_INSERT_RUN = (
    "INSERT INTO runs (status, rev, created_at, updated_at, expires_at, owner, lease, lease_until, start, run_id,"
    " conversation, principal, agent, tenant, tools, ready_at)"
    " SELECT 'running', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
)
_INSERT_IF_FREE = (
    _INSERT_RUN  # noqa: S608 - a constant
    + " WHERE NOT EXISTS (SELECT 1 FROM runs WHERE conversation = ? AND owner <> '' AND owner <> ?)"
)
"""Most conversations are free, so that one statement is enough. Otherwise the process that holds it may be dead."""


def rejoin_conversation(
    connection: Connection, sealer: Sealer, run: RunStart, owner: Owner, now: float
) -> tuple[RunStart, tuple[str, ...]]:
    """Enters a run again that another process may have left.

    Returns the run with the labels of all data that the conversation read, those of its own calls included, and the
    URLs that it read.

    Raises:
        DecisionRefused: `conversation_busy`.
    """
    if not run.conversation:
        return run, ()
    state = lock_conversation(connection, sealer, run.conversation, run.caller, now)
    refuse_busy(connection, run.conversation, owner, now, run_id=run.run_id)
    return replace(run, taints=tuple(sorted(state.taints | set(run.taints)))), state.urls


def has_read(
    connection: Connection, sealer: Sealer, run: RunStart, taints: Iterable[Label], urls: Sequence[str]
) -> ConversationState | None:
    """Adds the labels and URLs that a run has read to those of its conversation. `urls` are the new ones.

    Returns the state of the conversation, or None if the run has read nothing new.
    """
    more = set(taints)
    if not run.conversation or (more <= set(run.taints) and not urls):
        return None
    state = lock_conversation(connection, sealer, run.conversation, run.caller, run.created_at)
    if not urls and more <= state.taints:
        return state
    read = replace(state, taints=state.taints | more, urls=tuple(with_urls(state.urls, urls)))
    return _keep(connection, sealer, run.conversation, read)


def active_groups(connection: Connection, sealer: Sealer, conversation: str, caller: Caller) -> frozenset[str]:
    """Returns the tool groups that were active at last; none of a conversation that is new or another principal's."""
    state = _state_for(connection, sealer, conversation, caller)
    return frozenset() if state is None else state.groups


def taints(connection: Connection, sealer: Sealer, conversation: str, caller: Caller) -> frozenset[Label]:
    """Returns the labels of what was read; none of a conversation that is new or another principal's."""
    state = _state_for(connection, sealer, conversation, caller)
    return frozenset() if state is None else state.taints


def _state_for(connection: Connection, sealer: Sealer, conversation: str, caller: Caller) -> ConversationState | None:
    """Returns the state of a conversation; None if it is new or another principal's."""
    query = select(CONVERSATIONS.c.state).where(CONVERSATIONS.c.conversation == conversation)
    sealed = connection.execute(query).scalar_one_or_none()
    if sealed is None:
        return None
    state = state_of(sealer, conversation, sealed)
    return state if is_owner(state.caller, caller) else None


def keep_groups(
    connection: Connection, sealer: Sealer, conversation: str, caller: Caller, groups: frozenset[str], now: float
) -> None:
    """Records the active tool groups of a conversation.

    Raises:
        DecisionRefused: `not_permitted`.
    """
    state = lock_conversation(connection, sealer, conversation, caller, now)
    refuse_other(conversation, state.caller, caller)
    if state.groups != groups:
        _keep(connection, sealer, conversation, replace(state, groups=groups))


def refuse_busy(connection: Connection, conversation: str, owner: Owner, now: float, *, run_id: str = "") -> None:
    """Refuses while another process holds a run of the conversation, apart from that run. Lock the conversation first.

    Raises:
        DecisionRefused: `conversation_busy`. The message names the holder.
    """
    name, own = clear_text(conversation), str(owner)
    for held, holder, lease_until, alive_until in run_statement(connection, _HELD, name, own, clear_text(run_id)):
        if found := living_holder(holder, lease_until=lease_until, alive_until=alive_until, now=now):
            raise DecisionRefused(
                "conversation_busy",
                f"conversation {conversation!r} is in use by {found}, which works on run {held!r}: try again "
                "when that run has ended",
            )


_HELD = (
    "SELECT runs.run_id, runs.owner, lease_until, alive_until FROM runs"
    # A process renews the leases of all its runs by its row in `owners`.
    " LEFT JOIN owners ON owners.owner = runs.owner"
    " WHERE conversation = ? AND runs.owner <> '' AND runs.owner <> ? AND run_id <> ?"
)


def infos(connection: Connection, sealer: Sealer, *, limit: int, after: str | None) -> Page[ConversationInfo]:
    """Returns conversations, the one with the latest turn first.

    Raises:
        ConfigurationError: `after` is not the cursor of a page of conversations.
    """
    query = (
        select(
            CONVERSATIONS,
            func.coalesce(DOCUMENTS.c.version, 0).label("version"),
            select(func.count())
            .where(RUNS.c.conversation == CONVERSATIONS.c.conversation)
            .correlate(CONVERSATIONS)
            .scalar_subquery()
            .label("runs"),
        )
        .select_from(CONVERSATIONS.outerjoin(DOCUMENTS))
        .order_by(CONVERSATIONS.c.updated_at.desc(), CONVERSATIONS.c.conversation.desc())
        .limit(limit + 1)
    )
    if after is not None:
        place = read_cursor(KIND, after)
        query = query.where(tuple_(CONVERSATIONS.c.updated_at, CONVERSATIONS.c.conversation) < place)
    found, more = page_of([_info_of_row(sealer, row) for row in connection.execute(query)], limit)
    return Page(found, more=more, cursor=cursor_of(KIND, found[-1].updated_at, found[-1].conversation) if found else "")


def lock_conversation(
    connection: Connection,
    sealer: Sealer,
    conversation: str,
    caller: Caller,
    now: float,
    known: ConversationState | None = None,
) -> ConversationState:
    """Locks a conversation, and returns its state. A new one belongs to `caller`.

    `known` is a state that this process has seen: one that has not changed need not be opened. The work that does so
    names the conversation in `Work.locks`.
    """
    if known is not None and known.sealed:
        found = run_statement(connection, _TOUCH_KNOWN, now, clear_text(conversation)).fetchall()
        if found:
            return known if found[0][0] == known.sealed else state_of(sealer, conversation, found[0][0])
    new = _seal_state(sealer, conversation, ConversationState(caller=caller))
    (row,) = run_statement(connection, _TOUCH, clear_text(conversation), now, now, new).fetchall()
    return state_of(sealer, conversation, row[0])


_READ_STATE = "SELECT state FROM conversations WHERE conversation = ?"
_TOUCH = (
    "INSERT INTO conversations (conversation, created_at, updated_at, state) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (conversation) DO UPDATE SET updated_at = excluded.updated_at RETURNING state"
)
_TOUCH_KNOWN = "UPDATE conversations SET updated_at = ? WHERE conversation = ? RETURNING state"
_KEEP_STATE = "UPDATE conversations SET state = ? WHERE conversation = ?"


def _keep(connection: Connection, sealer: Sealer, conversation: str, state: ConversationState) -> ConversationState:
    sealed = _seal_state(sealer, conversation, state)
    run_statement(connection, _KEEP_STATE, sealed, clear_text(conversation))
    return replace(state, sealed=sealed)


def _seal_state(sealer: Sealer, conversation: str, state: ConversationState) -> bytes:
    form: dict[str, Any] = {"caller": plain_form(state.caller), "taints": sorted(state.taints)}
    if state.urls:
        form["urls"] = list(state.urls)
    if state.groups:
        form["groups"] = sorted(state.groups)
    return sealer.seal(encode_form(form), "conversations", conversation, "state")


def state_of(sealer: Sealer, conversation: str, sealed: bytes) -> ConversationState:
    def make_state(form: Mapping[str, Any]) -> ConversationState:
        caller = read_plain(Caller, form["caller"])
        return ConversationState(
            caller=caller,
            taints=frozenset(form["taints"]),
            urls=tuple(form.get("urls", ())),
            groups=frozenset(form.get("groups", ())),
            sealed=sealed,
        )

    return read_form(sealer.open(sealed, "conversations", conversation, "state"), make_state)


def _info_of_row(sealer: Sealer, row: Any) -> ConversationInfo:
    state, damaged = ConversationState(caller=NOBODY), ""
    try:
        state = state_of(sealer, row.conversation, row.state)
    except DecisionRefused as refused:
        damaged = str(refused)
    return ConversationInfo(
        conversation=row.conversation,
        caller=state.caller,
        created_at=row.created_at,
        updated_at=row.updated_at,
        taints=tuple(sorted(state.taints)),
        version=row.version,
        runs=row.runs,
        damaged=damaged,
    )
