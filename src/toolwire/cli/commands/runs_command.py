"""`toolwire runs`: lists the runs of a store, puts one back for the workers, and stops one."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from toolwire.cli.display import span, whole_rows
from toolwire.cli.exit_codes import exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output
from toolwire.cli.stores import StoreOption, find_run, open_store

if TYPE_CHECKING:
    from toolwire.types import RunInfo

EPILOG = f"""\b
Examples:
  toolwire runs list
  toolwire runs list --status parked
  toolwire runs requeue r_1c0f
  toolwire runs cancel r_1c0f --reason "not needed"

An id may be shortened as long as it means one run.

{exit_codes("the run has ended")}"""

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, epilog=EPILOG)

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run, or the beginning of its id.")]


@app.callback(epilog=EPILOG)
def _runs() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """See the runs of a store, put them back, and stop them."""


@app.command("list", epilog=EPILOG)
def list_runs(
    context: typer.Context,
    status: Annotated[
        Literal["queued", "running", "suspended", "parked", "finished", "stopped", "diverged"] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Runs with this status only: queued, running, suspended, parked, finished, stopped or diverged.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Print at most N runs.")] = 100,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Go on where a list ended that was cut.")
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Print the runs of the store, newest first."""
    output: Output = context.obj
    with open_store(store) as opened:
        runs = opened.runs(status=status, limit=limit, after=after)
    if json:
        output.result_json([_run_json(run) for run in runs])
    elif runs:
        names, now = ("RUN", "STATUS", "AT WORK", "CHANGED", "CONVERSATION", "PRINCIPAL", "TENANT"), time.time()
        output.result(whole_rows(names, [_cells(run, now) for run in runs], is_terminal=output.is_terminal))
    else:
        output.say("there are no such runs")
    if runs.more:
        output.say(f"There are more. The next ones: --after {runs.cursor}")


@app.command("requeue", epilog=EPILOG)
def requeue(context: typer.Context, run: RunArgument, store: StoreOption = None) -> None:
    """Let workers go on with a run, also with one that is parked."""
    output: Output = context.obj
    with open_store(store) as opened:
        run_id, _, _ = find_run(opened, run)
        opened.requeue(run_id, by=getpass.getuser())
        waits = bool(opened.pending(run_id, limit=1))
    output.result(f"{run_id}: it is due now, and a worker of this store takes it within seconds")
    if waits:
        output.say(f"A person has to decide first: toolwire approvals list --run {run_id}")


@app.command("cancel", epilog=EPILOG)
def cancel(
    context: typer.Context,
    run: RunArgument,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason that the model reads.")] = "",
    store: StoreOption = None,
) -> None:
    """Stop a run. One that a process works on ends with its next record."""
    output: Output = context.obj
    with open_store(store) as opened:
        run_id, _, _ = find_run(opened, run)
        status = opened.stop(run_id, by=getpass.getuser(), reason=reason)
    output.result(f"{run_id}: {'stopped' if status == 'stopped' else 'stops with its next record'}")


def _cells(run: RunInfo, now: float) -> tuple[str, ...]:
    held = "yes" if run.is_held else ""
    changed = f"{span(now - run.updated_at)} ago"
    return run.run_id, run.status, held, changed, run.conversation, run.caller.principal, run.caller.tenant


def _run_json(run: RunInfo) -> dict[str, Any]:
    return asdict(run)
