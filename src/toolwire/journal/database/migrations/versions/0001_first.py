"""Creates runs, their steps, notes, requests and decisions, the remembered rules, and the log."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Creates every table."""
    op.create_table(
        "meta",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    _runs()
    _requests()
    _log()


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("rev", NUMBER, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("lease", NUMBER, nullable=False),
        sa.Column("lease_until", MOMENT, nullable=False),
        sa.Column("start", sa.LargeBinary, nullable=False),
        sa.Column("outcome", sa.LargeBinary),
        sa.Column("divergence", sa.LargeBinary),
        sqlite_strict=True,
    )
    op.create_index("runs_created_at", "runs", ["created_at"])
    op.create_index("runs_owner", "runs", ["owner"])
    op.create_table(
        "steps",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("attempt", NUMBER, nullable=False),
        sa.Column("begun", sa.LargeBinary),
        sa.Column("place", NUMBER),
        sa.Column("ended_at", MOMENT),
        sa.Column("ended", sa.LargeBinary),
        sqlite_strict=True,
    )
    op.create_table(
        "notes",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), primary_key=True),
        sa.Column("place", NUMBER, primary_key=True),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("entry", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )


def _requests() -> None:
    op.create_table(
        "requests",
        sa.Column("request_id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("attempt", NUMBER, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("run_id", "call_id", "attempt", name="requests_of_a_call"),
        sqlite_strict=True,
    )
    op.create_index("requests_state", "requests", ["state", "created_at"])
    op.create_table(
        "decisions",
        sa.Column("request_id", sa.Text, sa.ForeignKey("requests.request_id"), primary_key=True),
        sa.Column("decided_at", MOMENT, nullable=False),
        sa.Column("decision", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_table(
        "rules",
        sa.Column("rule_id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("rule", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("rules_run_id", "rules", ["run_id"])


def _log() -> None:
    op.create_table(
        "log",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("entry", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("log_run_id", "log", ["run_id", "seq"])
    op.create_index("log_subject", "log", ["kind", "subject"])
