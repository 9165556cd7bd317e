"""Tables as text."""

from __future__ import annotations

import shutil
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table


def table_text(table: Table, *, is_terminal: bool) -> str:
    """As wide as the terminal, or as COLUMNS says; without lines and colour where no person looks at it."""
    table.box = box.SIMPLE_HEAD if is_terminal else None
    table.pad_edge, table.header_style = False, "bold"
    written = StringIO()
    width = shutil.get_terminal_size().columns
    Console(file=written, width=width, force_terminal=is_terminal).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").split("\n"))


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal takes for a command."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
