"""A damaged native reply runs no call that was not written, and loses none without a word."""

from __future__ import annotations

import pytest

from tests.protocols.native_damages import lost
from tests.protocols.test_streamed_replies import NATIVE

CASES = 300


@pytest.mark.parametrize("name", NATIVE)
def test_a_damaged_reply_runs_nothing_else_and_loses_nothing_without_a_word(name: str) -> None:
    found = {seed: lost(name, seed) for seed in range(CASES)}
    assert {seed: said for seed, said in found.items() if said} == {}
