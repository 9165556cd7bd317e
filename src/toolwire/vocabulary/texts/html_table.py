"""Values as HTML for notebooks. All texts are escaped, because models and tools wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolwire.vocabulary.texts.counting import count_of

CELL_LIMIT = 4_000
"""Maximum number of characters of one cell: a notebook keeps every output, and a person reads a page at most."""


def html_table(rows: Iterable[Sequence[object]], *, head: Sequence[str] = ()) -> str:
    """Returns the rows as a table. The first cell of a row is its heading if the table has no `head`."""
    titles = "".join(f"<th>{_cell(title)}</th>" for title in head)
    lines = [f"<tr>{titles}</tr>"] if head else []
    for first, *others in rows:
        kind = "td" if head else "th"
        cells = "".join(f"<td><pre>{_cell(value)}</pre></td>" for value in others)
        lines.append(f"<tr><{kind}>{_cell(first)}</{kind}>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _cell(value: object) -> str:
    from html import escape

    text = str(value)
    left = len(text) - CELL_LIMIT
    return escape(text if left <= 0 else f"{text[:CELL_LIMIT]}... {count_of(left, 'more character')}")
