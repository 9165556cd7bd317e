"""Command lines of toolwire, read as the command line reads them and not run."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from typer.core import TyperGroup
from typer.main import get_command

from toolwire.cli.main import app


def parse_command(words: Sequence[str]) -> None:
    """Raises a usage error if toolwire has no such command, or it has no such option or value."""
    group = get_command(app)
    name, rest = words[0], list(words[1:])
    while isinstance(group, TyperGroup):
        command = group.get_command(typer.Context(group), name)
        assert command is not None, name
        if not isinstance(command, TyperGroup):
            command.make_context(name, rest)
            return
        group, name, rest = command, rest[0], rest[1:]
