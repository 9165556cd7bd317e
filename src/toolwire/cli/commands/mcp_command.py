"""`toolwire mcp`: lists the pinned tools of MCP servers, and accepts new and changed definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import toolwire
from toolwire.cli.display import add_row, table_text
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output

EPILOG = f"""\b
Examples:
  toolwire mcp list --pins mcp-pins.json
  toolwire mcp accept fs read_file --pins mcp-pins.json
  toolwire mcp accept fs --pins mcp-pins.json

The file is the one of register_mcp_client(..., pins=...).

{exit_codes("there is no such server, or a tool does not wait")}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, epilog=EPILOG)

PinsOption = Annotated[Path, typer.Option("--pins", metavar="FILE", exists=True, dir_okay=False, help="The pins.")]


@app.callback(epilog=EPILOG)
def _mcp() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """MCP servers: see which tools they have, and accept them."""


@app.command("list", epilog=EPILOG)
def list_tools(context: typer.Context, pins: PinsOption, json: JsonOption = False) -> None:
    """List the known tools of each server: accepted, new or changed."""

    output: Output = context.obj
    try:
        states = toolwire.McpPins(pins).states()
    except toolwire.ConfigurationError as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
    if json:
        output.result_json(states)
        return
    table = Table(*("SERVER", "TOOL", "STATE"))
    for server, tools in states.items():
        for tool, state in tools.items():
            add_row(table, server, tool, state)
    output.result(table_text(table, is_terminal=output.is_terminal))


@app.command("accept", epilog=EPILOG)
def accept(
    context: typer.Context,
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The name of the server.")],
    pins: PinsOption,
    tools: Annotated[
        list[str] | None, typer.Argument(metavar="[TOOL]...", help="Tools that wait; else all that wait.")
    ] = None,
) -> None:
    """Accept new and changed definitions of a server's tools.

    A process that is running takes them over when it registers the server the next time, or hears of a change.
    """

    output: Output = context.obj
    try:
        accepted = toolwire.McpPins(pins).accept(server, tools or None)
    except toolwire.RegistrationError as error:
        raise Stop(ExitCode.FAILED, str(error)) from error
    except toolwire.ConfigurationError as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
    for name in accepted:
        output.result(f"{server}/{name}")
    output.say(f"{len(accepted)} tools accepted")
