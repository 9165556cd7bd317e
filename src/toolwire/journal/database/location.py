"""The location of a store, parsed from its URL."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from toolwire.vocabulary.errors import ConfigurationError, StoreUnavailable

POSTGRES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})
NETWORK_FILES = frozenset(
    {"9p", "afs", "ceph", "cifs", "fuse.sshfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
)
"""File systems on which SQLite cannot rely on locks and shared memory."""
MEMORY = "memory:"
"""The URL of a new store in the memory of this process, for tests and notebooks."""

READERS = 8
"""Connections for concurrent readers; further readers wait. The writer has one more."""

CONNECTIONS_MIN = 2
"""The writer keeps a connection, and readers and the renewal of leases share the others."""

LEASE_S = 60.0
"""Default seconds without a renewal after which a process on another host is taken for dead."""

LEASE_MIN_S = 5.0
"""Minimum of `lease_s`. Leases are renewed at a quarter of it; a renewal that failed is tried again after a second."""

LEASE_MAX_S = 3600.0
"""Maximum of `lease_s`: the runs of a dead host wait so long for another."""

_MOUNTS = Path("/proc/self/mounts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A database."""

    url: URL
    """The URL in the form that SQLAlchemy needs."""
    path: Path | None
    """The database file; None for a server, and for a database in memory."""
    shown: str
    """The URL for messages, without a password."""
    prepared: bool
    """True if the server may keep prepared statements and settings for a connection."""
    pool_size: int
    """Connections of this process."""
    lease_s: float = LEASE_S
    """Seconds without a renewal after which other hosts take this process for dead."""
    is_memory: bool = False
    """True for a database in memory. One opening in one process has it; `shown` then has a random name."""


def location_of(url: str, *, prepared: bool = True, pool_size: int = READERS + 1, lease_s: float = LEASE_S) -> Location:
    """Parses the URL of a store: `sqlite:///file.db`, `postgresql://user@host/database` or `memory:`.

    Raises:
        ConfigurationError: The text is not a URL, a store cannot use that database, or a setting is not valid.
        StoreUnavailable: The file would be on a network file system.
    """
    given = cast("object", pool_size)
    if isinstance(given, bool) or not isinstance(given, int) or given < CONNECTIONS_MIN:
        raise ConfigurationError(f"pool_size={given!r}: give a whole number from {CONNECTIONS_MIN}")
    lease_s = _check_lease(lease_s)
    if url == MEMORY:
        place = URL.create("sqlite+pysqlite", database=":memory:")
        shown = f"{MEMORY}{secrets.token_hex(4)}"
        return Location(url=place, path=None, shown=shown, prepared=True, pool_size=1, lease_s=lease_s, is_memory=True)
    try:
        read = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigurationError(_advice("the text is not a URL")) from error
    if "prepared" in read.query:
        raise ConfigurationError("prepared= in the URL is for commands: write Store.open(url, prepared=False)")
    if read.drivername in POSTGRES:
        read = read.set(drivername="postgresql+psycopg")
        shown = url_text(read)
        return Location(url=read, path=None, shown=shown, prepared=prepared, pool_size=pool_size, lease_s=lease_s)
    if read.drivername not in {"sqlite", "sqlite+pysqlite"}:
        raise ConfigurationError(_advice(f"{read.drivername!r} is not a database that a store can use"))
    if read.host:
        raise ConfigurationError(
            _advice(f"{read.host!r} is a host, and SQLite has none: a file stands after three slashes")
        )
    if read.database in (None, "", ":memory:") or read.query.get("mode") == "memory":
        raise ConfigurationError(
            _advice("a store in memory is lost with its process, and has a URL of its own, memory:")
        )
    if read.query:
        name = next(iter(read.query))
        raise ConfigurationError(_advice(f"the URL of an SQLite store has no settings, and {name!r} is one"))
    path = Path(os.path.abspath(str(read.database)))  # noqa: PTH100 - links stay, to keep the user's name
    if _file_system(path.parent) in NETWORK_FILES:
        raise StoreUnavailable(f"{path} is on a network file system, where SQLite loses data; use PostgreSQL there")
    place = URL.create("sqlite+pysqlite", database=str(path))
    shown = url_text(place)
    return Location(url=place, path=path, shown=shown, prepared=prepared, pool_size=pool_size, lease_s=lease_s)


def _check_lease(given: object) -> float:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not LEASE_MIN_S <= cast("float", given) <= LEASE_MAX_S:
        raise ConfigurationError(f"lease_s={given!r:.80}: give the seconds, from {LEASE_MIN_S:g} to {LEASE_MAX_S:g}")
    return float(cast("float", given))


def url_text(url: URL) -> str:
    """Returns the URL for messages, without a password."""
    if url.get_backend_name() == "sqlite":
        return MEMORY if url.database == ":memory:" else f"sqlite:///{url.database}"
    return url.render_as_string(hide_password=True)


def _advice(what: str) -> str:
    return f"{what}: write sqlite:///file.db or postgresql://user@host/database, or {MEMORY} for a test"


def _file_system(folder: Path) -> str:
    """Returns the type of the file system that holds the folder; empty if the system does not tell."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ""
    real = folder.resolve()
    holding = [(place, kind) for _, place, kind, *_ in mounts if real.is_relative_to(place.replace("\\040", " "))]
    return max(holding, key=lambda one: len(one[0]), default=("", ""))[1]
