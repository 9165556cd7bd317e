"""Fewer indexes, chains of the log, compressed values, and columns by which lists and rules are found.

An older toolwire refuses the store: it would not continue the chains, nor read the compressed values.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

NUMBER: sa.types.TypeEngine[int] = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


# A process of an older toolwire may still have the store open. It would take the head that names chains for a broken
# one, and sign another.
KEEP_CHAINS = """
CREATE FUNCTION toolwire_keep_chains() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF position('"chains"' IN convert_from(OLD.value, 'UTF8')) > 0
        AND position('"chains"' IN convert_from(NEW.value, 'UTF8')) = 0
    THEN
        RAISE EXCEPTION 'a newer toolwire upgraded this store: start this process again with that version';
    END IF;
    RETURN NEW;
END $$
"""


def upgrade() -> None:
    """Replaces indexes, and adds columns that older rows leave empty. The log of an older store is chain 0."""
    op.add_column("runs", sa.Column("tools", sa.Text))
    op.add_column("runs", sa.Column("stop", sa.LargeBinary))
    op.add_column("runs", sa.Column("has_results", NUMBER, nullable=False, server_default="1"))
    for name in ("tool", "principal", "agent", "tenant"):
        op.add_column("requests", sa.Column(name, sa.Text))
    # Of the rules that are there, only the sealed ones say what they are for.
    for name in ("scope", "principal", "tenant"):
        op.add_column("rules", sa.Column(name, sa.Text))
    for name in ("status", "owner"):
        op.drop_index(f"runs_{name}", "runs")
    for name in ("subject", "parent", "conversation"):
        op.drop_index(f"log_{name}", "log")
    op.create_index("log_conversation", "log", ["conversation", "at"])
    op.create_index("rules_scope", "rules", ["scope", "principal", "tenant"])
    op.create_index("requests_created_at", "requests", ["created_at"])
    for table, name, columns, written in (
        ("runs", "runs_held", ["conversation", "owner"], "owner <> ''"),
        ("runs", "runs_unfinished", ["status", "created_at"], "status <> 'finished'"),
        ("log", "log_parent", ["parent"], "parent <> ''"),
        ("log", "log_asked", ["kind", "at"], "kind IN ('request', 'decision')"),
    ):
        where = sa.text(written)
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(KEEP_CHAINS)
        op.execute(
            "CREATE TRIGGER meta_keep_chains BEFORE UPDATE ON meta FOR EACH ROW WHEN (OLD.name = 'log_head')"
            " EXECUTE FUNCTION toolwire_keep_chains()"
        )
