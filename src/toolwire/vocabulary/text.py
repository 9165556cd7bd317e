"""Cutting text that is too long for a model."""

from __future__ import annotations


def cut_text(text: str, limit_bytes: int) -> str:
    """The text, or as much of its beginning as fits, cut between characters, with what was kept and the total."""
    kept = kept_text(text, limit_bytes)
    if kept is text:
        return text
    kept_bytes, total_bytes = (len(part.encode("utf-8", "replace")) for part in (kept, text))
    return f"{kept}\n[cut: the first {kept_bytes:,} of {total_bytes:,} bytes are shown]"


def kept_text(text: str, limit_bytes: int) -> str:
    """The text itself if its UTF-8 fits, else as much of its beginning as does."""
    if len(text) * 4 <= limit_bytes:
        return text
    encoded = text.encode("utf-8", "replace")
    return text if len(encoded) <= limit_bytes else encoded[:limit_bytes].decode("utf-8", "ignore")


def page_of(text: str, offset: int, limit_bytes: int) -> str:
    """What one page shows of a text from that character on: as much as fits, up to the end of a line where one is in
    its second half. At least one character, so that who reads on comes to the end."""
    rest = text[offset : offset + limit_bytes]
    length = len(kept_text(rest, limit_bytes)) or 1
    if offset + length < len(text):
        line_end = rest.rfind("\n", 0, length) + 1
        if line_end > length // 2:
            length = line_end
    return rest[:length]
