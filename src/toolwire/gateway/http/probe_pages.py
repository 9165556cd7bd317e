"""The pages for probes: `/healthz` says that the process answers, and `/readyz` whether calls can be answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from toolwire.mcp.values.server_state import McpServerState
from toolwire.vocabulary.errors import ToolwireError

if TYPE_CHECKING:
    from toolwire.journal.store import Store

STORE_S = 5.0
"""Seconds in which the store must take a write. Probes wait for 1 to 10 seconds; a good store takes milliseconds."""

WRITE_PAUSE_S = 1.0
"""Seconds between two writes: anybody may ask for the page, and each write waits for the disk."""

States = Callable[[], Sequence[McpServerState]]


def health_routes(states: States, store: Store | None) -> list[Route]:
    """Returns the two pages. They need no token, and show the names and states of the servers behind."""

    store_probe = None if store is None else _StoreProbe(store)

    async def alive(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> JSONResponse:
        servers = states()
        missing = [state.server for state in servers if state.is_required and state.state != "on"]
        is_stored = store_probe is None or await store_probe.takes_writes()
        is_ready = not missing and is_stored
        shown = {
            "ready": is_ready,
            "missing": missing,
            "store": "none" if store is None else "ok" if is_stored else "unavailable",
            "servers": {state.server: state.state for state in servers},
        }
        former = [state.server for state in servers if state.is_former]
        if former:
            shown["former"] = former
        return JSONResponse(shown, 200 if is_ready else 503)

    return [Route("/healthz", alive), Route("/readyz", ready)]


class _StoreProbe:
    """Writes to the store when it is asked, but not more often than `WRITE_PAUSE_S` says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_good, self._until = False, 0.0
        self._turn = anyio.Lock()

    async def takes_writes(self) -> bool:
        """True if the store took the last write in time."""
        async with self._turn:
            if anyio.current_time() >= self._until:
                self._is_good = await self._write()
                self._until = anyio.current_time() + WRITE_PAUSE_S
            return self._is_good

    async def _write(self) -> bool:
        try:
            with anyio.fail_after(STORE_S):
                await anyio.to_thread.run_sync(self._store.try_write, abandon_on_cancel=True)
        except (TimeoutError, ToolwireError):
            return False
        return True
