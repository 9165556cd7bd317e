"""Texts of models and tools in notebooks: nothing of them becomes markup, and nothing hides."""

from __future__ import annotations

import pytest

from toolwire.vocabulary.html_display import html_table, html_text


@pytest.mark.parametrize("character", ["\x1b", "\u202e", "\u200b", "\u2066", "\ufeff", "\x00", "\x9b", "\u061c"])
def test_a_character_that_shows_nothing_is_an_escape(character: str) -> None:
    written = f"a\\u{ord(character):04x}b"
    assert html_text(f"a{character}b") == f"<pre>{written}</pre>"
    assert written in html_table([("x", f"a{character}b")])


def test_ordinary_texts_stay_as_they_are() -> None:
    text = "a\tb\nc é水😀 \u00a0"
    assert html_text(text) == f"<pre>{text}</pre>"


def test_markup_is_escaped() -> None:
    assert "<script>" not in html_text("<script>alert(1)</script>")
