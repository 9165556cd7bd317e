"""Run by Alembic, on the connection that `journal.schema` hands in; the transaction and the lock are its."""

from __future__ import annotations

from alembic import context

from toolwire.journal.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    # SQLite cannot alter a column: such a table is made anew and filled.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
