"""Names of hosts, each resolved in a thread of its own, because the system's resolver blocks and cannot be stopped."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from toolwire.builtin.web.own_threads import run_in_thread
from toolwire.builtin.web.refusals import FetchFailed

LOOKUPS = 128
"""Maximum names that are resolved at a time. A thread that waits for a name server takes 50 KB."""
LOOKUPS_OF_A_DOMAIN = 8
"""Maximum names of one domain (its last two labels) at a time: the owner of a domain can let all its names hang."""
LOOKUPS_OF_A_PAGE = 4
"""Maximum names that one rendered page resolves at a time. The median page of the web needs 13 in all."""
LOOKUP_TIMEOUT_S = 10.0
"""Maximum seconds until a name is resolved: two tries of the system's resolver, which has 5 for each by default."""
_POLL_S = 0.02


class Names:
    """Resolves names. Threads and event loops may share it."""

    def __init__(self, lookup: Callable[..., list[Any]] = socket.getaddrinfo) -> None:
        """`lookup` is called as `socket.getaddrinfo`."""
        self._lookup = lookup
        self._lock = threading.Lock()
        self._busy = Counter[str]()

    async def addresses(self, host: str, port: int) -> list[str]:
        """Returns the addresses of a host. A name that finds no place waits, within the same time.

        Raises:
            FetchFailed: The name is not resolved within `LOOKUP_TIMEOUT_S`.
            OSError: The name is not known.
            UnicodeError: It is not a name.
        """
        domain = ".".join(host.lower().rstrip(".").split(".")[-2:])
        work = partial(self._lookup, host, port, type=socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT_S):
                while not self._take(domain):  # noqa: ASYNC110 - threads and other loops give places back
                    await asyncio.sleep(_POLL_S)
                found = await run_in_thread(work, name="toolwire-name", ended=partial(self._give_back, domain))
        except TimeoutError:
            raise FetchFailed(
                f"the name {host!r} is not resolved within {LOOKUP_TIMEOUT_S:g} seconds", may_repeat=True
            ) from None
        return [str(info[4][0]) for info in found]

    def _take(self, domain: str) -> bool:
        with self._lock:
            if self._busy.total() >= LOOKUPS or self._busy[domain] >= LOOKUPS_OF_A_DOMAIN:
                return False
            self._busy[domain] += 1
            return True

    def _give_back(self, domain: str) -> None:
        with self._lock:
            self._busy[domain] -= 1
            if not self._busy[domain]:
                del self._busy[domain]
