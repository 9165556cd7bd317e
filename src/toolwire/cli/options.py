"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

ToolsOption = Annotated[
    list[str],
    typer.Option(
        "--tools",
        metavar="FILE|MODULE",
        help="A .py file or an importable module with the tools. May be given several times.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Give up after that long, tools included."),
]

TIMEOUT_S = 60.0
"""Seconds for a whole command: long enough for slow tools, short enough that a stuck one is noticed."""
