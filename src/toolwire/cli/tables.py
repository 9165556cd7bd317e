"""Tables as text."""

from __future__ import annotations

import shutil
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolwire import visible_text


def table_text(table: Table, *, is_terminal: bool) -> str:
    """As wide as the terminal, or as COLUMNS says; without lines where no person looks at it.

    No colour and no bold: `Output` shows every escape sequence of a text, and makes no difference between ours and
    a tool's.
    """
    table.box = box.SIMPLE_HEAD if is_terminal else None
    table.pad_edge = False
    written = StringIO()
    width = shutil.get_terminal_size().columns
    Console(file=written, width=width, force_terminal=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").split("\n"))


def add_row(table: Table, *cells: str) -> None:
    """Adds a row of texts: none of them is read as markup or commands a terminal, and each stays in its cell."""
    table.add_row(*(Text(one_line(cell)) for cell in cells))


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal takes for a command."""
    return visible_text(text).replace("\n", "\\n").replace("\t", "\\t")
