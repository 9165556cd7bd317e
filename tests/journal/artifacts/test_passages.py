"""The place of an update that stands in other characters, or is a passage within a line."""

from __future__ import annotations

import random
import unicodedata

import pytest

from tests.processor import milliseconds
from toolwire.journal.artifacts.editing import LIKENESS_STEPS, place_of
from toolwire.journal.artifacts.normal_text import NormalText
from toolwire.tools import ArtifactError

LONGEST_MS = 1_000


def found(content: str, old: str) -> str:
    """Returns the text that an update replaces."""
    place = place_of(content, old)
    return content[place.start : place.end]


HARBOUR = (
    "In 1990 the council decided that the harbour should be dredged at once, and paid for it.\nNothing came of it.\n"
)
CHINESE = "一九九〇年，市议会决定港口应该立即疏浚，并为此付了款。后来什么也没有发生，港口仍然很浅。"

SAME: dict[str, tuple[str, str, str]] = {
    "quotes": ("He said “no”, and ‘left’.", "said \"no\", and 'left'", "said “no”, and ‘left’"),
    "quotes the other way": ('He said "no".', "said “no”", 'said "no"'),
    "an apostrophe": ("It’s here", "It's", "It’s"),
    "a dash": ("1990–1995 — a time", "1990-1995 - a", "1990–1995 — a"),
    "a minus": ("x = −1", "x = -1", "x = −1"),
    "a hyphen that does not break": ("a\u2011b", "a-b", "a\u2011b"),
    "a blank that does not break": ("10\u00a0km", "10 km", "10\u00a0km"),
    "wide characters": ("Ｗｉｄｅ（１）", "Wide(1)", "Ｗｉｄｅ（１）"),
    "three dots": ("wait… now", "wait... now", "wait… now"),
    "a ligature": ("the ﬁnd", "the find", "the ﬁnd"),
    "composed letters": ("caf\u00e9 au lait", "cafe\u0301 au", "caf\u00e9 au"),
    "decomposed letters": ("cafe\u0301 au lait", "caf\u00e9", "cafe\u0301"),
    "a Korean syllable": (unicodedata.normalize("NFD", "한국어 글"), "한국어", unicodedata.normalize("NFD", "한국어")),
    "two marks": ("a\u0323\u0302b", "\u1eadb", "a\u0323\u0302b"),
    "blanks at line ends": ("one  \ntwo\t\nthree", "one\ntwo\nthree", "one  \ntwo\t\nthree"),
    "blanks at line ends of old_str": ("one\ntwo\n", "one \ntwo\n", "one\ntwo\n"),
    "CRLF": ("one\r\ntwo\r\nthree", "one\ntwo", "one\r\ntwo"),
    "CRLF of old_str": ("one\ntwo\nthree", "one\r\ntwo", "one\ntwo"),
    "a blank at the end": ("“a” b", '"a" ', "“a” "),
    "a blank at the end of a line": ("“a”\nb", '"a" ', "“a”"),
    "a line end at the start": ("x \n“a”", '\n"a"', " \n“a”"),
    "after such a line": ("x… \ny\n“a”", '"a"', "“a”"),
}


@pytest.mark.parametrize("name", SAME)
def test_a_text_in_other_characters_is_exactly_its_place(name: str) -> None:
    content, old, replaced = SAME[name]
    assert (found(content, old), place_of(content, old).score) == (replaced, 100)
    assert found(f"Before: {content}\nafter\n", old) == replaced


def test_an_exact_place_comes_before_one_in_other_characters() -> None:
    assert place_of('“a” and "a"', '"a"').start == 8


def test_two_places_in_other_characters_are_refused() -> None:
    with pytest.raises(ArtifactError) as refused:
        place_of("“a”\n„a‟", '"a"')
    assert str(refused.value) == (
        "old_str stands more than once apart from quotes, dashes and blanks, in lines 1 and 2: give more of the text "
        "around the place"
    )


PASSAGES: dict[str, tuple[str, str, str]] = {
    "within a line": (
        HARBOUR,
        "decided that the harbor should be dredged",
        "decided that the harbour should be dredged",
    ),
    "nearly a whole line": (
        "The council decided that the harbour should be dredged.\n",
        "council decided that the harbor should be dredged",
        "council decided that the harbour should be dredged",
    ),
    "over a line end": (
        HARBOUR,
        "and payed for it.\nNothing came of it.",
        "and paid for it.\nNothing came of it.",
    ),
    "from the start": (HARBOUR, "In 1990 the concil decided", "In 1990 the council decided"),
    "to the end": (HARBOUR, "Nothing came of  it.\n", "Nothing came of it.\n"),
    "Chinese": (CHINESE, "市议会决定港口应当立即疏浚", "市议会决定港口应该立即疏浚"),
    "Chinese beside another sentence": (CHINESE, "后来什么也没发生，港口仍然很浅", "后来什么也没有发生，港口仍然很浅"),
    "another word at the end": (
        HARBOUR,
        "the harbour should be dredged at ones",
        "the harbour should be dredged at once",
    ),
    "a longer text than the content": ("the harbour is old", "the harbor is old.", "the harbour is old"),
    "other quotes and a typo": (
        "He said “that the harbour is old” to me.",
        '"that the harbor is old"',
        "“that the harbour is old”",
    ),
}


@pytest.mark.parametrize("name", PASSAGES)
def test_the_passage_that_is_most_alike_is_replaced_and_nothing_beside_it(name: str) -> None:
    content, old, replaced = PASSAGES[name]
    assert found(content, old) == replaced
    assert 90 <= place_of(content, old).score < 100


@pytest.mark.parametrize(
    ("content", "old", "why"),
    [
        (HARBOUR, "decided that the station should be closed", "no text is alike enough"),
        (
            f"{HARBOUR}{HARBOUR}",
            "decided that the harbor should be dredged",
            "two places are alike: line 1 (99 of 100) and line 3 (99 of 100)",
        ),
        ("the harbour is old, the harbours is old", "the harbor is old", "two places are alike: line 1"),
        (CHINESE, "火车站决定明天关闭", "no text is alike enough"),
        ("", "a", "no text is alike enough"),
        ("a\n\n\nb", " \n\n", "no text is alike enough"),
    ],
)
def test_a_passage_that_is_not_the_only_one_is_refused(content: str, old: str, why: str) -> None:
    with pytest.raises(ArtifactError) as refused:
        place_of(content, old)
    assert why in str(refused.value)


def test_in_a_large_text_the_lines_that_are_alike_lead_to_the_passage() -> None:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefgh", k=6)) for _ in range(500)]
    lines = [" ".join(chance.choices(words, k=60)) for _ in range(1_000)]
    wanted = lines[500][4:-4]
    assert len("\n".join(lines)) * len(wanted) ** 2 > LIKENESS_STEPS
    old = f"{wanted[:200]}#{wanted[201:]}"
    assert found("\n".join(lines), old).strip() == wanted.strip()


def test_the_search_for_passages_has_a_budget() -> None:
    content = "ab" * 50_000
    length = int((LIKENESS_STEPS / len(content)) ** 0.5)
    old = ("ab" * length)[: length // 2] + "xyz" + ("ab" * length)[: length // 2 - 3]

    def search() -> None:
        with pytest.raises(ArtifactError, match="alike"):
            place_of(content, old)

    assert milliseconds(search, enough=LONGEST_MS) <= LONGEST_MS


@pytest.mark.parametrize("seed", range(20))
def test_each_place_of_a_normal_text_leads_to_the_same_text(seed: int) -> None:
    chance = random.Random(seed)
    given = "".join(chance.choices("ab \t\n\r“”–…ﬁé\u0301\u0323글Ａ\u00a0\u09c7\u09be\u0f73\uff76\uff9e", k=60))
    text = NormalText(given)
    for _ in range(50):
        start, end = sorted(chance.choices(range(len(text.text) + 1), k=2))
        part = NormalText(given[text.original_start(start) : text.original_end(end)]).text
        assert text.text[start:end].rstrip(" \t\r") in part
