"""Keeps the indexes that a question needs, so that a turn changes fewer pages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Replaces indexes. No table changes."""
    for table, name in (
        ("runs", "status"),
        ("runs", "owner"),
        ("log", "subject"),
        ("log", "parent"),
        ("log", "conversation"),
    ):
        op.drop_index(f"{table}_{name}", table)
    _create("runs_held", "runs", ["conversation", "owner"], "owner <> ''")
    _create("runs_unfinished", "runs", ["status", "created_at"], "status <> 'finished'")
    op.create_index("log_conversation", "log", ["conversation", "at"])
    _create("log_parent", "log", ["parent"], "parent <> ''")
    _create("log_asked", "log", ["kind", "at"], "kind IN ('request', 'decision')")


def _create(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
