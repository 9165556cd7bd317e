"""A real PgBouncer in transaction mode, before the PostgreSQL of the tests: Debian's package `pgbouncer`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.journal.postgres import NOBODY, Server
from tests.patience import PATIENCE_S

_PORT = 6432
"""It is the name of a socket in the pooler's own folder; no port of the machine is used."""

_SERVER_CONNECTIONS = 3
"""Fewer than the threads of a test, so that the transactions of one client meet several connections of the server."""


@dataclass(frozen=True, kw_only=True)
class Pooler:
    """A running PgBouncer, reached by a socket in its folder."""

    folder: Path

    def url(self, database: str) -> str:
        return f"postgresql://tests@/{database}?host={self.folder}&port={_PORT}"


@contextlib.contextmanager
def pooling(server: Server, *, ignored: str = "", connections: int = _SERVER_CONNECTIONS) -> Iterator[Pooler]:
    """`ignored`: names of settings that a client may send and the pooler drops; without it such a client is refused.

    `connections`: connections to the server, for each database.
    """
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert program, "PgBouncer is missing: apt-get install pgbouncer"
    # Not a folder of pytest, which is closed to the user that the pooler runs as.
    folder = Path(tempfile.mkdtemp(prefix="toolwire-pgbouncer-"))
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={server.folder} user=tests\n[pgbouncer]\n"
        f"listen_addr =\nlisten_port = {_PORT}\nunix_socket_dir = {folder}\nauth_type = any\npool_mode = transaction\n"
        f"default_pool_size = {connections}\nignore_startup_parameters = {ignored}\n"
    )
    as_user: list[str] = []
    if os.getuid() == 0:
        # PgBouncer refuses to be run by root.
        os.chown(folder, NOBODY, NOBODY)
        as_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([*as_user, program, settings], stdout=log, stderr=log, cwd="/")
    try:
        _until_it_listens(folder, process)
        yield Pooler(folder=folder)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _until_it_listens(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as end, contextlib.suppress(OSError):
            end.connect(str(folder / f".s.PGSQL.{_PORT}"))
            return
        time.sleep(0.02)
    raise AssertionError((folder / "log").read_text())
