"""Adds what lists of runs and requests select by, and the stop of a run from outside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds columns that older rows leave empty, and the index of all requests by their time."""
    op.add_column("runs", sa.Column("tools", sa.Text))
    op.add_column("runs", sa.Column("stop", sa.LargeBinary))
    for name in ("tool", "principal", "agent", "tenant"):
        op.add_column("requests", sa.Column(name, sa.Text))
    op.create_index("requests_created_at", "requests", ["created_at"])
