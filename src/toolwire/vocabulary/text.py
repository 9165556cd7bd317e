"""Cutting text that is too long for a model."""

from __future__ import annotations


def cut_text(text: str, limit_bytes: int) -> str:
    """The text, or as much of its beginning as fits, cut between characters, with what was kept and the total."""
    if len(text) * 4 <= limit_bytes:
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit_bytes:
        return text
    kept = encoded[:limit_bytes].decode("utf-8", "ignore")
    kept_bytes = len(kept.encode("utf-8"))
    return f"{kept}\n[cut: the first {kept_bytes} of {len(encoded)} bytes are shown]"
