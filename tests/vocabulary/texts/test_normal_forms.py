"""Normal forms cost as much as the text is long, and are those of Unicode for every honest text."""

from __future__ import annotations

import random
import unicodedata
from typing import get_args

import pytest

from tests.processor import LINEAR, growth
from toolwire.permission.destinations import fold
from toolwire.permission.visible import looks_like_another
from toolwire.vocabulary.texts.normal_forms import _BECOME_MARKS, MARKS_LIMIT, Form, joins, normalize_text

MARKS = "\u0301\u0316\u0323\u05b0\u0f73\uff9e"


@pytest.mark.parametrize("form", get_args(Form))
def test_a_text_without_long_runs_of_marks_has_unicodes_form(form: Form) -> None:
    chance = random.Random(1)
    for _ in range(200):
        text = "".join(chance.choices(f"ae\ufb01\u1112\u1161\u11ab\u304b\uff76{MARKS}", k=40))
        assert normalize_text(form, text) == unicodedata.normalize(form, text)
    longest = "e" + "\u0301" * (MARKS_LIMIT // 2) + "\u0316" * (MARKS_LIMIT // 2)
    assert normalize_text(form, longest) == unicodedata.normalize(form, longest)
    assert normalize_text(form, longest + "\u0323") != unicodedata.normalize(form, longest + "\u0323")


@pytest.mark.threat(46)
def test_marks_cost_no_more_than_other_characters() -> None:
    small, large = ("e" + "\u0301" * size + "\u0316" * size for size in (1_000, 4_000))
    for work in (lambda text: normalize_text("NFKC", text), looks_like_another, fold):
        assert growth(work, small, large) <= LINEAR
    # The control: Unicode's own function takes sixteen times as long.
    assert growth(lambda text: unicodedata.normalize("NFKC", text), small, large, rounds=2) > LINEAR


def test_each_character_that_becomes_a_mark_or_composes_is_known() -> None:
    letters = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    become = [
        letter
        for letter in letters
        if not unicodedata.combining(letter) and unicodedata.combining(unicodedata.normalize("NFKD", letter)[0])
    ]
    assert "".join(become) == _BECOME_MARKS
    composed = [unicodedata.normalize("NFD", letter) for letter in letters]
    seconds = {parts[-1] for parts in composed if len(parts) == 2 and len(unicodedata.normalize("NFC", parts)) == 1}
    assert {letter for letter in seconds if not joins(letter)} == set()
    assert not any(map(joins, "ae\u4e00\U0001f600"))
