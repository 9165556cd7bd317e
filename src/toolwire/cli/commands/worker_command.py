"""`toolwire worker`: takes submitted runs from the queue of a store, until it is told to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes, wrong_usage
from toolwire.cli.loading import load_function
from toolwire.cli.output import Output
from toolwire.cli.stores import StoreOption, find_place, unusable_store

if TYPE_CHECKING:
    from toolwire.fleet import ProcrastinateQueue, RemoteRunner, Worker

EPILOG = f"""\b
Examples:
  toolwire worker --migrate
  toolwire worker app:session_for
  toolwire worker app:session_for --health 127.0.0.1:80

--migrate is needed once, before the first worker.

\b
app.py has the function that makes the session of a run:
  def session_for(run, store):
    return Session(tools(), store=store,
                   protocol=run.protocol,
                   caller=run.caller,
                   conversation=run.conversation)

SIGTERM lets it take nothing new, wait for its runs, and end.

{exit_codes("the store was away too long, so start it anew", ExitCode.UNUSABLE_TOOLS)}"""

_NO_FUNCTION = "Give such as app:session_for; `toolwire worker --help` has an example."

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("worker", epilog=EPILOG)
def worker(
    context: typer.Context,
    session_for: Annotated[
        str | None, typer.Argument(metavar="MODULE:FUNCTION", help="The function that makes the session of a run.")
    ] = None,
    store: StoreOption = None,
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, help="Runs at a time.")] = 8,
    grace: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long it waits for its runs when it is told to end.")
    ] = 30.0,
    per_tenant: Annotated[
        int | None, typer.Option("--per-tenant", metavar="N", min=1, help="Runs of one tenant at a time.")
    ] = None,
    poll: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.1, help="Look at the queue so often, and do not listen: for PgBouncer."),
    ] = None,
    health: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /healthz, /readyz and /metrics there.")
    ] = None,
    runner: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="Run programs there. One for each runner.")
    ] = None,
    cert: Annotated[
        str | None, typer.Option(metavar="FILE", help="The certificate that runners ask for, in PEM.")
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="FILE", help="Its key, without a password.")] = None,
    ca: Annotated[str | None, typer.Option(metavar="FILE", help="The authority that signed those of runners.")] = None,
    trust: Annotated[
        Literal["kernel", "kernel+namespaces"] | None,
        typer.Option(help="The strongest isolation that runners may claim; without it, process."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Do without TLS, to runners on this machine alone.")
    ] = False,
    migrate: Annotated[bool, typer.Option("--migrate", help="Make the tables of the queue first.")] = False,
) -> None:
    """Work on the runs that other processes submit.

    The store is in PostgreSQL.
    """
    from toolwire.fleet import ProcrastinateQueue, Worker, WorkerSettings

    output: Output = context.obj
    if session_for is None and not migrate:
        raise Stop(ExitCode.WRONG_USAGE, "nothing says how the session of a run is made", hint=_NO_FUNCTION)
    url, prepared = find_place(store)
    queue = ProcrastinateQueue()
    settings = WorkerSettings(concurrency=concurrency, grace_s=grace, per_tenant=per_tenant, poll_s=poll, health=health)
    remote = _make_runner(runner, cert=cert, key=key, ca=ca, trust=trust, insecure=insecure)
    try:
        if migrate:
            output.say(f"the tables of the queue are {'made' if queue.migrate(url) else 'there'}")
        if session_for is not None:
            function = load_function(session_for)
            with remote or nullcontext():
                make = partial(Worker, queue=queue, session_for=function, settings=settings, runner=remote)
                asyncio.run(_work(output, url, prepared, queue, make))
    except (toolwire.ToolwireError, toolwire.DecisionRefused) as error:
        raise unusable_store(error) from error


def _make_runner(addresses: list[str] | None, **options: Any) -> RemoteRunner | None:
    """Returns what runs the programs; None if no option is about runners."""
    from toolwire.fleet import RemoteRunner

    if not addresses and not any(options.values()):
        return None
    with wrong_usage(toolwire.ConfigurationError):
        return RemoteRunner(addresses or [], **options)


async def _work(
    output: Output, url: str, prepared: bool, queue: ProcrastinateQueue, make: Callable[[toolwire.Store], Worker]
) -> None:
    from toolwire.fleet import LEASE_S

    store = await toolwire.Store.aopen(url, prepared=prepared, lease_s=LEASE_S, queue=queue)
    try:
        worker = make(store)
        output.say(f"working on the runs of {store.url}")
        await worker.work()
    finally:
        await store.aclose()
    output.say("ended")
