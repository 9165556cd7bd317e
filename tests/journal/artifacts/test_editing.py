"""An update finds its place exactly or by likeness, and a comparison of two texts ends."""

from __future__ import annotations

import random
import time

import pytest

from tests.processor import milliseconds
from toolwire.journal.artifacts.artifact import ArtifactLimit
from toolwire.journal.artifacts.editing import DIFF_STEPS, LIKENESS_STEPS, difference, place_of
from toolwire.tools import ArtifactError
from toolwire.vocabulary.machine.work_clock import CALL_DEADLINE

LONGEST_MS = 1_000
"""Processor time that one edit may take; it holds up no other thread for longer than a step of it."""
CODE = """def area(width, height):
    return width * height


def volume(width, height, depth):
    return width * height * depth
"""


def replaced(content: str, old: str, new: str) -> str:
    place = place_of(content, old)
    return content[: place.start] + new + content[place.end :]


@pytest.mark.parametrize(
    ("old", "score"),
    [
        ("def area(width, height):\n    return width * height", 100),
        ("def area(width, height):\n   return width*height", 96),
        ("def area(width, height):\n\treturn width * height\n", 94),
        ("\ndef area(width, height):\n    return width * heigth\n", 98),
        ("def area(width, height):\n\n    return width * height", 99),
    ],
)
def test_a_text_is_replaced_where_it_stands_or_where_lines_are_alike(old: str, score: int) -> None:
    assert int(place_of(CODE, old).score) == score
    found = replaced(CODE, old, "def area(a):\n    return a\n" if old.endswith("\n") else "def area(a):\n    return a")
    assert found.replace("\n\n\n\n", "\n\n\n") == CODE.replace(
        "def area(width, height):\n    return width * height", "def area(a):\n    return a", 1
    )


@pytest.mark.parametrize(
    ("content", "old", "why"),
    [
        (CODE, "", "old_str is empty: give the text"),
        (CODE, "\n\n \n", "no text is alike enough: read it"),
        (CODE, "class Shape:", "no text is alike enough: read it"),
        (CODE, "width", "stands more than once, in lines 1 and 2: give more"),
        ("aaa", "aa", "stands more than once, in lines 1 and 1"),
        ("", "a", "no text is alike enough"),
        ("a = price(1)\n\nb = price(2)\n", "c = price(3)", "no text is alike enough"),
        (
            "total = price(1, tax=1)\n\ntotal = price(2, tax=1)\n",
            "total = price(3, tax=1)",
            "two places are alike: line 1 (96 of 100) and line 3 (96 of 100)",
        ),
    ],
)
def test_a_text_without_one_place_is_refused_with_the_places(content: str, old: str, why: str) -> None:
    with pytest.raises(ArtifactError) as refused:
        place_of(content, old)
    assert why in str(refused.value)


def test_the_better_of_two_places_counts_if_it_leads_by_three() -> None:
    content = "total = price(item, tax=1)\n\ntotal = rice(items, taxes=1)\n"
    assert replaced(content, "total = price(item,tax=1)", "x") == "x\n\ntotal = rice(items, taxes=1)\n"


def test_a_place_is_no_more_than_four_times_as_long_as_the_wanted_text() -> None:
    old = "a" + "\u0316\u0301" * 20
    few, many = (f"a{chr(0x301)}{chr(0x316)}" + "\u0316\u0301" * count for count in (20, 2_000))
    assert place_of(few, old).end == len(few)
    with pytest.raises(ArtifactError, match="no text is alike enough"):
        place_of(many, old)


def test_a_search_by_likeness_has_a_budget() -> None:
    windows = 3_999  # One and two of 2,000 lines.
    width, chance = int((LIKENESS_STEPS / windows) ** 0.5), random.Random(1)
    content = "\n".join("".join(chance.choices("abcd", k=width)) for _ in range(2_000))

    def search(characters: int, why: str) -> None:
        with pytest.raises(ArtifactError, match=why):
            place_of(content, "".join(chance.choices("abcd", k=characters)))

    assert milliseconds(lambda: search(width, "no text is alike enough"), enough=LONGEST_MS) <= LONGEST_MS
    search(width + 1, "too long to search")


def test_a_comparison_has_a_budget_and_never_takes_hours() -> None:
    chance = random.Random(1)
    side = int(DIFF_STEPS**0.5)
    # The matcher of difflib is cubic for lines such as these.
    old, new = ("\n".join(f"l{chance.randrange(150)}" for _ in range(side)) for _ in range(2))
    assert difference(old, new, names=("a", "b")).startswith("--- a\n+++ b\n@@ -1,")
    assert milliseconds(lambda: difference(old, new, names=("a", "b")), enough=LONGEST_MS) <= LONGEST_MS
    with pytest.raises(ArtifactError, match="too many lines to compare"):
        difference(f"{old}\nx", f"{new}\ny", names=("a", "b"))


def test_equal_lines_at_both_ends_do_not_count_towards_the_budget() -> None:
    lines = [f"line {number}" for number in range(20_001)]
    changed = [*lines[:10_000], "changed", *lines[10_001:]]
    old, new = "\n".join(lines), "\n".join(changed)
    assert len(lines) * len(changed) > DIFF_STEPS
    context = [f" line {number}" for number in range(9_997, 10_000)], [f" line {number}" for number in (10_001, 10_002)]
    shown = difference(old, new, names=("a", "b")).splitlines()
    assert shown[2:8] == ["@@ -9998,7 +9998,7 @@", *context[0], "-line 10000", "+changed"]
    assert shown[8:10] == context[1]
    side = int(DIFF_STEPS**0.5)
    middles = [[f"{name}{number}" for number in range(side + more)] for name, more in (("o", 0), ("n", 0), ("n", 1))]
    texts = ["\n".join([*lines, *middle, *lines]) for middle in middles]
    assert difference(texts[0], texts[1], names=("a", "b"), lines=1).startswith("--- a")
    with pytest.raises(ArtifactLimit, match="too many lines to compare"):
        difference(texts[0], texts[2], names=("a", "b"))


def test_a_search_ends_at_the_deadline_of_its_call() -> None:
    content = "".join(f"{number:06} some words\n" for number in range(500))
    old = "000250 some werds, and more"
    assert place_of(content, "000250 some werds").score > 90
    token = CALL_DEADLINE.set(time.monotonic() - 1)
    try:
        with pytest.raises(ArtifactLimit, match="takes too long: copy it"):
            place_of(content, old)
        with pytest.raises(ArtifactLimit, match="too many lines to compare"):
            difference(content, "x", names=("a", "b"))
    finally:
        CALL_DEADLINE.reset(token)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("a\nb\nc", "a\nb\nc", []),
        ("a\na", "a\na\na", ["@@ -1,2 +1,3 @@", " a", " a", "+a"]),
        ("a\nb\nc", "a\nX\nc", ["@@ -1,3 +1,3 @@", " a", "-b", "+X", " c"]),
        ("a\nb", "b", ["@@ -1,2 +1,1 @@", "-a", " b"]),
        ("", "a", ["@@ -1,0 +1,1 @@", "+a"]),
        ("a\nb\nc\nd", "a\nB\nC\nd", ["@@ -1,4 +1,4 @@", " a", "-b", "-c", "+B", "+C", " d"]),
        ("a", "a\n", ["Only the ends of lines differ."]),
    ],
)
def test_the_difference_of_two_texts_is_a_unified_diff(old: str, new: str, shown: list[str]) -> None:
    expected = ["--- old", "+++ new", *shown] if shown else []
    assert difference(old, new, names=("old", "new")).splitlines() == expected


def test_a_long_difference_is_cut_and_says_so() -> None:
    old, new = "\n".join("abcdefgh"), "\n".join("ABCDEFGH")
    assert difference(old, new, names=("o", "n"), lines=17).count("\n") == 18
    assert difference(old, new, names=("o", "n"), lines=16).splitlines()[-1] == "... 1 more line"
