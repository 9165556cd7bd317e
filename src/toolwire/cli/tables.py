"""Tables as text."""

from __future__ import annotations

import shutil
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolwire.approvals import visible_text


def table_text(table: Table, *, is_terminal: bool) -> str:
    """Returns the table as text, as wide as the terminal or COLUMNS. Rules are drawn only on a terminal.

    The text has no colour and no bold, because `Output` escapes all control sequences, ours and a tool's alike.
    """
    table.box = box.SIMPLE_HEAD if is_terminal else None
    table.pad_edge = False
    written = StringIO()
    width = shutil.get_terminal_size().columns
    Console(file=written, width=width, force_terminal=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").split("\n"))


def add_row(table: Table, *cells: str) -> None:
    """Adds a row of plain text cells. Markup and control characters have no effect, and each cell stays on one line."""
    table.add_row(*(Text(one_line(cell)) for cell in cells))


def one_line(text: str) -> str:
    """Returns the text on one line, with control characters escaped."""
    return visible_text(text).replace("\n", "\\n").replace("\t", "\\t")
