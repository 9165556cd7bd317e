"""The owner of a run: a process on a host, and whether it is still alive."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LEASE_S = 60.0
"""Seconds without a renewal after which a process on another host is taken for dead."""

RENEW_S = 15.0
"""Seconds between two renewals. Three may fail before another process takes over."""

_PROC = Path("/proc")
_GONE = frozenset({"Z", "X", "x"})
"""States of a process that has ended and has not been reaped yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One opening of a store by one process."""

    host: str
    """The host with its boot id and its namespace of process ids."""
    process_id: int
    started: str
    """Start time of the process in kernel ticks, because process ids are reused."""
    opening: str
    """Random text that distinguishes two openings by the same process."""

    @classmethod
    def this(cls) -> Owner:
        """Returns a new owner for this process."""
        process_id = os.getpid()
        started = _started(process_id) or ""
        return cls(host=this_host(), process_id=process_id, started=started, opening=secrets.token_hex(8))

    @classmethod
    def read(cls, text: str) -> Owner:
        """Parses the text that `str` returned."""
        host, process_id, started, opening = text.rsplit(" ", 3)
        return cls(host=host, process_id=int(process_id), started=started, opening=opening)

    def __str__(self) -> str:
        return f"{self.host} {self.process_id} {self.started or '-'} {self.opening}"

    def is_alive(self, *, renewed_until: float, now: float) -> bool:
        """True if the process may still be at work. For a process on another host only the lease tells."""
        if self.host != this_host():
            return now < renewed_until
        found = _started(self.process_id)
        if found is None:
            return False
        return self.started in ("-", found) or not found


@cache
def this_host() -> str:
    """Identifies this machine since its boot, and this process's namespace of process ids.

    Two containers are two hosts.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
        names = str((_PROC / "self/ns/pid").readlink())
    except OSError:
        boot, names = "-", "-"
    return f"{socket.gethostname()} {boot} {names}"


def _started(process_id: int) -> str | None:
    """Returns the start time of a process; empty if the system does not tell; None if the process is gone."""
    if not (_PROC / "self/stat").exists():
        return _is_there(process_id)
    try:
        text = (_PROC / str(process_id) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The command stands in brackets and may contain any character.
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in _GONE else fields[19]


def _is_there(process_id: int) -> str | None:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return ""
    return ""
