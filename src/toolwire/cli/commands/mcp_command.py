"""`toolwire mcp`: tries MCP servers, logs in at them, lists their tools, and accepts new and changed definitions."""

from __future__ import annotations

import dataclasses
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import toolwire
from toolwire.cli.display import add_row, table_text
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes
from toolwire.cli.options import JsonOption
from toolwire.cli.output import Output
from toolwire.vocabulary.system import has_display

EPILOG = f"""\b
Examples:
  toolwire mcp list --pins mcp-pins.json
  toolwire mcp accept fs read_file --pins mcp-pins.json
  toolwire mcp accept fs --pins mcp-pins.json
  toolwire mcp doctor --config mcp.json --pins mcp-pins.json
  toolwire mcp login https://example.com/mcp
  toolwire mcp login issues --config mcp.json

The file of --pins is the one of register_mcp_client(..., pins=...), that of
--config the one of register_mcp_server(...).

A login is kept in toolwire/mcp-tokens.json of $XDG_STATE_HOME, which is
~/.local/state by default. No other user can read it. Delete it to log out.

{exit_codes("no such server or waiting tool, no answer, or a failed login")}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, epilog=EPILOG)

PinsOption = Annotated[Path, typer.Option("--pins", metavar="FILE", exists=True, dir_okay=False, help="The pins.")]


@app.callback(epilog=EPILOG)
def _mcp() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """MCP servers: try them, log in, see which tools they have, and accept them."""


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

    A process that is running takes them over within a second.
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


@app.command("login", epilog=EPILOG)
def login(
    context: typer.Context,
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="The server's URL, or its name in the file of --config.")
    ],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", exists=True, dir_okay=False, help="The servers.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address of the page.")] = False,
) -> None:
    """Log in at a server in the browser, and keep the token for later calls.

    The page returns to a port of this machine, so open it in a browser here. A browser elsewhere needs that port
    forwarded. callback_port of McpLogin, or callbackPort in the file, sets the port.
    """
    from toolwire.doctor import log_in_mcp

    output: Output = context.obj
    output.keep_stdout()

    def open_page(address: str) -> None:
        output.say(f"Open this page to log in:\n{address}")
        # Without a display Python would start a browser of text in this terminal.
        if has_display() and not no_browser:
            webbrowser.open(address)

    try:
        found = log_in_mcp(server, config, open_page)
    except toolwire.ServerUnavailable as error:
        raise Stop(ExitCode.FAILED, str(error)) from error
    except toolwire.ConfigurationError as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
    if not found.is_on:
        raise Stop(ExitCode.FAILED, "\n".join(["the login is kept, but the server cannot be used:", *found.problems]))
    output.result(f"logged in: {found.tools} tools")


@app.command("doctor", epilog=EPILOG)
def doctor(
    context: typer.Context,
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", exists=True, dir_okay=False, help="The servers to try.")
    ],
    pins: Annotated[
        Path | None,
        typer.Option("--pins", metavar="FILE", exists=True, dir_okay=False, help="Also tell which tools wait."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Try each server of a file, and print what is wrong."""
    from toolwire.doctor import diagnose_mcp

    output: Output = context.obj
    output.keep_stdout()
    try:
        found = diagnose_mcp(config, pins)
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
        problems += [
            f"{each.server}/{name} is off, because it is {why}: toolwire mcp accept {each.server} {name} --pins {pins}"
            for each in found
            for name, why in each.waiting.items()
        ]
        output.result("\n".join([table_text(table, is_terminal=output.is_terminal), *problems]))
    raise typer.Exit(ExitCode.DONE if all(each.is_on and not each.waiting for each in found) else ExitCode.FAILED)
