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
