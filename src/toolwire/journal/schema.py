"""Brings a database to this version's schema when it is opened."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from toolwire.permission.approval import DecisionRefused

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = ("0001",)
"""Every revision that this version knows, in order."""

_LOCK = 0x746F6F6C77697265
"""Of PostgreSQL's advisory locks, ours."""


def is_current(connection: Connection) -> bool:
    """Whether nothing is to be done.

    Raises:
        DecisionRefused: `schema_too_new`.
    """
    if not inspect(connection).has_table("alembic_version"):
        return False
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if found is not None and found not in REVISIONS:
        raise DecisionRefused(
            "schema_too_new",
            f"a newer toolwire wrote the store (its schema is {found}, ours {REVISIONS[-1]}): upgrade toolwire",
        )
    return found == REVISIONS[-1]


def upgrade(connection: Connection) -> None:
    """Runs what is missing, inside the caller's writing transaction: of two processes one does it, the other waits.

    Raises:
        DecisionRefused: `schema_too_new`.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    if is_current(connection):
        return
    # Alembic is imported for this alone: it costs more than opening.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
