"""Names: one fixed mapping from a tool's name to the name in a program."""

from __future__ import annotations

import itertools
import keyword
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.definition.naming import PROGRAM_OWN_NAMES, program_name, program_parameters
from toolwire.vocabulary.calls import ASYNCIO, CORE_MODULES, MORE_MODULES
from toolwire.vocabulary.errors import DefinitionError


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("search", "search"),
        ("搜索", "搜索"),
        ("get-weather", "get_weather"),
        ("files.read v2", "files_read_v2"),
        ("2fast", "_2fast"),
        ("class", "class_"),
        ("None", "None_"),
        ("print", "print_"),
        ("list", "list_"),
        ("ValueError", "ValueError_"),
        ("json", "json_"),
        ("asyncio", "asyncio_"),
        ("__result__", "__result___"),
        ("open", "open"),
        ("exec", "exec"),
        ("compile", "compile"),
        ("input", "input"),
        ("help", "help"),
        ("vars", "vars"),
        ("-", "_"),
        ("€", "_"),
    ],
)
def test_a_name_has_one_written_form(name: str, written: str) -> None:
    assert program_name(name) == written


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=128))
def test_a_written_name_is_an_identifier_that_hides_nothing(name: str) -> None:
    written = program_name(name)
    assert written.isidentifier()
    assert not keyword.iskeyword(written)
    assert written not in PROGRAM_OWN_NAMES


def test_the_first_modules_of_a_program_are_its_own_names_and_a_tool_may_bear_the_name_of_another() -> None:
    assert {*CORE_MODULES, ASYNCIO} <= PROGRAM_OWN_NAMES
    assert PROGRAM_OWN_NAMES.isdisjoint(MORE_MODULES)
    assert {program_name(name) for name in MORE_MODULES} == set(MORE_MODULES)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "a name is empty: give name='...'"),
        ("a" * 129, "the name 'aaaaaaaaaaaaaaaaaaaa'... has 129 characters: write at most 128"),
        ("a\nb", "the name 'a\\nb' holds a control character: write letters, digits and '_'"),
        ("a\u202eb", "the name 'a\\u202eb' holds a control character: write letters, digits and '_'"),
    ],
)
def test_a_name_that_cannot_be_mapped_is_refused(name: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        program_name(name)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (["a-b", "a_b"], {"a_b": "a_b", "a-b": "a_b_2"}),
        (["a.b", "a-b"], {"a-b": "a_b", "a.b": "a_b_2"}),
        (["a-b", "a_b", "a_b_2"], {"a_b": "a_b", "a_b_2": "a_b_2", "a-b": "a_b_3"}),
        (["class", "class_"], {"class_": "class_", "class": "class__2"}),
        (["\ufb01", "fi"], {"fi": "fi", "\ufb01": "fi_2"}),
    ],
)
def test_parameters_that_look_alike_are_numbered_in_any_order(names: list[str], written: dict[str, str]) -> None:
    assert program_parameters(names) == program_parameters(reversed(names)) == written


@given(st.lists(st.text(st.sampled_from("ab_-.2"), min_size=1, max_size=5), unique=True))
def test_no_two_parameters_are_written_alike(names: list[str]) -> None:
    written = program_parameters(names)
    assert written.keys() == set(names)
    assert len(set(written.values())) == len(names)
    assert all(name.isidentifier() for name in written.values())


def test_five_thousand_parameters_that_look_alike_are_numbered_in_few_steps() -> None:
    names = ["".join(marks) for marks in itertools.islice(itertools.product("-.:/", repeat=7), 5_000)]
    started = time.process_time()
    assert len(set(program_parameters(names).values())) == 5_000
    assert time.process_time() - started < 2
