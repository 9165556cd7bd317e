"""The log has a chain for each process that writes it, and is listed by time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes other indexes of the log. Its rows and its chain stay: they are chain 0."""
    for name in ("log_conversation", "log_subject", "log_parent"):
        op.drop_index(name, "log")
    op.create_index("log_conversation", "log", ["conversation", "at"])
    for name, columns, written in (
        ("log_subject", ["subject"], "kind IN ('call', 'request')"),
        ("log_kind", ["kind", "at"], "kind <> 'call'"),
        ("log_parent", ["parent"], "parent <> ''"),
    ):
        where = sa.text(written)
        op.create_index(name, "log", columns, sqlite_where=where, postgresql_where=where)
