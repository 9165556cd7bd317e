"""The one exact text of a value, and its digest."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from tests.vocabulary.strategies import hashables, json_values, unhurried
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import canonical, digest


def shuffled(value: Any, order: random.Random) -> Any:
    """An equal value whose mappings were filled in another order."""
    if isinstance(value, dict):
        keys = order.sample(list(value), len(value))
        return {key: shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


@unhurried
@given(json_values, st.randoms())
def test_equal_values_have_one_text_whatever_the_order_of_keys(value: Any, order: random.Random) -> None:
    again = shuffled(value, order)
    assert (canonical(again), digest(again)) == (canonical(value), digest(value))


@unhurried
@given(st.frozensets(hashables | st.frozensets(st.text(max_size=2)), max_size=5), st.randoms())
def test_equal_sets_have_one_text_whatever_the_order_of_members(value: frozenset[Any], order: random.Random) -> None:
    try:
        text = canonical(value)
    except Unrepresentable:
        return
    assert canonical(frozenset(order.sample(list(value), len(value)))) == text


def test_the_text_is_exact() -> None:
    assert (
        canonical({"b": [1, 2.0, "真"], "a": {"y": None, "x": {2, 1}}}) == '{"a":{"x":[1,2],"y":null},"b":[1,2.0,"真"]}'
    )


def test_the_digest_names_its_hash_and_takes_lone_surrogates() -> None:
    assert digest("") == "sha256:12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
    assert len(digest("\ud800")) == 71


def test_different_values_have_different_texts() -> None:
    values = [1, 1.0, True, "1", None, "null", [1], {"a": 1}, [], {}, "", 0, -0.0, 0.0]
    assert len({canonical(value) for value in values}) == len(values)


def test_an_unrepresentable_value_has_no_text() -> None:
    with pytest.raises(Unrepresentable):
        canonical([object()])


def test_a_set_of_sets_has_one_digest_in_every_process() -> None:
    code = (
        "from toolwire.vocabulary.values import digest, tag; import json\n"
        "value = {frozenset({'a', 'b', 'c'}), frozenset({'d', 'e'}), frozenset()}\n"
        "print(digest(value), json.dumps(tag(value)))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(runs) == 1
