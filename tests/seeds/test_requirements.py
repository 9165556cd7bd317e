"""The manifest is complete, and the tests and the manifest agree on the proved requirements."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from .manifest import Claim, claims, claims_of, load

SEED_OF_PREFIX = {"attp": "000", "spec": "001", "toolkit": "002", "ptc": "003", "base": "004", "xml": "004"}
LEAST_REQUIREMENTS = 150

REQUIREMENTS = load().requirements
BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}


def test_every_id_is_unique() -> None:
    assert [name for name, count in Counter(requirement.id for requirement in REQUIREMENTS).items() if count > 1] == []


def test_every_id_is_dotted_lower_case_and_begins_with_its_seeds_prefix() -> None:
    shape = re.compile(r"([a-z]+)(\.[a-z][a-z0-9]*(-[a-z0-9]+)*)+")
    wrong = [
        requirement.id
        for requirement in REQUIREMENTS
        if not (match := shape.fullmatch(requirement.id)) or SEED_OF_PREFIX.get(match[1]) != requirement.seed
    ]
    assert wrong == []


def test_there_are_enough_requirements() -> None:
    assert len(REQUIREMENTS) >= LEAST_REQUIREMENTS


def test_every_seed_is_there() -> None:
    assert sorted(load().headings) == ["000", "001", "002", "003", "004"]
    assert {requirement.seed for requirement in REQUIREMENTS} == set(load().headings)


def test_every_heading_of_every_seed_has_a_requirement_and_no_requirement_a_heading_of_its_own() -> None:
    headings = {(seed, heading) for seed, titles in load().headings.items() for heading in titles}
    assert {(requirement.seed, requirement.section) for requirement in REQUIREMENTS} == headings


def test_every_text_is_a_sentence_and_no_two_requirements_say_the_same() -> None:
    texts = [requirement.text for requirement in REQUIREMENTS]
    texts += [requirement.differs for requirement in REQUIREMENTS if requirement.differs is not None]
    assert [text for text in texts if not text.endswith(".") or text.strip() != text] == []
    assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_every_status_is_done_or_open() -> None:
    assert {requirement.status for requirement in REQUIREMENTS} <= {"done", "open"}


def test_as_many_requirements_are_open_as_the_manifest_says() -> None:
    assert sum(requirement.status == "open" for requirement in REQUIREMENTS) == load().open_count


def test_every_done_requirement_is_claimed_by_a_test() -> None:
    done = {requirement.id for requirement in REQUIREMENTS if requirement.status == "done"}
    assert sorted(done - {claim.id for claim in claims()}) == []


def test_every_claim_is_of_a_requirement_that_exists_and_is_done() -> None:
    wrong = [claim for claim in claims() if claim.id not in BY_ID or BY_ID[claim.id].status != "done"]
    assert wrong == []


def test_claims_are_read_from_tests_test_classes_modules_and_parameters() -> None:
    source = """
import pytest
pytestmark = [pytest.mark.requirement("module")]
@pytest.mark.requirement("function", "second")
async def test_function(): ...
class TestClass:
    pytestmark = pytest.mark.requirement("class")
    @pytest.mark.requirement("method")
    def test_method(self): ...
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.requirement("parameter"))])
def test_table(n): ...
TEXT = '@pytest.mark.requirement("text")'
"""
    assert sorted(claim.id for claim in claims_of(source, "test_x.py")) == [
        "class",
        "function",
        "method",
        "module",
        "parameter",
        "second",
    ]


def test_a_claim_knows_its_place() -> None:
    source = '@pytest.mark.requirement("a.b")\ndef test_it(): ...'
    assert list(claims_of(source, "test_x.py")) == [Claim(id="a.b", place="test_x.py:1")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            '@pytest.mark.requirement("a")\ndef helper(): ...',
            "test_x.py:1: this requirement mark is on no test",
            id="not a test",
        ),
        pytest.param(
            "@pytest.mark.requirement(NAME)\ndef test_it(): ...",
            "test_x.py:1: write each id as a string, so that it can be found",
            id="not a literal",
        ),
        pytest.param(
            "@pytest.mark.requirement()\ndef test_it(): ...", "test_x.py:1: give the ids by position", id="no id"
        ),
    ],
)
def test_a_mark_that_proves_nothing_is_refused(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        list(claims_of(source, "test_x.py"))
