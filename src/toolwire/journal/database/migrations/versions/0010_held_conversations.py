"""Conversations that a process holds over several turns."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Adds two columns. No conversation is held at first."""
    op.add_column("conversations", sa.Column("held_by", sa.Text, nullable=False, server_default=""))
    op.add_column("conversations", sa.Column("held_until", MOMENT, nullable=False, server_default="0"))
