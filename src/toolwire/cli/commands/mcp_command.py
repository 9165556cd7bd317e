"""`toolwire mcp`: tries MCP servers, logs in at them, lists their tools, and accepts new and changed definitions."""

from __future__ import annotations

import dataclasses
import logging
import webbrowser
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

import toolwire
import toolwire.types
from toolwire.cli.completing import complete_server, complete_waiting_tool
from toolwire.cli.display import add_id_column, add_row, count_of, table_text, whole
from toolwire.cli.exit_codes import ExitCode, Stop, exit_codes, wrong_usage
from toolwire.cli.loading import add_servers, names_no_server
from toolwire.cli.options import ConfigOption, JsonOption, TokensOption
from toolwire.cli.output import Output
from toolwire.cli.token_costs import TokenCosts, token_costs
from toolwire.vocabulary.machine.system import has_display

EPILOG = f"""\b
Examples:
  toolwire mcp list --pins mcp-pins.json
  toolwire mcp list --config mcp.json --tokens openai
  toolwire mcp accept fs read_file --pins mcp-pins.json
  toolwire mcp accept fs --pins mcp-pins.json
  toolwire mcp doctor --config mcp.json
  toolwire mcp login https://example.com/mcp
  toolwire mcp login issues --config mcp.json

The file of --pins is the one of register_mcp_client(..., pins=...), that of
--config the one of registry.mcp.add(...).

A login is kept in toolwire/mcp-tokens.json of $XDG_STATE_HOME, which is
~/.local/state by default. No other user can read it. Delete it to log out.

{exit_codes("no such server or tool, no answer, or a mistake", ExitCode.UNUSABLE_TOOLS)}"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, epilog=EPILOG)

_PINS = typer.Option("--pins", metavar="FILE", exists=True, dir_okay=False, help="The pins.")


@app.callback(epilog=EPILOG)
def _mcp() -> None:  # pyright: ignore[reportUnusedFunction] - typer keeps it
    """Try MCP servers, log in, list and accept their tools."""


@app.command("list", epilog=EPILOG)
def list_tools(
    context: typer.Context,
    pins: Annotated[Path | None, _PINS] = None,
    config: ConfigOption = None,
    tokens: TokensOption = None,
    json: JsonOption = False,
) -> None:
    """List the tools of each server: accepted, new, changed, or off.

    With --config the servers are asked. Without it, the list is that of the pins, when a server was last connected.
    """
    output: Output = context.obj
    output.keep_stdout()
    if config is None:
        if pins is None or tokens is not None:
            raise typer.BadParameter("give --config FILE, or --pins FILE without --tokens")
        listed, costs, is_whole = _read_states(pins), None, True
    else:
        # Registering a server changes its pins, and a list must not.
        with TemporaryDirectory() as folder, closing(toolwire.ToolRegistry()) as registry:
            copy = Path(folder) / "pins.json"
            if pins is not None:
                copyfile(pins, copy)
            listed, is_whole = _connect(registry, config, copy)
            costs = None if tokens is None else token_costs(registry, tokens)
    if costs is not None:
        output.say(costs.note)
    if json:
        output.result_json(listed if costs is None else {"states": listed, **costs.as_json()})
    else:
        output.result(_table(listed, costs, is_terminal=output.is_terminal))
    raise typer.Exit(ExitCode.DONE if is_whole else ExitCode.FAILED)


def _read_states(pins: Path) -> dict[str, dict[str, str]]:
    """Returns the state of each known tool, by server and tool."""
    with wrong_usage(toolwire.ConfigurationError):
        return {server: {**states} for server, states in toolwire.types.McpPins(pins).states().items()}


def _connect(registry: toolwire.ToolRegistry, config: Path, pins: Path) -> tuple[dict[str, dict[str, str]], bool]:
    """Connects to the servers of a file. Returns the same for their tools, and True if all servers can be used.

    A tool is off if its server does not offer it any more, or if its entry leaves it out.
    """
    is_whole = add_servers(registry, config, pins)
    known = _read_states(pins)
    found: dict[str, dict[str, str]] = {}
    for server in registry.mcp.names:
        found[server] = {
            tool: "off" if state == "accepted" and f"{server}/{tool}" not in registry else state
            for tool, state in sorted(known.get(server, {}).items())
        }
    return found, is_whole


def _table(listed: Mapping[str, Mapping[str, str]], costs: TokenCosts | None, *, is_terminal: bool) -> str:
    table = Table()
    for name in ("SERVER", "TOOL"):
        add_id_column(table, name, [text for server, tools in listed.items() for text in (server, *tools)])
    table.add_column("STATE", no_wrap=True)
    if costs is not None:
        costs.add_columns(table)
    for server, tools in listed.items():
        for tool, state in tools.items():
            counts = None if costs is None else costs.tools.get(f"{server}/{tool}")
            add_row(table, whole(server), whole(tool), state, *(costs.cells(counts) if costs and counts else ()))
    if costs is not None:
        costs.add_sums(table, "", "")
    return table_text(table, is_terminal=is_terminal)


@app.command("accept", epilog=EPILOG)
def accept(
    context: typer.Context,
    server: Annotated[
        str, typer.Argument(metavar="SERVER", help="The name of the server.", autocompletion=complete_server)
    ],
    pins: Annotated[Path, _PINS],
    tools: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOOL]...", help="Tools that wait; else all that wait.", autocompletion=complete_waiting_tool
        ),
    ] = None,
) -> None:
    """Accept new and changed definitions of a server's tools.

    A process that is running takes them over within a second.
    """

    output: Output = context.obj
    try:
        accepted = toolwire.types.McpPins(pins).accept(server, tools or None)
    except toolwire.RegistrationError as error:
        raise Stop(ExitCode.FAILED, str(error)) from error
    except toolwire.ConfigurationError as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
    for name in accepted:
        output.result(f"{server}/{name}")
    output.say(f"{count_of(len(accepted), 'tool')} accepted")


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
    """Log in at a server in the browser, and keep the token.

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
    output.result(f"logged in: {count_of(found.tools, 'tool')}")


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
    """Try each server of a file as serve does, and print what is wrong."""
    from toolwire.doctor import diagnose_mcp, diagnose_profiles

    output: Output = context.obj
    output.keep_stdout()
    with wrong_usage(toolwire.ConfigurationError), _without_warnings():
        toolwire.ClientProfiles(config)
        found = diagnose_mcp(config, pins)
        idle = diagnose_profiles(config, found)
    if not found:
        raise names_no_server(config)
    if json:
        output.result_json([dataclasses.asdict(each) for each in found])
        for problem in idle:
            output.say(problem)
    else:
        table = Table(*("SERVER", "STATE", "TOOLS", "AFTER"))
        for each in found:
            tools = f"{each.tools}" + (f", {each.offered} offered" if each.offered < each.tools else "")
            row = (tools, f"{each.seconds:.1f} s") if each.is_on else ("", "")
            add_row(table, each.server, "on" if each.is_on else "off", *row)
        problems = [problem for each in found for problem in each.problems]
        problems += [
            f"{each.server}/{name} is off, because it is {why}: toolwire mcp accept {each.server} {name} --pins {pins}"
            for each in found
            for name, why in each.waiting.items()
        ]
        problems += [f"{each.server}/{name} is off: {why}" for each in found for name, why in each.refused.items()]
        problems += idle
        output.result("\n".join([table_text(table, is_terminal=output.is_terminal), *problems]))
    is_whole = not idle and all(each.is_on and not each.waiting and not each.refused for each in found)
    raise typer.Exit(ExitCode.DONE if is_whole else ExitCode.FAILED)


@contextmanager
def _without_warnings() -> Generator[None]:
    """Logs no warnings about servers: the command prints what is wrong itself."""
    logs = [logging.getLogger(name) for name in ("toolwire.registry", "toolwire.mcp")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)
