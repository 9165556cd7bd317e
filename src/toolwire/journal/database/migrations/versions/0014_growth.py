"""Long values are compressed, and ended runs lose their whole results. An older toolwire refuses the store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Adds a column. The values of runs stay as they are: new ones are compressed."""
    op.add_column("runs", sa.Column("has_results", NUMBER, nullable=False, server_default="1"))
