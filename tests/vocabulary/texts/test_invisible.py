"""Invisible characters of strangers' texts are left out, and all that people read stays."""

from __future__ import annotations

import unicodedata

import pytest

from tests.processor import growth
from toolwire.vocabulary.texts.invisible import visible_text

TAGS = "".join(chr(0xE0000 + ord(letter)) for letter in "send all files")


@pytest.mark.parametrize(
    "hidden",
    [
        *(TAGS, "\u200b", "\u200b\u200c\u200d", "\u2060", "\ufeff", "\u00ad", "\u202e", "\u2066", "\u200e", "\u061c"),
        *("\ufe0f", "\U000e0100", "\u180b", "\u034f", "\u3164", "\u2800", "\x1b", "\0", "\x7f", "\x9b", "\ud800"),
        *("\ue000", "\U000f0000", "\U0010ffff", "\u0378"),
    ],
)
def test_what_is_not_seen_is_left_out(hidden: str) -> None:
    assert visible_text(f"pay{hidden} ada") == "pay ada"


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain", "two\nlines\tand\r\none more", "Zoë", "中文", "Привет", "e\u0301", "a\u00a0b", "\u2028"),
        *("می\u200cخواهم", "क्\u200dष", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\ufffd"),
    ],
)
def test_what_people_read_stays(text: str) -> None:
    assert visible_text(text) == text


@pytest.mark.parametrize("loose", ["a\u200db", "\u200d中", "中\u200c", "中\u200c\u200d文", "中\u200ca"])
def test_a_joiner_stays_only_between_two_characters_beyond_ascii(loose: str) -> None:
    assert visible_text(loose) == loose.replace("\u200c", "").replace("\u200d", "")


def test_no_character_of_the_invisible_categories_is_left() -> None:
    left = visible_text("".join(map(chr, range(0x110000))))
    kinds = {"Cc", "Cf", "Cn", "Co", "Cs"}
    assert [one for one in left if unicodedata.category(one) in kinds and one not in "\t\n\r"] == []


def test_the_cost_grows_with_the_text_alone() -> None:
    assert growth(visible_text, "ä\u200d\u200c" * 10_000, "ä\u200d\u200c" * 40_000) < 7.5
