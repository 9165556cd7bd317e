"""The turns with a key that were forgotten.

An older toolwire refuses the store. A process of one that has it open and forgets runs does not note those with a key.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a table. No turn had a key before."""
    op.create_table("forgotten", sa.Column("run_id", sa.Text, primary_key=True), sqlite_strict=True)
