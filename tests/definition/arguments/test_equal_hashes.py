"""Values whose hashes were chosen to be equal: sets and mappings of them are refused before they are built."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, RootModel, TypeAdapter

from tests import processor
from toolwire.definition.extended import extend_tool
from toolwire.definition.from_function import from_function
from toolwire.definition.hostile.equal_hashes import COMPARISONS_LIMIT
from toolwire.definition.shape import Invalid, Validated
from toolwire.definition.tool import Tool
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import tag, untag

PERIOD = 2**61 - 1
"""Integers that differ by a multiple of this have one hash."""
MEGABYTE = 1_000_000


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    number: int


@dataclasses.dataclass(frozen=True)
class Voxel:
    x: int
    y: int
    z: int


class Holder(BaseModel):
    numbers: set[int]
    inner: Holder | None = None


class Numbers(RootModel[frozenset[int]]):
    pass


Doubled = Annotated[int, AfterValidator(lambda number: number * PERIOD)]


def multiples(count: int) -> list[int]:
    return [number * PERIOD for number in range(1, count + 1)]


def grouped(make: Callable[[int], Any], size: int) -> Callable[[int], Any]:
    """Lists of `size` members each of which has the hash of the others in its list."""
    return lambda count: [make(size) for _ in range(count // size)]


ATTACKS: dict[str, tuple[Any, Callable[[int], Any], int]] = {
    "set of integers": (set[int], multiples, 45_000),
    "frozenset of integers": (frozenset[int], multiples, 45_000),
    "set without a type": (set, multiples, 45_000),
    "mapping of integers": (dict[int, int], lambda n: {str(m): 0 for m in multiples(n)}, 38_000),
    "mapping of anything but text": (Mapping[float | int, int], lambda n: {str(m): 0 for m in multiples(n)}, 38_000),
    "default dict": (defaultdict[int, list[int]], lambda n: {str(m): [] for m in multiples(n)}, 38_000),
    "mapping of Decimals": (dict[Decimal, int], lambda n: {str(m): 0 for m in multiples(n)}, 38_000),
    "set of Decimals as texts": (set[Decimal], lambda n: [str(m) for m in multiples(n)], 40_000),
    "set of fractions": (set[Fraction], lambda n: [str(m) for m in multiples(n)], 40_000),
    "set of integers as texts": (set[int], lambda n: [str(m) for m in multiples(n)], 40_000),
    "set of UUIDs": (set[UUID], lambda n: [str(UUID(int=m)) for m in multiples(n)], 26_000),
    "set of pairs": (set[tuple[int, int]], lambda n: [[m, 1] for m in multiples(n)], 40_000),
    "set of tuples": (set[tuple[int, ...]], lambda n: [[m] for m in multiples(n)], 42_000),
    "set of sets": (set[frozenset[int]], lambda n: [[m] for m in multiples(n)], 42_000),
    "set of models": (set[Frozen], lambda n: [{"number": m} for m in multiples(n)], 30_000),
    "set of dataclasses": (set[Voxel], lambda n: [{"x": m, "y": 0, "z": 0} for m in multiples(n)], 25_000),
    "set in a model": (Holder, lambda n: {"numbers": multiples(n)}, 45_000),
    "set in a model in itself": (Holder, lambda n: {"numbers": [], "inner": {"numbers": multiples(n)}}, 45_000),
    "root model": (Numbers, multiples, 45_000),
    "union": (str | set[int] | None, multiples, 45_000),
    "numbers that a validator makes": (set[Doubled], lambda n: list(range(n)), 100_000),
    "many small sets": (list[set[int]], grouped(multiples, 100), 45_000),
    "many tiny sets": (list[set[int]], grouped(multiples, 10), 45_000),
    "many small sets of models": (
        list[set[Frozen]],
        grouped(lambda n: [{"number": m} for m in multiples(n)], 20),
        30_000,
    ),
}


def tool_of(annotation: Any) -> Tool:
    def take(values: Any) -> int:
        return 0

    take.__annotations__["values"] = annotation
    return from_function(take)


def seconds(run: Callable[[], object]) -> float:
    started = time.thread_time()
    run()
    return time.thread_time() - started


@pytest.mark.threat(67)
@pytest.mark.parametrize("name", ATTACKS)
def test_a_megabyte_of_equal_hashes_costs_at_most_a_tenth_of_a_second_more(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    annotation, make, count = ATTACKS[name]
    tool, hostile = tool_of(annotation), {"values": make(count)}
    assert len(json.dumps(hostile)) > MEGABYTE // 2
    monkeypatch.setattr(f"{__name__}.PERIOD", 1)
    honest = {"values": make(count)}
    assert isinstance(tool.validate(honest), Validated), "the control: the same with other numbers is a call"
    honest_s = processor.at_rest(lambda: processor.thread_s(lambda: tool.validate(honest)), enough=0, rounds=3)
    assert processor.seconds(lambda: tool.validate(hostile), enough=honest_s + 0.1) <= honest_s + 0.1


@pytest.mark.threat(67)
def test_without_the_budget_the_time_grows_with_the_square_of_the_count() -> None:
    few, more = multiples(1_500), multiples(6_000)
    unbounded = TypeAdapter(set[int]).validate_python
    assert seconds(lambda: unbounded(more)) > 8 * seconds(lambda: unbounded(few))
    assert isinstance(tool_of(set[int]).validate({"values": more}), Invalid)


@pytest.mark.threat(67)
def test_the_fields_of_an_added_model_are_bounded_as_well() -> None:
    def take() -> None: ...

    tool = extend_tool(from_function(take), Holder)
    refused = tool.validate({"numbers": multiples(45_000)})
    assert isinstance(refused, Invalid)
    assert [problem.path for problem in refused.problems] == ["numbers"]
    assert processor.seconds(lambda: tool.validate({"numbers": multiples(45_000)}), enough=0.2) <= 0.2
    assert isinstance(tool.validate({"numbers": list(range(1_000))}), Validated)


@pytest.mark.threat(67)
def test_a_set_of_a_program_is_bounded_as_well() -> None:
    few = {"$t": "set", "v": multiples(20)}
    assert untag(few) == set(multiples(20))
    for hostile in (
        {"$t": "set", "v": multiples(45_000)},
        {"$t": "frozenset", "v": multiples(45_000)},
        {"$t": "dict", "v": [[number, 0] for number in multiples(40_000)]},
        {"$t": "set", "v": [{"$t": "Decimal", "v": str(number)} for number in multiples(20_000)]},
        {"$t": "set", "v": [{"$t": "tuple", "v": [number]} for number in multiples(20_000)]},
        [{"$t": "set", "v": multiples(250)} for _ in range(180)],
    ):
        assert processor.seconds(lambda value=hostile: refused_by_untag(value), enough=0.1) <= 0.1


def refused_by_untag(hostile: Any) -> None:
    with pytest.raises(Unrepresentable):
        untag(hostile)


def test_a_set_of_a_program_may_hold_powers_of_two() -> None:
    powers = {2**exponent for exponent in range(1_900)}
    assert untag(tag(powers)) == powers


def test_the_model_reads_why_and_where() -> None:
    refused = tool_of(dict[str, set[int]]).validate({"values": {"a": [1], "b": multiples(1_100)}})
    assert isinstance(refused, Invalid)
    assert [problem.path for problem in refused.problems] == ["values.b"]
    assert refused.text == (
        "'values.b' must be an array of integer, not [2305843009213693951, 4611686018427387902, 6917529027641081853, "
        "9223372036854...: too many of its members have the same hash, as multiples of 2**61 - 1 have: give fewer."
    )


def test_the_error_in_a_set_of_a_union_is_still_placed() -> None:
    refused = tool_of(int | set[int]).validate({"values": [1, "x"]})
    assert isinstance(refused, Invalid)
    assert [problem.message for problem in refused.problems] == ["'values[1]' must be an integer, not 'x'."]


COUNT_AT_LIMIT = 1_000
"""Integers of one hash whose comparisons are just within the limit: the first one costs nothing."""


def test_the_limit_is_met_at_both_sides() -> None:
    assert sum(range(COUNT_AT_LIMIT)) <= COMPARISONS_LIMIT < sum(range(COUNT_AT_LIMIT + 1))
    tool = tool_of(set[int])
    assert isinstance(tool.validate({"values": multiples(COUNT_AT_LIMIT)}), Validated)
    assert isinstance(tool.validate({"values": multiples(COUNT_AT_LIMIT + 2)}), Invalid)


HONEST: dict[str, tuple[Any, Any, Any]] = {
    "many integers": (set[int], list(range(100_000)), set(range(100_000))),
    "one integer many times": (set[int], [7] * 100_000, {7}),
    "the two integers of one hash": (set[int], [-1, -2] * 50_000, {-1, -2}),
    "powers of two": (set[int], [2**n for n in range(3_000)], {2**n for n in range(3_000)}),
    "powers of two in floats": (set[float], [2.0**n for n in range(-900, 900)], {2.0**n for n in range(-900, 900)}),
    "a mapping": (dict[int, int], {str(n): n for n in range(50_000)}, {n: n for n in range(50_000)}),
    "points of a grid": (
        set[Voxel],
        [{"x": x, "y": y, "z": z} for x in range(-9, 9) for y in range(-9, 9) for z in range(-9, 9)],
        {Voxel(x, y, z) for x in range(-9, 9) for y in range(-9, 9) for z in range(-9, 9)},
    ),
    "sets of a program": (set[int], {1, 2, 3}, {1, 2, 3}),
    "nothing": (frozenset[int], [], frozenset()),
    "text": (set[str], ["a", "b", "a"], {"a", "b"}),
    "sets in sets": (set[frozenset[int]], [[1, 2], [2, 1], [3]], {frozenset({1, 2}), frozenset({3})}),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_sets_are_read_as_before(name: str) -> None:
    annotation, given, wanted = HONEST[name]
    read = tool_of(annotation).validate({"values": given})
    assert isinstance(read, Validated)
    assert read.values == {"values": wanted}
    assert type(read.values["values"]) is type(wanted)


def test_a_validator_that_calls_another_tool_keeps_its_own_count() -> None:
    inner = tool_of(set[int])

    def call_inner(number: int) -> int:
        assert isinstance(inner.validate({"values": multiples(900)}), Validated)
        return number

    outer = tool_of(set[Annotated[int, AfterValidator(call_inner)]])
    assert isinstance(outer.validate({"values": multiples(5)}), Validated)


def test_members_that_cannot_be_in_a_set_are_told_of_as_before() -> None:
    refused = tool_of(set[list[int]]).validate({"values": [[1]]})
    assert isinstance(refused, Invalid)
    assert refused.problems[0].message.endswith("should be hashable.")
