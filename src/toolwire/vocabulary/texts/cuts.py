"""Cuts long texts for a model."""

from __future__ import annotations


def cut_text(text: str, limit_bytes: int) -> str:
    """Returns the text, or the part of its beginning that fits plus a note with the kept and the total bytes.

    It cuts between characters.
    """
    kept = fit_text(text, limit_bytes)
    if kept is text:
        return text
    kept_bytes, total_bytes = (len(part.encode("utf-8", "replace")) for part in (kept, text))
    return f"{kept}\n[cut: the first {kept_bytes:,} of {total_bytes:,} bytes are shown]"


def fit_text(text: str, limit_bytes: int) -> str:
    """Returns the text if its UTF-8 form fits, else the part of its beginning that fits."""
    if len(text) * 4 <= limit_bytes:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit_bytes else encoded[:limit_bytes].decode("utf-8", "ignore")


def page_of(text: str, offset: int, limit_bytes: int) -> str:
    """Returns one page of a text, starting at a character offset.

    The page ends after the last line end in its second half, if it has one. It has at least one character, so that
    reading always reaches the end.
    """
    rest = text[offset : offset + limit_bytes]
    length = len(fit_text(rest, limit_bytes)) or 1
    if offset + length < len(text):
        line_end = rest.rfind("\n", 0, length) + 1
        if line_end > length // 2:
            length = line_end
    return rest[:length]
