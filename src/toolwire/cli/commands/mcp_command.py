"""`toolwire mcp`: tries MCP servers, lists their pinned tools, and accepts new and changed definitions."""

from __future__ import annotations

import dataclasses
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
  toolwire mcp doctor --config mcp.json

The file of --pins is the one of register_mcp_client(..., pins=...), that of
--config the one of register_mcp_server(...).

{exit_codes("no such server or waiting tool, or a server does not answer")}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, epilog=EPILOG)

PinsOption = Annotated[Path, typer.Option("--pins", metavar="FILE", exists=True, dir_okay=False, help="The pins.")]


@app.callback(epilog=EPILOG)
def _mcp() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """MCP servers: try them, see which tools they have, and accept them."""


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


@app.command("doctor", epilog=EPILOG)
def doctor(
    context: typer.Context,
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", exists=True, dir_okay=False, help="The servers to try.")
    ],
    json: JsonOption = False,
) -> None:
    """Try each server of a file, and print what is wrong."""
    from toolwire.doctor import diagnose_mcp

    output: Output = context.obj
    output.keep_stdout()
    try:
        found = diagnose_mcp(config)
    except toolwire.ConfigurationError as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
    if json:
        output.result_json([dataclasses.asdict(each) for each in found])
    else:
        table = Table(*("SERVER", "STATE", "TOOLS", "AFTER"))
        for each in found:
            row = (f"{each.tools}", f"{each.seconds:.1f} s") if each.is_on else ("", "")
            add_row(table, each.server, "on" if each.is_on else "off", *row)
        problems = [problem for each in found for problem in each.problems]
        output.result("\n".join([table_text(table, is_terminal=output.is_terminal), *problems]))
    raise typer.Exit(ExitCode.DONE if all(each.is_on for each in found) else ExitCode.FAILED)
