"""`toolwire runner`: gives the programs of other machines a process on this one, until it is told to end."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes, wrong_usage
from toolwire.cli.output import Output

EPILOG = f"""\b
Examples:
  toolwire runner --listen 0.0.0.0:8443 --cert r.pem \\
    --key r.key --client-ca ca.pem
  toolwire runner --listen unix:/run/toolwire/runner

A runner holds no store, no key of one and no tool: the calls of a program
are answered where the program came from. Start it where no secret is.

SIGTERM lets it take no new program, wait for the others, and end.

{exit_codes("this machine has no sandbox")}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("runner", epilog=EPILOG)
def runner(
    context: typer.Context,
    listen: Annotated[str, typer.Option(metavar="ADDRESS", help="HOST:PORT, or unix:PATH for this user alone.")],
    cert: Annotated[str | None, typer.Option(metavar="FILE", help="The certificate of this runner, in PEM.")] = None,
    key: Annotated[str | None, typer.Option(metavar="FILE", help="Its key, without a password.")] = None,
    client_ca: Annotated[
        str | None,
        typer.Option("--client-ca", metavar="FILE", help="Its certificates may run programs here."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Do without TLS, at an address of this machine alone.")
    ] = False,
) -> None:
    """Run the programs of other machines.

    The other side is `toolwire worker --runner`, or `Session(..., runner=RemoteRunner(...))`.
    """
    from toolwire.fleet import RunnerServer

    output: Output = context.obj
    try:
        with wrong_usage(toolwire.ConfigurationError):
            server = RunnerServer(listen, cert=cert, key=key, client_ca=client_ca, insecure=insecure)
    except toolwire.SandboxUnavailable as error:
        raise Stop(ExitCode.FAILED, str(error)) from error

    def stop(*_: object) -> None:
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    output.say(f"programs run at {server.address}, at isolation level {server.isolation.level}")
    server.serve()
    output.say("ended")
