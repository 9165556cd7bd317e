"""Options that several commands share."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from toolwire.cli.completing import complete_protocol

TIMEOUT_S: float = 30
"""Default time limit of a command in seconds: that of every program. A test compares it with `Limits`."""

_TOOLS = typer.Option(
    "--tools",
    metavar="FILE|MODULE",
    help="A .py file or an importable module with the tools. May be given several times.",
)
ToolsOption = Annotated[list[str], _TOOLS]
OptionalToolsOption = Annotated[list[str] | None, _TOOLS]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", exists=True, dir_okay=False, help="A JSON or TOML file with a table mcpServers."
    ),
]
OpenApiOption = Annotated[
    str | None,
    typer.Option(
        "--openapi", metavar="FILE|URL", help="An OpenAPI 3 document as JSON or YAML: a tool for each operation."
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="A file with permission rules; toolwire.toml of this folder if it exists.",
    ),
]
TokensOption = Annotated[
    str | None,
    typer.Option(
        "--tokens",
        metavar="PROTOCOL",
        help="Print what the tools cost a model in this protocol, in tokens.",
        autocompletion=complete_protocol,
    ),
]
LanguageOption = Annotated[
    Literal["en", "zh"] | None,
    typer.Option("--language", help="The language of texts for the model; English by default."),
]
AskOption = Annotated[
    bool | None,
    typer.Option(
        "--ask/--no-ask",
        help="Ask at the terminal about calls that need approval; by default if there is one. A ToolRegistry "
        "with an approver of its own asks that one.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]


def _check_timeout(seconds: float) -> float:
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise typer.BadParameter(f"{seconds:g} is not a time to wait; write a number of seconds above 0")
    return seconds


TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        callback=_check_timeout,
        help="Give up after that long, tools included.",
    ),
]
