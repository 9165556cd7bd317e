"""`toolwire serve`: serves tools to MCP clients, by stdin and stdout or by HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

import toolwire
from toolwire.cli.commands.policy_command import honour
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.loading import registry_of
from toolwire.cli.options import PolicyOption, ToolsOption
from toolwire.cli.output import Output
from toolwire.cli.stores import StoreOption, open_store

EPILOG = f"""\b
Examples:
  toolwire serve --tools tools.py
  toolwire serve --tools tools.py --http 8000
  TOKEN=secret toolwire serve --tools tools.py --http 8000 --token-env TOKEN

Without --http, the client is the process that started this one: it talks by
standard input and output. With --http, clients connect to /mcp.

Calls are on record in the store (--store). What needs a person is asked by
the client, or waits there: decide with `toolwire approvals`.

{exit_codes("the server could not start", ExitCode.UNUSABLE_TOOLS)}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("serve", epilog=EPILOG)
def serve(
    context: typer.Context,
    tools: ToolsOption,
    http: Annotated[
        int | None, typer.Option("--http", metavar="PORT", min=0, max=65_535, help="Serve HTTP; 0 is any free port.")
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address of --http.")] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A Host header that is served besides this machine's own."),
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option("--token-env", metavar="NAME", help="The variable with the bearer token of --http."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name that clients show; else that of --tools.")
    ] = None,
    policy: PolicyOption = None,
    store: StoreOption = None,
) -> None:
    """Serve tools to MCP clients, until the client leaves or SIGTERM."""
    output: Output = context.obj
    # What the tools print while they are loaded must not reach the client.
    output.keep_stdout()
    registry = registry_of(tools)
    honour(policy, registry, output)
    token = _token(token_env, http)
    with open_store(store, make=True) as opened:
        try:
            server = toolwire.ToolServer(
                registry, name or Path(tools[0]).stem, store=opened, token=token, hosts=allow_host or ()
            )
            if http is None:
                output.give_back()
                server.run_stdio()
            else:
                server.run_http(host, http, on_start=lambda url: output.say(f"serving {server.name} at {url}"))
        except toolwire.ConfigurationError as error:
            raise Stop(ExitCode.WRONG_USAGE, str(error)) from error


def _token(variable: str | None, http: int | None) -> str | None:
    if variable is None:
        return None
    if http is None:
        raise Stop(ExitCode.WRONG_USAGE, "--token-env is for --http", hint="Give --http PORT, or leave it out.")
    token = os.environ.get(variable, "")
    if not token.strip():
        raise Stop(ExitCode.WRONG_USAGE, f"the variable {variable} has no token", hint="Set it, or leave it out.")
    return token
