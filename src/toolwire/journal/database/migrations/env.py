"""Alembic runs this file on the connection of `database.schema`, which also owns the transaction and the lock."""

from __future__ import annotations

from alembic import context

from toolwire.journal.database.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # SQLite cannot alter a column: Alembic copies such a table into a new one.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
