"""Suggestions for an unknown name."""

from __future__ import annotations

import random

import pytest

from tests.catalogue.names import MISSPELT, TOOLS, UNRELATED
from tests.processor import milliseconds
from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.definition.naming import NAME_LIMIT
from toolwire.sandbox.child.failures.nearest_name import LONGEST_NAME, WORDS_LIMIT, words_of

TIME_MS = 1_000


def test_the_tables_are_as_large_as_they_claim() -> None:
    assert (len(set(TOOLS)), len(MISSPELT) >= 30, len(set(UNRELATED)) >= 20) == (40, True, True)
    assert set(TOOLS) & {*MISSPELT, *UNRELATED} == set()


def test_misspelt_names_find_theirs() -> None:
    assert {name: nearest(name, TOOLS) for name in MISSPELT} == MISSPELT


@pytest.mark.parametrize("name", UNRELATED)
def test_an_unrelated_name_finds_none(name: str) -> None:
    assert nearest(name, TOOLS) is None


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("search", [], None),
        ("serch", ["search"], "search"),
        ("search", ["get_user", "search_files", "search_web"], "search_web"),
        ("get", ["set"], None),
        ("gti_log", ["git_log"], "git_log"),
        ("nameUser", ["username", "user_name"], "user_name"),
        ("查询天气", ["查询天气预报", "send"], "查询天气预报"),
        ("s" * 129, ["s" * 128], None),
        ("s" * 128, ["s" * 127], "s" * 127),
        # Two common words of three, whatever their length: another word of the same meaning.
        ("calculate_triangle_area", ["compute_circle", "compute_triangle_area"], "compute_triangle_area"),
        ("calculate_circle_area", ["compute_circle_area"], "compute_circle_area"),
        ("git_pull", ["git_push"], None),
        ("delete_user", ["create_user"], None),
    ],
)
def test_the_nearest_is_the_one_with_most_in_common(name: str, names: list[str], expected: str | None) -> None:
    assert nearest(name, names) == expected


def test_the_first_of_equally_near_names_is_taken() -> None:
    assert nearest("list_file", ["list_files", "list_filed"]) == "list_files"
    assert nearest("list_file", ["list_filed", "list_files"]) == "list_filed"


@pytest.mark.parametrize("count", [WORDS_LIMIT, WORDS_LIMIT + 1])
def test_words_count_up_to_the_limit(count: int) -> None:
    assert len(words_of("_".join(["word"] * count))) == WORDS_LIMIT


def test_a_name_may_be_as_long_as_that_of_a_tool() -> None:
    assert LONGEST_NAME == NAME_LIMIT


def test_a_suggestion_is_a_question_or_nothing() -> None:
    assert (suggestion("search"), suggestion(None)) == ("; did you mean 'search'?", "")


def names_of(alphabet: str, length: int, size: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    words = range((size + 1) // (length + 1))
    return ["_".join("".join(chance.choices(alphabet, k=length)) for _ in words) for _ in range(2_000)]


HOSTILE = {
    "words of one letter": names_of("abcdefgh", 1, 127, 1),
    "words of three letters": names_of("abcd", 3, 127, 2),
    "words that begin alike": [name.replace("_", "_a") for name in names_of("bcd", 3, 100, 3)],
    "one word": names_of("ab", 128, 128, 4),
    "honest names": [f"{verb}_{noun}_{number}" for verb in TOOLS for noun in ("x", "user") for number in range(25)],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_nearest_of_two_thousand_names_is_found_in_time(kind: str) -> None:
    *names, wanted = HOSTILE[kind]
    assert milliseconds(lambda: nearest(f"{wanted[:-1]}z", names), enough=TIME_MS) <= TIME_MS
