"""Cutting text that is too long for a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vocabulary.strategies import unhurried
from toolwire.vocabulary.texts.cuts import cut_text, page_of


@pytest.mark.parametrize("text", ["", "12345678", "四四", "é" * 4, "\U0001f600" * 2], ids=ascii)
def test_a_text_of_exactly_the_limit_is_whole(text: str) -> None:
    assert cut_text(text, 8) is text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("123456789", "12345678\n[cut: the first 8 of 9 bytes are shown]"),
        ("四四四", "四四\n[cut: the first 6 of 9 bytes are shown]"),
        ("1\U0001f600\U0001f600", "1\U0001f600\n[cut: the first 5 of 9 bytes are shown]"),
        ("\ud800" * 9, "????????\n[cut: the first 8 of 9 bytes are shown]"),
    ],
    ids=ascii,
)
def test_a_longer_text_is_cut_between_characters_and_says_so(text: str, expected: str) -> None:
    assert cut_text(text, 8) == expected


@unhurried
@given(st.text(), st.integers(0, 40))
def test_the_longest_prefix_that_fits_is_kept(text: str, limit: int) -> None:
    kept, _, note = cut_text(text, limit).rpartition("\n[cut: ")
    total = len(text.encode())
    if total <= limit:
        assert cut_text(text, limit) == text
        return
    assert note == f"the first {len(kept.encode()):,} of {total:,} bytes are shown]"
    assert text.startswith(kept)
    assert len(kept.encode()) <= limit < len(text[: len(kept) + 1].encode())


@given(st.text(max_size=300), st.integers(1, 50))
def test_pages_together_are_the_text_and_each_fits(text: str, limit_bytes: int) -> None:
    pages, offset = [], 0
    while offset < len(text):
        pages.append(page_of(text, offset, limit_bytes))
        offset += len(pages[-1])
    assert "".join(pages) == text
    assert all(len(page) == 1 or len(page.encode("utf-8", "replace")) <= limit_bytes for page in pages)


@pytest.mark.parametrize(
    ("text", "page"),
    [("one\ntwo\nthree", "one\ntwo\n"), ("o\ntwothreefour", "o\ntwothre"), ("short", "short"), ("ä" * 9, "ää" * 2)],
)
def test_a_page_ends_with_a_line_unless_that_leaves_half_of_it_empty(text: str, page: str) -> None:
    assert page_of(text, 0, 9) == page
