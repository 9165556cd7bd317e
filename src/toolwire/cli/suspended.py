"""A run that waits for a person: finding it, and describing it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolwire import Caller, SuspendedRun
from toolwire.cli.approvals import request_json, request_table
from toolwire.cli.exit_codes import ExitCode, Stop

if TYPE_CHECKING:
    from toolwire import Store

_RUNS_SEARCHED = 10_000


def found_run(store: Store, named: str) -> tuple[str, str, Caller]:
    """Returns the id, protocol and caller of the run with this id, or with an id that begins like this.

    Raises:
        Stop: No run matches, or several do.
    """
    found = [run for run in store.runs(limit=_RUNS_SEARCHED) if run.run_id.startswith((named, f"r_{named}"))]
    exactly = [run for run in found if run.run_id == named]
    if len(exactly or found) != 1:
        runs = ", ".join(run.run_id for run in found[:5])
        said = f"{named!r} may be {len(found)} runs: {runs}" if found else f"there is no run {named!r} in the store"
        raise Stop(ExitCode.WRONG_USAGE, said, hint="See `toolwire approvals list` for those that wait.")
    run = (exactly or found)[0]
    return run.run_id, run.protocol, run.caller


def resumed_by(tools: Sequence[str], store: str | None) -> str:
    """Returns the command line options that resume the run."""
    named = [part for tool in tools for part in ("--tools", tool)]
    return shlex.join([*named, *([] if store is None else ["--store", store])])


def waiting_text(run: SuspendedRun, resume_with: str, *, is_terminal: bool) -> str:
    """Describes the pending requests and the commands that decide them."""
    count = len(run.pending)
    return (
        f"run {run.run_id} waits for {'a decision' if count == 1 else f'{count} decisions'}:\n\n"
        f"{request_table(run.pending, is_terminal=is_terminal)}\n\n"
        f"Decide:  toolwire approvals show {run.pending[0].id[:10]}, then approve, deny or edit\n"
        f"Go on:   toolwire run --resume {run.run_id} {resume_with}"
    )


def waiting_json(run: SuspendedRun) -> dict[str, Any]:
    """Returns the same facts as JSON types."""
    return {"run_id": run.run_id, "rev": run.rev, "pending": [request_json(request) for request in run.pending]}
