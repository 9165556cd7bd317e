"""The JSON text of values that every call writes, with and without the C encoder."""

from __future__ import annotations

import json
import json.encoder
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vocabulary.strategies import json_values, unhurried
from toolwire.vocabulary.exact import PIECE, dumper, exact, exact_pieces

VALUES: tuple[Any, ...] = (
    None,
    True,
    -17,
    1.5,
    1e300,
    "",
    'a "quoted" \\ line\n',
    "\u4e2d\u2028\x00",
    [],
    {},
    [1, [2, {"a": [None]}]],
    {"b": 1, "a": {"d": 2, "c": 3}},
)


def refused(value: Any) -> Any:
    raise LookupError(type(value).__name__)


@pytest.fixture(params=["C", "Python"], autouse=True)
def encoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "Python":
        monkeypatch.setattr(json.encoder, "c_make_encoder", None)


@pytest.mark.parametrize("sort_keys", [False, True])
def test_it_is_what_json_writes_without_spaces(sort_keys: bool) -> None:
    dump = dumper(refused, sort_keys=sort_keys)
    for value in VALUES:
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
        assert dump(value) == plain


def test_numbers_that_json_lacks_are_refused_unless_they_are_wanted() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumper(refused)(float("nan"))
    assert dumper(refused, allow_nan=True)([float("inf")]) == "[Infinity]"


def test_a_value_without_a_json_type_goes_to_the_refusing_callback() -> None:
    with pytest.raises(LookupError, match="set"):
        dumper(refused)({"a": {1}})


def test_a_value_that_holds_itself_ends() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        dumper(refused)(endless)


@pytest.mark.parametrize("piece", [8, 16, 100, PIECE])
@given(value=json_values)
@unhurried
def test_the_pieces_of_a_text_are_the_text(piece: int, value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolwire.vocabulary.exact.PIECE", piece)
        assert "".join(exact_pieces(value)) == exact(value)


SMALL_PIECE = PIECE // 32
LARGE = SMALL_PIECE * 10
ITEMS = st.sampled_from(["x" * LARGE, 'ö\ud800"\\' * LARGE, [1] * LARGE, {str(n): {"a": None} for n in range(LARGE)}])


@given(value=ITEMS | st.tuples(ITEMS, ITEMS).map(list) | ITEMS.map(lambda item: {"b": 1, "a": [item], "c" * LARGE: 2}))
@settings(deadline=None, max_examples=12)
def test_no_piece_of_a_large_value_is_large(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolwire.vocabulary.exact.PIECE", SMALL_PIECE)
        pieces = list(exact_pieces(value))
    assert "".join(pieces) == exact(value)
    assert max(map(len, pieces)) <= 2 * SMALL_PIECE
    # Small values are encoded together.
    assert len(pieces) <= 8 * len(exact(value)) / SMALL_PIECE + 40
