"""Tables and times as the text that people read, and times as they write them."""

from __future__ import annotations

import datetime
import re
import shutil
from io import StringIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_WRITTEN = re.compile(rf"(\d{{1,9}})({'|'.join(unit for _, unit in _UNITS)})")
_SECONDS = {unit: seconds for seconds, unit in _UNITS}


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
    from toolwire.approvals import visible_text

    return visible_text(text).replace("\n", "\\n").replace("\t", "\\t")


def span(seconds: float) -> str:
    """Returns a duration in its largest unit, such as `6 d`."""
    left = max(0, round(seconds))
    for size, unit in _UNITS:
        if left >= size:
            return f"{left // size} {unit}"
    return "0 s"


def seconds_of(text: str) -> float | None:
    """Parses a duration such as `30min`, `2h` or `7d` into seconds. None if the text is not a duration."""
    found = _WRITTEN.fullmatch(text)
    return None if found is None else float(int(found[1]) * _SECONDS[found[2]])


def ago(since: float, now: float) -> str:
    """Returns the time since a moment, such as `6 d ago`."""
    return f"{span(now - since)} ago"


def moment(seconds: float) -> str:
    """Returns seconds since the epoch as `2026-11-22 02:10:05 UTC`."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
