"""Upgrades a database to this version's schema when it is opened."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from toolwire.journal.database.engine import make_engine, unusable
from toolwire.journal.database.location import Location
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.errors import StoreUnavailable

MIGRATIONS = Path(__file__).parent / "migrations"
REVISIONS = ("0001", "0004", "0005", "0007", "0008", "0009", "0010", "0011", "0012", "0013", "0014", "0015")
"""The revisions that this version knows, in order."""

_LOCK = 0x746F6F6C77697265
"""The number of this package's advisory lock in PostgreSQL."""


def is_current(connection: Connection) -> bool:
    """True if the database already has the newest schema.

    Raises:
        DecisionRefused: `schema_too_new`: a newer toolwire wrote the store.
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


def require_store(location: Location) -> None:
    """Accepts a database that has the tables of a store, of any schema. It creates nothing.

    Raises:
        StoreUnavailable: There is no store, or the database cannot be reached.
    """
    nothing = StoreUnavailable(
        f"there is no store at {location.shown}\nName another one, or make it: `toolwire run` and Store.open(url) do."
    )
    if location.path is not None and not location.path.exists():
        raise nothing
    engine = make_engine(location)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table("alembic_version"):
                raise nothing
    except DBAPIError as error:
        raise unusable(location, error) from error
    finally:
        engine.dispose()


def upgrade(connection: Connection) -> None:
    """Runs the missing migrations inside the caller's writing transaction.

    If two processes upgrade at once, one does the work and the other waits for it.

    Raises:
        DecisionRefused: `schema_too_new`: a newer toolwire wrote the store.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    if is_current(connection):
        return
    # Imported only here: importing Alembic takes longer than opening a store.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
