"""Values as HTML for notebooks. All texts are escaped, because models and tools wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from toolwire.vocabulary.blocks import ContentBlock, block_for_model, is_media
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.lone_surrogates import encodable_text

CELL_LIMIT = 4_000
"""Maximum number of characters of one text: a notebook keeps every output, and a person reads a page at most."""

_HIDDEN = re.compile(r"[\0-\b\v-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Characters that show nothing, or make a browser show others in another order: they are written as escapes."""


def html_table(rows: Iterable[Sequence[object]], *, head: Sequence[str] = ()) -> str:
    """Returns the rows as a table. The first cell of a row is its heading if the table has no `head`."""
    titles = "".join(f"<th>{_cell_text(title)}</th>" for title in head)
    lines = [f"<tr>{titles}</tr>"] if head else []
    for first, *others in rows:
        kind = "td" if head else "th"
        cells = "".join(f"<td>{html_text(value)}</td>" for value in others)
        lines.append(f"<tr><{kind}>{_cell_text(first)}</{kind}>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def html_text(value: object) -> str:
    """Returns the value's text, with its line breaks and spaces."""
    return f"<pre>{_cell_text(value)}</pre>"


def html_images(blocks: Iterable[ContentBlock]) -> str:
    """Returns the images whose bytes are PNG, JPEG, GIF or WebP. Text, sounds and images elsewhere are left out.

    The page itself holds their bytes. The browser loads no URL of a tool, which could carry private data away.
    """
    return "".join(map(_image, blocks))


def _image(block: ContentBlock) -> str:
    if not is_media(block):
        return ""
    source = cast("Any", block_for_model(block))["source"]
    if source["type"] != "base64" or not source["media_type"].startswith("image/"):
        return ""
    return f'<img src="{_escape_text("data:{media_type};base64,{data}".format(**source))}" style="max-width: 100%">'


def _cell_text(value: object) -> str:
    text = str(value)
    left = len(text) - CELL_LIMIT
    return _escape_text(text if left <= 0 else f"{text[:CELL_LIMIT]}... {count_of(left, 'more character')}")


def _escape_text(text: str) -> str:
    from html import escape

    return escape(_HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", encodable_text(text)))
