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
"""Seconds in which the store must answer. Probes wait for 1 to 10 seconds, and a good store takes milliseconds."""

States = Callable[[], Sequence[McpServerState]]


def health_routes(states: States, store: Store | None) -> list[Route]:
    """Returns the two pages. They need no token, and show the names and states of the servers behind."""

    async def alive(_: Request) -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> JSONResponse:
        servers = states()
        missing = [state.server for state in servers if state.is_required and state.state != "on"]
        is_stored = store is None or await _answers(store)
        is_ready = not missing and is_stored
        shown = {
            "ready": is_ready,
            "missing": missing,
            "store": "none" if store is None else "ok" if is_stored else "unavailable",
            "servers": {state.server: state.state for state in servers},
        }
        return JSONResponse(shown, 200 if is_ready else 503)

    return [Route("/healthz", alive), Route("/readyz", ready)]


async def _answers(store: Store) -> bool:
    """True if the store answers in time."""
    try:
        with anyio.fail_after(STORE_S):
            await anyio.to_thread.run_sync(lambda: store.runs(limit=1), abandon_on_cancel=True)
    except (TimeoutError, ToolwireError):
        return False
    return True
