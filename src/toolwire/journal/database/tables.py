"""The tables for queries. `migrations/` creates them; a test keeps both definitions equal.

The data of runs, requests and answers are sealed (`sealing.py`), since they may hold secrets. Only columns used in
searches are in plain text. The log is in plain text and redacted.
"""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import (
    REAL,
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TextClause,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

# SQLite's STRICT tables know only INTEGER and REAL for numbers.
NUMBER: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
MOMENT: TypeEngine[float] = cast("TypeEngine[float]", Double()).with_variant(REAL(), "sqlite")


def clear_text(text: str) -> str:
    """Returns the text in a form that every database accepts: NUL and lone surrogates are escaped."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


class NameType(TypeDecorator[str]):
    """The type of ids and names. Any text can be looked for: one that no database holds is looked for as `clear_text`.

    A value of another type is looked for as its text.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - as SQLAlchemy calls it
        """Returns the text for the database."""
        return None if value is None else clear_text(str(value))


METADATA = MetaData()


def _whose(*, is_nullable: bool) -> list[Column[str]]:
    """Returns the columns for the conversation and the caller."""
    names, default = ("conversation", "principal", "agent", "tenant"), None if is_nullable else ""
    return [Column(name, NameType, nullable=is_nullable, server_default=default) for name in names]


IS_HELD, IS_UNFINISHED = text("runs.owner <> ''"), text("runs.status <> 'finished'")
HAS_READY_AT = text("runs.ready_at IS NOT NULL")
HAS_PARENT, IS_ASKED = text("log.parent <> ''"), text("log.kind IN ('request', 'decision')")
"""The rows that an index has. A query that can use it has the same condition, because a parameter's value is unknown
when the plan is made."""


def _index_where(name: str, columns: tuple[str, ...], where: TextClause) -> Index:
    """Returns an index of some rows. In the index, the columns have no table before them."""
    there = text(where.text.split(".", 1)[1])
    return Index(name, *columns, sqlite_where=there, postgresql_where=there)


META = Table(
    "meta",
    METADATA,
    Column("name", NameType, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    sqlite_strict=True,
)
"""Facts about the store itself: a check of its key, the heads of the log's chains, and the process that prunes."""

RUNS = Table(
    "runs",
    METADATA,
    Column("run_id", NameType, primary_key=True),
    Column("status", NameType, nullable=False),
    Column("rev", NUMBER, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("updated_at", MOMENT, nullable=False),
    Column("expires_at", MOMENT, nullable=False),
    Column("owner", NameType, nullable=False),
    Column("lease", NUMBER, nullable=False),
    Column("lease_until", MOMENT, nullable=False),
    Column("start", LargeBinary, nullable=False),
    Column("outcome", LargeBinary),
    Column("divergence", LargeBinary),
    *_whose(is_nullable=False),
    Column("tools", NameType),
    Column("stop", LargeBinary),
    Column("has_results", NUMBER, nullable=False, server_default="1"),
    Column("ready_at", MOMENT),
    Column("taken_over", NUMBER, nullable=False, server_default="0"),
    Column("taken_at", MOMENT),
    # Runs by time, and those of a conversation or a principal: a page each at the start of a run.
    Index("runs_created_at", "created_at"),
    Index("runs_conversation", "conversation", "created_at"),
    Index("runs_principal", "principal", "created_at"),
    # Is a conversation in use, and what does a process hold? A page at the start and one at the end of a run.
    _index_where("runs_held", ("conversation", "owner"), IS_HELD),
    # Runs that wait, have crashed or were stopped, by time: a page at the start and one at the end.
    _index_where("runs_unfinished", ("status", "created_at"), IS_UNFINISHED),
    # What is a worker to look at? A page at the start and one at the end.
    _index_where("runs_ready", ("ready_at",), HAS_READY_AT),
    sqlite_strict=True,
)
"""One row per run. `owner` holds the run under the number `lease`; an empty `owner` means that the run is free.

The lease ends at the later of `lease_until`, which is written when it is taken, and the `alive_until` of its owner.

`tools` has the names of the tools that the model called, each between line ends; NULL in runs of an older schema.
`stop` says who stopped the run from outside, and why. `Store.stop` also raises the number `lease` of a run that a
process holds, so that the next record of that process finds it.
`ready_at` is the time at which a worker is to look at the run if nobody holds it; NULL once the run has ended.
`taken_over` counts how often the run was taken from a dead process since it last made progress, and `taken_at` is when
it was taken last; NULL while its first process has it.
`has_results` is 0 once the results of an ended run were shortened to what the model read of them.
"""

RATES = Table(
    "rates",
    METADATA,
    Column("key", NameType, primary_key=True),
    Column("second", NUMBER, primary_key=True, autoincrement=False),
    Column("count", NUMBER, nullable=False),
    sqlite_strict=True,
)
"""How many calls of a limit that all processes share began in which second since the epoch. Old seconds are deleted."""

FORGOTTEN = Table("forgotten", METADATA, Column("run_id", NameType, primary_key=True), sqlite_strict=True)
"""Runs of turns with a key that were forgotten, so that the same key does not run again."""

OWNERS = Table(
    "owners",
    METADATA,
    Column("owner", NameType, primary_key=True),
    Column("alive_until", MOMENT, nullable=False),
    sqlite_strict=True,
)
"""One row per process that holds runs or conversations: it renews all its leases with this row."""

CONVERSATIONS = Table(
    "conversations",
    METADATA,
    Column("conversation", NameType, primary_key=True),
    Column("created_at", MOMENT, nullable=False),
    Column("updated_at", MOMENT, nullable=False),
    Column("state", LargeBinary, nullable=False),
    Column("held_by", NameType, nullable=False, server_default=""),
    Column("held_until", MOMENT, nullable=False, server_default="0"),
    Index("conversations_updated_at", "updated_at"),
    sqlite_strict=True,
)
"""One row per conversation. `state` holds its caller, and the labels of the data that its turns have read.

`held_by` is the owner that holds it over several turns, empty if none does. That lease ends as those of runs: at the
later of `held_until`, which is written when it is taken, and the `alive_until` of its owner.
"""

DOCUMENTS = Table(
    "documents",
    METADATA,
    Column("conversation", NameType, ForeignKey("conversations.conversation"), primary_key=True),
    Column("version", NUMBER, nullable=False),
    Column("saved_at", MOMENT, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("parts_of", NameType, nullable=False, server_default=""),
    sqlite_strict=True,
)
"""The document of a conversation. `version` counts how often it was saved.

If `parts_of` is not empty, the parts of that name hold the document, and `document` holds their number.
"""

DOCUMENT_PARTS = Table(
    "document_parts",
    METADATA,
    Column("conversation", NameType, primary_key=True),
    Column("parts_of", NameType, primary_key=True),
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    Column("written_at", MOMENT, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("document_parts_written_at", "number", "written_at"),
    sqlite_strict=True,
)
"""The parts of large documents and artifacts. Each save has its own.

The row in `documents` or `artifact_versions` decides which of them count.
"""

ARTIFACTS = Table(
    "artifacts",
    METADATA,
    Column("namespace", NameType, primary_key=True),
    Column("artifact_id", NameType, primary_key=True),
    Column("head", NUMBER, nullable=False),
    sqlite_strict=True,
)
"""One row per artifact: the number of its newest version. A writer compares it and sets it."""

ARTIFACT_VERSIONS = Table(
    "artifact_versions",
    METADATA,
    Column("namespace", NameType, primary_key=True),
    Column("artifact_id", NameType, primary_key=True),
    Column("version", NUMBER, primary_key=True, autoincrement=False),
    Column("made_at", MOMENT, nullable=False),
    Column("key", NameType),
    Column("parts_of", NameType, nullable=False),
    Column("info", LargeBinary, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Index("artifact_versions_key", "namespace", "key", unique=True),
    Index("artifact_versions_parts_of", "parts_of"),
    sqlite_strict=True,
)
"""The versions of artifacts. No row is ever changed or deleted.

`key` is the idempotency key of the call that made the version. If `parts_of` is not empty, the parts of that name hold
the content, and `content` holds their number.
"""

KEPT_RESULTS = Table(
    "kept_results",
    METADATA,
    Column("result_id", NameType, primary_key=True),
    Column("run_id", NameType, ForeignKey("runs.run_id"), nullable=False),
    Column("conversation", NameType, nullable=False),
    Column("read_at", MOMENT, nullable=False),
    Column("bytes", NUMBER, nullable=False),
    Column("result", LargeBinary, nullable=False),
    Index("kept_results_run_id", "run_id"),
    Index("kept_results_conversation", "conversation", "read_at"),
    Index("kept_results_read_at", "read_at", "bytes"),
    sqlite_strict=True,
)
"""Results that were too long for a model. The least recently read ones are dropped first."""

STEPS = Table(
    "steps",
    METADATA,
    Column("run_id", NameType, ForeignKey("runs.run_id"), primary_key=True),
    Column("key", NameType, primary_key=True),
    Column("started_at", MOMENT, nullable=False),
    Column("attempt", NUMBER, nullable=False),
    Column("begun", LargeBinary),
    Column("place", NUMBER),
    Column("ended_at", MOMENT),
    Column("ended", LargeBinary),
    sqlite_strict=True,
)
"""One row per call: `begun` is written before it runs, `ended` with its result. `place` numbers the ended steps in
order.
"""

NOTES = Table(
    "notes",
    METADATA,
    Column("run_id", NameType, ForeignKey("runs.run_id"), primary_key=True),
    Column("place", NUMBER, primary_key=True),
    Column("parent", NameType, nullable=False),
    Column("entry", LargeBinary, nullable=False),
    sqlite_strict=True,
)
"""Notes that composite tools made about their calls, in order."""

VARIABLES = Table(
    "variables",
    METADATA,
    Column("run_id", NameType, ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    sqlite_strict=True,
)
"""Variables that programs of a conversation share: one row per run that has set some of them last.

An older toolwire, which does not know the table, deletes the row with its run.
"""

REQUESTS = Table(
    "requests",
    METADATA,
    Column("request_id", NameType, primary_key=True),
    Column("run_id", NameType, ForeignKey("runs.run_id"), nullable=False),
    Column("call_id", NameType, nullable=False),
    Column("attempt", NUMBER, nullable=False),
    Column("state", NameType, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("expires_at", MOMENT, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("tool", NameType),
    *(Column(name, NameType) for name in ("principal", "agent", "tenant")),
    UniqueConstraint("run_id", "call_id", "attempt", name="requests_of_a_call"),
    Index("requests_state", "state", "created_at"),
    Index("requests_created_at", "created_at"),
    sqlite_strict=True,
)
"""One row per request. State: pending -> approved -> reserved -> done; or denied, stopped, superseded.

A question: pending -> answered -> done; or stopped, superseded.

`tool` and the caller repeat values of the sealed request, for searches; NULL in requests of an older schema.
"""

WAITING_CALLS = Table(
    "waiting_calls",
    METADATA,
    Column("run_id", NameType, ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("key", NameType, nullable=False),
    Column("expires_at", MOMENT, nullable=False),
    Column("claimed_by", NameType, nullable=False, server_default=""),
    Column("claimed_until", MOMENT, nullable=False, server_default="0"),
    Index("waiting_calls_key", "key"),
    sqlite_strict=True,
)
"""One row per run that an equal call may continue. `key` says for whom the call is made, and what it calls.

`claimed_by` is the owner whose call continues the run now, empty if none does. The claim ends at the later of
`claimed_until`, which is written when it is made, and the `alive_until` of its owner.
"""

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("request_id", NameType, ForeignKey("requests.request_id"), primary_key=True),
    Column("decided_at", MOMENT, nullable=False),
    Column("decision", LargeBinary, nullable=False),
    sqlite_strict=True,
)
"""The decision that counts. The primary key prevents a second one."""

RULES = Table(
    "rules",
    METADATA,
    Column("rule_id", NameType, primary_key=True),
    Column("run_id", NameType, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("rule", LargeBinary, nullable=False),
    Column("scope", NameType),
    Column("principal", NameType),
    Column("tenant", NameType),
    Index("rules_run_id", "run_id"),
    Index("rules_scope", "scope", "principal", "tenant"),
    sqlite_strict=True,
)
"""Rules that people chose to remember, each with its run.

The last three columns repeat the sealed rule, for searches. They are NULL for rules of older stores.
"""

LOG = Table(
    "log",
    METADATA,
    Column("seq", NUMBER, primary_key=True, autoincrement=False),
    Column("at", MOMENT, nullable=False),
    Column("kind", NameType, nullable=False),
    Column("run_id", NameType, nullable=False),
    Column("subject", NameType, nullable=False),
    Column("tool", NameType, nullable=False),
    Column("status", NameType, nullable=False),
    Column("entry", Text, nullable=False),
    Column("hash", Text, nullable=False),
    *_whose(is_nullable=True),
    Column("parent", NameType, nullable=False, server_default=""),
    Column("duration_s", MOMENT),
    # The rows of a run, its tree, and whether a row is there. These three cost a page in each transaction with a row.
    Index("log_run_id", "run_id", "seq"),
    Index("log_conversation", "conversation", "at"),
    Index("log_at", "at"),
    # The calls that a call made: nothing for a call of the model.
    _index_where("log_parent", ("parent",), HAS_PARENT),
    # Requests and decisions are few: nothing for a call. The newest of another kind stand near the end of the log.
    _index_where("log_asked", ("kind", "at"), IS_ASKED),
    sqlite_strict=True,
)
"""History for reading, redacted. The hash of each row covers the hash of the row before in its chain (`log/heads.py`).

Rows of the first schema have NULL as conversation and caller, and hashes that do not cover these columns.

`parent` and `duration_s` repeat values of a call's `entry`, which the hash covers; `verify` compares them.
"""
