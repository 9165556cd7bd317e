"""The log has a chain for each process that writes it, which an older version would not continue."""

from __future__ import annotations

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Changes no table: the rows and the chain of an older store are chain 0."""
