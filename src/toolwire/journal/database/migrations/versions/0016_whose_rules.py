"""Remembered rules are found by the principal and the scope that they are for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds three columns and an index. Of the rules that are there, only the sealed ones say what they are for."""
    for name in ("scope", "principal", "tenant"):
        op.add_column("rules", sa.Column(name, sa.Text))
    op.create_index("rules_scope", "rules", ["scope", "principal", "tenant"])
