"""Tables and times as the text that people read, and times as they write them."""

from __future__ import annotations

import datetime
import re
import shutil
from collections.abc import Iterable, Sequence
from io import StringIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolwire.vocabulary.texts.counting import count_of as count_of

WHOLE_ID = 28
"""Characters of an id that stays on one line: a run's 24, and the number of a call."""

_NO_LIMIT = 1_000_000
"""The width of a pipe in columns. A program reads it, and finds each name whole on the line of its row."""
_INDENT = "    "
_GAP = "  "

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_WRITTEN = re.compile(rf"(\d{{1,9}})({'|'.join(unit for _, unit in _UNITS)})")
_SECONDS = {unit: seconds for seconds, unit in _UNITS}


def table_text(table: Table, *, is_terminal: bool) -> str:
    """Returns the table as text, at most as wide as the terminal or COLUMNS. In a pipe its width has no limit.

    Rules are drawn only on a terminal.

    The text has no colour and no bold, because `Output` escapes all control sequences, ours and a tool's alike.
    """
    table.box = box.SIMPLE_HEAD if is_terminal else None
    table.pad_edge = False
    written = StringIO()
    width = _width(is_terminal=is_terminal)
    Console(file=written, width=width, force_terminal=False, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").split("\n"))


def whole_rows(names: Sequence[str], rows: Sequence[Sequence[str]], *, is_terminal: bool) -> str:
    """Returns a table that breaks no cell. If a row does not fit the terminal, each row has several lines.

    A column that is empty in all rows is left out.
    """
    table = [list(names), *([one_line(cell) for cell in row] for row in rows)]
    columns = [column for column in zip(*table, strict=True) if any(column[1:])]
    lines = _pack_columns([max(map(cell_len, column)) for column in columns], _width(is_terminal=is_terminal))
    if len(lines) == 1:
        fitting = Table()
        for name, *_ in columns:
            fitting.add_column(name, no_wrap=True)
        for row in zip(*(column[1:] for column in columns), strict=True):
            add_row(fitting, *row)
        return table_text(fitting, is_terminal=is_terminal)
    found: list[str] = []
    for row in zip(*columns, strict=True):
        for places in lines:
            text = _GAP.join(row[place] + " " * (width - cell_len(row[place])) for place, width in places).rstrip()
            if text:
                found.append(text if places is lines[0] else f"{_INDENT}{text}")
    return "\n".join(found)


def _pack_columns(widths: Sequence[int], limit: int) -> list[list[tuple[int, int]]]:
    """Returns the columns of each line of a row, as places and widths."""
    lines: list[list[tuple[int, int]]] = []
    left = 0
    for place, width in enumerate(widths):
        if not lines or width + len(_GAP) > left:
            lines.append([])
            left = limit - (len(_INDENT) if len(lines) > 1 else 0) + len(_GAP)
        lines[-1].append((place, width))
        left -= width + len(_GAP)
    return lines


def _width(*, is_terminal: bool) -> int:
    return shutil.get_terminal_size().columns if is_terminal else _NO_LIMIT


def add_row(table: Table, *cells: str | Text) -> None:
    """Adds a row. Markup and control characters of plain text have no effect, and each such cell stays on one line."""
    table.add_row(*(Text(one_line(cell)) if isinstance(cell, str) else cell for cell in cells))


def add_id_column(table: Table, name: str, ids: Iterable[str]) -> None:
    """Adds a column of ids that other columns leave room for. They are never cut, and only long ones are folded."""
    table.add_column(name, no_wrap=max(map(len, ids), default=0) <= WHOLE_ID, overflow="fold")


def whole(id: str) -> Text:
    """Returns the cell of an id in such a column."""
    return Text(one_line(id), no_wrap=False, overflow="fold")


def cut_cell(text: str) -> Text:
    """Returns the cell of a text in a column that wraps: it stays on one line and is cut to the width that is left."""
    return Text(one_line(text), no_wrap=True, overflow="ellipsis")


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


def moment(seconds: float) -> str:
    """Returns seconds since the epoch as `2026-11-22 02:10:05 UTC`."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
