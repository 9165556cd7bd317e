"""Adds the MCP servers of `--config` to the tools of a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", exists=True, dir_okay=False, help="A JSON or TOML file with a table mcpServers."
    ),
]


def add_servers(registry: toolwire.ToolRegistry, config: Path, pins: Path | None = None) -> bool:
    """Adds the tools of the servers in a file. True if all of its servers can be used; warnings say why not.

    Raises:
        Stop: The file cannot be used.
    """
    try:
        problems = registry.mcp.add(config, pins=pins)
    except (toolwire.ConfigurationError, toolwire.RegistrationError) as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
    return not any(problem.is_off for problem in problems)
