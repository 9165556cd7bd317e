"""The door for each text that a page or its server chose: no other way leads from the web to a model."""

from __future__ import annotations

from toolwire.vocabulary.texts.invisible import visible_text
from toolwire.vocabulary.texts.lone_surrogates import encodable_text


def outside_text(text: str, limit: int) -> str:
    """Returns at most so many characters of the text. Invisible ones are left out, and lone surrogates are U+FFFD."""
    return visible_text(encodable_text(text[:limit]))
