"""The words that complete a line in the shell: protocols, states, and names of tools and servers.

A word that cannot be found out completes nothing, because a message would stand in the middle of the line.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import get_args

import typer

import toolwire
import toolwire.types
from toolwire.cli.exit_codes import Stop
from toolwire.cli.loading import registry_of
from toolwire.cli.stores import open_store

OTHER_STATUSES = ("success", "asked", "approve", "edit", "deny", "stop_run", "answer")
"""The states of calls, requests and decisions in the log, without the kinds of failures."""
RUN_STATUSES = (
    *("queued", "started", "resumed", "suspended", "parked", "requeued"),
    *("finished", "stopping", "stopped", "diverged", "forgotten"),
)
_ROWS_SEARCHED = 10_000


def complete_protocol(incomplete: str) -> list[str]:
    """Returns the protocols whose names begin like this."""
    return _starting(incomplete, toolwire.protocols.names)


def complete_reply_protocol(incomplete: str) -> list[str]:
    """Returns the same, and `auto`."""
    return _starting(incomplete, lambda: ("auto", *toolwire.protocols.names()))


def log_statuses() -> list[str]:
    """Returns the values of STATUS in the log."""
    from toolwire.types import FailureKind

    return [*OTHER_STATUSES, *get_args(FailureKind), *RUN_STATUSES]


def complete_status(incomplete: str) -> list[str]:
    """Returns the values of STATUS in the log that begin like this."""
    return _starting(incomplete, log_statuses)


def complete_tool(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the tools of the files that `--tools` names before this word."""
    return _starting(incomplete, lambda: registry_of(context.params.get("tools") or ()).list_toolspecs())


def complete_logged_tool(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the tools that the last rows of the log are about."""

    def find_names() -> Iterable[str]:
        with open_store(context.params.get("store")) as store:
            rows = store.log(limit=_ROWS_SEARCHED, newest_first=True)
        return sorted({row.tool for row in rows})

    return _starting(incomplete, find_names)


def complete_server(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the servers of the file that `--pins` names before this word."""
    return _starting(incomplete, lambda: _states(context))


def complete_waiting_tool(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the tools of the server that wait to be accepted."""
    server: str = context.params.get("server") or ""

    def waiting() -> Iterable[str]:
        return [name for name, state in _states(context).get(server, {}).items() if state != "accepted"]

    return _starting(incomplete, waiting)


def _states(context: typer.Context) -> Mapping[str, Mapping[str, str]]:
    pins = context.params.get("pins")
    return {} if pins is None else toolwire.types.McpPins(pins).states()


def _starting(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    with ExitStack() as silent:
        # A file of tools may print while it is loaded.
        silent.enter_context(redirect_stdout(io.StringIO()))
        silent.enter_context(redirect_stderr(io.StringIO()))
        try:
            return [name for name in names() if name and name.startswith(incomplete)]
        except (Stop, toolwire.ToolwireError):
            return []
