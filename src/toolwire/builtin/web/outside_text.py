"""The door for each text that a page or its server chose: no other way leads from the web to a model."""

from __future__ import annotations

from toolwire.vocabulary.texts.invisible import visible_text


def outside_text(text: str, limit: int) -> str:
    """Returns at most so many characters of the text, without those that are invisible or that UTF-8 cannot encode."""
    return visible_text(text[:limit])
