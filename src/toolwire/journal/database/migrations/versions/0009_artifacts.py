"""Artifacts: texts with versions."""

from __future__ import annotations

from typing import cast

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT: sa.types.TypeEngine[float] = cast("sa.types.TypeEngine[float]", sa.Double()).with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Adds two tables. No other table changes."""
    op.create_table(
        "artifacts",
        sa.Column("namespace", sa.Text, primary_key=True),
        sa.Column("artifact_id", sa.Text, primary_key=True),
        sa.Column("head", NUMBER, nullable=False),
        sqlite_strict=True,
    )
    op.create_table(
        "artifact_versions",
        sa.Column("namespace", sa.Text, primary_key=True),
        sa.Column("artifact_id", sa.Text, primary_key=True),
        sa.Column("version", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("parts_of", sa.Text, nullable=False),
        sa.Column("info", sa.LargeBinary, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sqlite_strict=True,
    )
    op.create_index("artifact_versions_key", "artifact_versions", ["namespace", "key"], unique=True)
    op.create_index("artifact_versions_parts_of", "artifact_versions", ["parts_of"])
