"""Creates conversations and their documents. Runs and log rows get the conversation and the caller."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")
WHOSE = ("conversation", "principal", "agent", "tenant")


def upgrade() -> None:
    """Adds two tables, and four columns to runs and to the log."""
    op.create_table(
        "conversations",
        sa.Column("conversation", sa.Text, primary_key=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("state", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("conversations_updated_at", "conversations", ["updated_at"])
    op.create_table(
        "documents",
        sa.Column("conversation", sa.Text, sa.ForeignKey("conversations.conversation"), primary_key=True),
        sa.Column("version", NUMBER, nullable=False),
        sa.Column("saved_at", MOMENT, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    for name in WHOSE:
        op.add_column("runs", sa.Column(name, sa.Text, nullable=False, server_default=""))
        # The rows that are there keep their hashes: NULL says that a hash does not cover these columns.
        op.add_column("log", sa.Column(name, sa.Text))
    op.create_index("runs_conversation", "runs", ["conversation", "created_at"])
    op.create_index("log_conversation", "log", ["conversation", "seq"])
