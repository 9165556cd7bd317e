"""Constants that both sides need are written twice, since the child cannot import the package. Here it is compared."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sandbox.channel.test_channel import VALUES
from toolwire.sandbox import source_checks, wire
from toolwire.sandbox.child import values
from toolwire.sandbox.child import wire as child_wire
from toolwire.sandbox.child.world import exceptions, imports, source
from toolwire.sandbox.program import AnswerFamily
from toolwire.vocabulary import values as host_values
from toolwire.vocabulary.calls import CORE_MODULES, MORE_MODULES, PROGRAM_MODULES
from toolwire.vocabulary.errors import Unrepresentable


def test_the_wire_is_the_same() -> None:
    for name in ("HEADER_BYTES", "RAW_FROM", "RAW"):
        assert getattr(wire, name) == getattr(child_wire, name)


def test_the_codec_has_the_same_constants() -> None:
    assert (values.TAG, values.DEPTH_LIMIT) == (host_values.TAG, host_values.DEPTH_LIMIT)


def test_every_family_of_errors_has_its_class() -> None:
    assert {"tool", *exceptions.FAMILIES} == set(get_args(AnswerFamily))


def test_host_and_child_list_the_same_modules() -> None:
    assert (imports.CORE_MODULES, imports.MORE_MODULES) == (CORE_MODULES, MORE_MODULES)
    assert imports.MODULES == PROGRAM_MODULES
    assert imports.PARTS == source_checks.PARTS


def test_the_program_has_one_file_name() -> None:
    (refusal,) = source_checks.check_source(source_checks.Program(source="open"))
    assert refusal.text("open").splitlines()[0] == f'  File "{source.FILENAME}", line 1'


@given(VALUES)
def test_both_codecs_write_the_same_tags(value: Any) -> None:
    assert repr(values.tag(value)) == repr(host_values.tag(value))


@given(VALUES)
def test_each_codec_reads_the_others_tags(value: Any) -> None:
    assert repr(values.untag(host_values.tag(value))) == repr(host_values.untag(values.tag(value)))


@pytest.mark.parametrize("depth", [63, 64, 65, 5000])
def test_both_codecs_end_at_the_same_depth(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    outcomes = []
    for tag, refusal in ((values.tag, values.NotData), (host_values.tag, Unrepresentable)):
        try:
            tag(value)
        except refusal:
            outcomes.append("refused")
        else:
            outcomes.append("taken")
    assert outcomes[0] == outcomes[1]


@given(st.integers(4190, 4310))
def test_both_codecs_end_at_the_same_number_of_digits(digits: int) -> None:
    outcomes = []
    for tag, refusal in ((values.tag, values.NotData), (host_values.tag, Unrepresentable)):
        try:
            tag([10**digits])
        except refusal:
            outcomes.append("refused")
        else:
            outcomes.append("taken")
    assert outcomes[0] == outcomes[1]
