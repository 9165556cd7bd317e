"""`toolwire store`: says what a store takes, deletes what is old, and returns free bytes to the disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from toolwire.cli.display import count_of, whole_rows
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output
from toolwire.cli.retention_option import RetentionOption, read_retention, report_text
from toolwire.cli.stores import StoreOption, open_store

EPILOG = f"""\b
Examples:
  toolwire store size
  toolwire store size --retention runs=30,results=7
  toolwire store prune --retention runs=30 --dry-run
  toolwire store prune --retention runs=30,results=7
  toolwire store compact

{exit_codes("the store could not be pruned or compacted")}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, epilog=EPILOG)

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


@app.callback(epilog=EPILOG)
def _store() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """See how large a store is, and make it smaller."""


@app.command("size", epilog=EPILOG)
def size(
    context: typer.Context, retention: RetentionOption = None, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Print the bytes of a store by kind.

    With --retention it also says what `prune` would delete.
    """
    output: Output = context.obj
    kept = None if retention is None else read_retention(retention)
    with open_store(store) as opened:
        space = opened.space()
        due = None if kept is None else opened.retain(kept, dry_run=True)
    if json:
        found = {"bytes": space.bytes, "kinds": dict(space.kinds), "free": space.free}
        output.result_json(found if due is None else {**found, "prune": asdict(due)})
        return
    largest = sorted(space.kinds.items(), key=lambda kind: -kind[1])
    rows = [*largest, ("free", space.free), ("all", space.bytes)]
    output.result(
        whole_rows(("KIND", "BYTES"), [(kind, f"{number:,}") for kind, number in rows], is_terminal=output.is_terminal)
    )
    if due is not None:
        output.say(f"`toolwire store prune` would delete {report_text(due)}")
    if space.free:
        output.say(f"`toolwire store compact` would return {count_of(space.free, 'byte')} to the disk")


@app.command("prune", epilog=EPILOG)
def prune(
    context: typer.Context,
    retention: RetentionOption = None,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Delete what ended so many days ago.

    A run that has not ended stays, and so does one in which a rule was remembered. The log can still be verified.
    """
    output: Output = context.obj
    if retention is None:
        hint = "Give such as --retention runs=30,log=365,results=7, and --dry-run to see what would go."
        raise Stop(ExitCode.WRONG_USAGE, "nothing says how long the store keeps what has ended", hint=hint)
    kept = read_retention(retention)
    with open_store(store) as opened:
        report = opened.retain(kept, dry_run=dry_run)
    if json:
        output.result_json(asdict(report))
    else:
        output.result(f"{'would delete' if dry_run else 'deleted'} {report_text(report)}")


@app.command("compact", epilog=EPILOG)
def compact(
    context: typer.Context, dry_run: DryRunOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Return free bytes to the disk.

    Other processes wait while an SQLite file is compacted, and the disk needs room for a second copy of it.
    """
    output: Output = context.obj
    with open_store(store) as opened:
        freed = opened.space().free if dry_run else opened.compact()
    if json:
        output.result_json({"bytes": freed})
    else:
        output.result(f"{'would return' if dry_run else 'returned'} {count_of(freed, 'byte')} to the disk")
