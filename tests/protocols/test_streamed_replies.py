"""A native reply has one reading: whole, as objects or mappings, and as a stream in any pieces."""

from __future__ import annotations

from random import Random

import pytest

from tests.protocols.streamed_replies import broken_difference, difference, streamed_reply

NATIVE = ["openai", "openai-responses", "anthropic", "gemini"]
CASES = 300


@pytest.mark.parametrize("name", NATIVE)
def test_however_a_reply_arrives_it_has_one_reading(name: str) -> None:
    found = {seed: difference(streamed_reply(name, seed)) for seed in range(CASES)}
    assert {seed: said for seed, said in found.items() if said} == {}


@pytest.mark.parametrize("name", NATIVE)
def test_wherever_a_stream_breaks_off_nothing_of_it_runs(name: str) -> None:
    random = Random(name)
    found: dict[int, str] = {}
    for seed in range(CASES):
        case = streamed_reply(name, seed)
        found[seed] = broken_difference(case, random.randrange(len(case.pieces)))
    assert {seed: said for seed, said in found.items() if said} == {}


@pytest.mark.parametrize("name", NATIVE)
def test_the_streams_are_read_and_not_only_refused(name: str) -> None:
    plain = [case.is_plain for case in (streamed_reply(name, seed) for seed in range(CASES))]
    assert sum(plain) > CASES / 3
