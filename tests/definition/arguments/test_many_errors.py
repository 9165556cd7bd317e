"""Arguments that are wrong in very many places: the host pays little, and the complaint keeps its form."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic_core import ValidationError
from typing_extensions import TypedDict

from tests import processor
from toolwire import ToolCall, ToolSpec, protocols
from toolwire.definition.arguments import problems, validation
from toolwire.definition.arguments.problems import COMPLAINT_LIMIT_BYTES, COMPLAINT_PROBLEMS_LIMIT
from toolwire.definition.extended import extend_tool
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.hostile import recursive_types
from toolwire.definition.shape import Invalid, Validated
from toolwire.definition.tool import Tool

MEMORY_LIMIT_BYTES = 128 * 1024 * 1024
PROCESSOR_LIMIT_S = 3.0
"""A busy machine takes more processor time for the same work: the long form of the fuzzing holds the bound of 1 s."""
CALL_BYTES = 1_000_000


class Row(TypedDict):
    a: int
    b: int
    c: int


class Branch(TypedDict, total=False):
    left: Branch
    right: Branch
    weight: int


class Held(BaseModel):
    rows: list[int]


@dataclass
class Point:
    x: int
    y: int


class And(BaseModel):
    op: Literal["and"]
    left: And | Or | int


class Or(BaseModel):
    op: Literal["or"]
    left: And | Or | int


class Left(TypedDict):
    op: Literal["left"]
    inner: Left | Right | int


class Right(TypedDict):
    op: Literal["right"]
    inner: Left | Right | int


@dataclass
class Attack:
    annotation: Any
    make: Callable[[int, Any], Any]
    """A value of so many members, each of which is the given one."""
    count: int
    wrong: Any
    right: Any


def listed(count: int, member: Any) -> list[Any]:
    return [member] * count


def named(count: int, member: Any) -> dict[str, Any]:
    return {str(number): member for number in range(count)}


def numbered(count: int, member: Any) -> list[Any]:
    """Members that differ, for a set."""
    return [f"{member}{number}" for number in range(count)]


def forked(levels: int, leaf: Any) -> Any:
    return {"left": forked(levels - 1, leaf), "right": forked(levels - 1, leaf)} if levels else {"weight": leaf}


def nested(levels: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(levels):
        value = {"op": "or", "left": value}
    return value


def inward(levels: int, leaf: Any) -> Any:
    value = leaf
    for _ in range(levels):
        value = {"op": "right", "inner": value}
    return value


Many = int | float | bool | None | list[int] | dict[str, int]
LISTS: dict[str, Attack] = {
    "list": Attack(list[int], listed, 240_000, [], 1),
    "list of lists": Attack(list[list[int]], lambda n, x: [[x] * 10] * (n // 10), 220_000, [], 1),
    "one list in a list": Attack(list[list[int]], lambda n, x: [[x] * n], 240_000, [], 1),
    "tuple": Attack(tuple[int, ...], listed, 240_000, [], 1),
    "list of pairs": Attack(list[tuple[int, int]], listed, 160_000, [], [1, 2]),
    "sequence": Attack(Sequence[int], listed, 240_000, [], 1),
    "deque": Attack(deque[int], listed, 240_000, [], 1),
    "set": Attack(set[int], numbered, 90_000, "x", "1"),
    "frozenset": Attack(frozenset[int], numbered, 90_000, "x", "1"),
    "mapping": Attack(dict[str, int], named, 75_000, [], 1),
    "mapping of lists": Attack(dict[str, list[int]], named, 75_000, [[]], [1]),
    "mapping of any kind": Attack(Mapping[str, int], named, 75_000, [], 1),
    "ordered mapping": Attack(OrderedDict[str, int], named, 75_000, [], 1),
    "counter": Attack(Counter[str], named, 75_000, [], 1),
    "keys": Attack(dict[int, int], lambda n, x: {f"{x}{i}": 1 for i in range(n)}, 70_000, "x", "1"),
    "union": Attack(list[Many], listed, 240_000, "x", 1),
    "TypedDicts": Attack(list[Row], listed, 90_000, {"a": 1}, {"a": 1, "b": 1, "c": 1}),
    "union of TypedDicts": Attack(list[Row | Held], listed, 140_000, {}, {"rows": [1]}),
    "dataclasses": Attack(list[Point], listed, 60_000, {"x": "y"}, {"x": 1, "y": 2}),
    "list in a model": Attack(Held, lambda n, x: {"rows": [x] * n}, 240_000, [], 1),
    "list in models": Attack(list[Held], lambda n, x: [{"rows": [x] * 5}] * (n // 5), 160_000, [], 1),
}


def tool_of(annotation: Any) -> Tool:
    def take(values: Any) -> int:
        return 0

    take.__annotations__["values"] = annotation
    return from_function(take)


def cost(work: Callable[[], object]) -> tuple[float, int]:
    """Processor seconds, and bytes by which the work raised the most memory that the process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.thread_time()
    work()
    seconds = time.thread_time() - started
    if seconds >= PROCESSOR_LIMIT_S:
        # Work beside this test may have slowed it.
        seconds = processor.seconds(work, enough=PROCESSOR_LIMIT_S)
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024


def assert_bounded(complaint: Invalid) -> None:
    assert 0 < len(complaint.problems) <= COMPLAINT_PROBLEMS_LIMIT
    assert len(complaint.text.encode()) <= COMPLAINT_LIMIT_BYTES


@pytest.mark.threat(68)
@pytest.mark.parametrize("name", LISTS)
def test_a_megabyte_of_wrong_values_makes_few_errors(name: str) -> None:
    attack = LISTS[name]
    tool = tool_of(attack.annotation)
    hostile = {"values": attack.make(attack.count, attack.wrong)}
    assert CALL_BYTES * 0.5 < len(json.dumps(hostile)) < CALL_BYTES * 1.3
    found: list[Any] = []
    seconds, grown = cost(lambda: found.append(tool.validate(hostile)))
    assert isinstance(found[0], Invalid)
    assert_bounded(found[0])
    assert found[0].is_partial
    assert grown < MEMORY_LIMIT_BYTES
    assert seconds < PROCESSOR_LIMIT_S
    honest = {"values": attack.make(attack.count, attack.right)}
    assert isinstance(tool.validate(honest), Validated), "the control: the same with right members is a call"


@pytest.mark.threat(68)
@pytest.mark.parametrize("name", LISTS)
def test_without_the_early_end_each_member_makes_an_error(name: str) -> None:
    attack = LISTS[name]
    with pytest.raises(ValidationError) as found:
        TypeAdapter(attack.annotation).validate_python(attack.make(5_000, attack.wrong))
    assert found.value.error_count() >= 1_000


@pytest.mark.threat(68)
def test_a_call_with_250_000_wrong_items_stays_under_the_bound_in_a_process_of_its_own() -> None:
    code = """
import resource, sys, time
from toolwire import ToolRegistry
registry = ToolRegistry()
@registry.register
def total(values: list[int]) -> int:
    '''Adds.'''
    return sum(values)
assert registry.invoke("total", {"values": [1]}).success
assert not registry.invoke("total", {"values": ["x"]}).success
wrong = {"values": [[]] * 250_000}
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
text = registry.invoke("total", wrong).text
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown * 1024, time.process_time() - started, len(text))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown, seconds, size = map(float, done.stdout.split())
    assert grown < 32 * 1024 * 1024
    assert seconds < PROCESSOR_LIMIT_S
    assert size < COMPLAINT_LIMIT_BYTES


def test_small_arguments_are_told_everything_that_is_wrong() -> None:
    tool = tool_of(list[int])
    values = [[]] * (validation.SMALL_VALUES - 1)
    told = tool.validate({"values": values})
    assert isinstance(told, Invalid)
    assert len(told.problems) == COMPLAINT_PROBLEMS_LIMIT
    assert (told.more, told.is_partial) == (len(values) - COMPLAINT_PROBLEMS_LIMIT, False)


def test_large_arguments_are_told_the_first_problem_of_each_list_and_that_others_may_follow() -> None:
    def take(first: list[int], second: dict[str, int], third: int) -> None: ...

    size = validation.SMALL_VALUES
    told = from_function(take).validate({"first": [1, "a", "b"], "second": {"x": "y", "z": []}, "third": "c"})
    assert isinstance(told, Invalid)
    assert [problem.path for problem in told.problems] == ["first[1]", "first[2]", "second.x", "second.z", "third"]
    many = from_function(take).validate({"first": [1, "a", *["b"] * size], "second": {"x": "y", "z": []}, "third": "c"})
    assert isinstance(many, Invalid)
    assert [problem.path for problem in many.problems] == ["first[1]", "second.x", "third"]
    assert many.lines[-1] == "There may be others: the check ended early."


@pytest.mark.threat(68)
def test_fields_of_an_added_model_are_checked_up_to_their_first_error() -> None:
    def take() -> None: ...

    tool = extend_tool(from_function(take), Held)
    told = tool.validate({"rows": [[]] * 240_000})
    assert isinstance(told, Invalid)
    assert [problem.path for problem in told.problems] == ["rows[0]"]
    assert told.is_partial
    few = tool.validate({"rows": [[]] * 20})
    assert isinstance(few, Invalid)
    assert (len(few.problems), few.more, few.is_partial) == (10, 10, False)


@pytest.mark.threat(68)
@pytest.mark.parametrize(
    ("items", "wrong", "right"),
    [
        ({"type": "integer"}, [], 1),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", 1),
        ({"type": "object", "required": ["a", "b"], "additionalProperties": False}, {"c": 1}, None),
    ],
)
def test_a_schema_tool_pays_as_little_for_a_megabyte_of_wrong_items(items: Any, wrong: Any, right: Any) -> None:
    schema = {"type": "object", "properties": {"values": {"type": "array", "items": items}}}
    tool = from_schema("take", "", schema, None, lambda **_: None)
    found: list[Any] = []
    seconds, grown = cost(
        lambda: found.append(tool.validate({"values": [wrong] * (CALL_BYTES // (1 + len(json.dumps(wrong))))}))
    )
    assert isinstance(found[0], Invalid)
    assert_bounded(found[0])
    assert grown < MEMORY_LIMIT_BYTES
    assert seconds < PROCESSOR_LIMIT_S
    if right is not None:
        assert isinstance(tool.validate({"values": [right] * 1_000}), Validated)


@pytest.mark.threat(68)
@pytest.mark.parametrize(
    ("annotation", "hostile", "honest"),
    [
        (And | Or | int, nested(60, "x"), nested(6, 1)),
        (And | Or | int, nested(60, 1), nested(10, 1)),
        (And | Or, nested(40, "x"), {"op": "or", "left": 1}),
        (list[And | Or | int], [nested(60, 1)], [nested(6, 1), 2]),
        (Left | Right | int, inward(60, "x"), inward(6, 1)),
        (Branch, forked(15, "x"), forked(10, 1)),
        (dict[str, Branch], {"a": forked(15, "x")}, {"a": forked(10, 1)}),
    ],
)
def test_a_type_that_holds_itself_takes_a_bounded_number_of_steps(annotation: Any, hostile: Any, honest: Any) -> None:
    tool = tool_of(annotation)
    assert isinstance(tool.validate({"values": honest}), Validated)
    found: list[Any] = []
    seconds, grown = cost(lambda: found.append(tool.validate({"values": hostile})))
    assert isinstance(found[0], Invalid)
    assert found[0].text == "The arguments take too many steps to check: give fewer levels or fewer values in one call."
    assert grown < MEMORY_LIMIT_BYTES
    assert seconds < PROCESSOR_LIMIT_S


@pytest.mark.threat(68)
def test_without_the_budget_each_level_doubles_the_steps() -> None:
    validate = TypeAdapter(And | Or | int).validate_python
    errors: list[int] = []
    for levels in (6, 10):
        with pytest.raises(ValidationError) as found:
            validate(nested(levels, "x"))
        errors.append(found.value.error_count())
    assert errors[1] > 12 * errors[0]


@pytest.mark.threat(68)
def test_the_budget_of_steps_is_one_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tool_of(Branch)
    steps = 2**6 - 2  # The first value is outside of the recursive definition.
    monkeypatch.setattr(recursive_types, "STEPS_LIMIT", steps)
    for _ in range(3):
        assert isinstance(tool.validate({"values": forked(5, 1)}), Validated)
    monkeypatch.setattr(recursive_types, "STEPS_LIMIT", steps - 1)
    refused = tool.validate({"values": forked(5, 1)})
    assert isinstance(refused, Invalid)


@pytest.mark.threat(68)
def test_more_errors_than_can_be_made_readable_are_told_by_their_number() -> None:
    class Strict(BaseModel, extra="forbid"):
        a: int = 0

    tool = tool_of(Strict)
    told = tool.validate({"values": {f"k{number}": 1 for number in range(validation.ERRORS_LIMIT + 1)}})
    assert isinstance(told, Invalid)
    assert told.text == "The arguments are wrong in 50,001 places: give less in one call."
    fewer = tool.validate({"values": {f"k{number}": 1 for number in range(validation.ERRORS_LIMIT)}})
    assert isinstance(fewer, Invalid)
    assert (len(fewer.problems), fewer.more) == (10, validation.ERRORS_LIMIT - 10)


def test_a_type_that_holds_itself_is_read_as_pydantic_reads_it() -> None:
    cases: list[Any] = [
        (And | Or | int, nested(4, 3)),
        (list[And | Or | int], [nested(2, 3), 4]),
        (Left | Right | int, inward(4, 3)),
        (Branch, forked(3, 1)),
    ]
    for annotation, value in cases:
        found = tool_of(annotation).validate({"values": value})
        assert isinstance(found, Validated)
        assert found.values == {"values": TypeAdapter(annotation).validate_python(value)}


@pytest.mark.threat(68)
def test_one_wrong_value_with_thousands_of_reasons_is_read_a_thousand_times(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = 11
    ladder: dict[str, Any] = {f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    schema = {
        "type": "object",
        "properties": {"values": {"$ref": "#/$defs/l0"}},
        "$defs": {**ladder, f"l{levels}": {"type": "string"}},
    }
    tool = from_schema("take", "", schema, None, lambda **_: None)
    told = tool.validate({"values": 1})
    assert isinstance(told, Invalid)
    assert told.lines == (
        "'values' must be a string, not 1.",
        "There may be others: the check ended early.",
    )
    assert isinstance(tool.validate({"values": "x"}), Validated)
    monkeypatch.setattr(problems, "READ_LIMIT", 2**levels)
    whole = tool.validate({"values": 1})
    assert isinstance(whole, Invalid)
    assert not whole.is_partial


@pytest.mark.threat(68)
def test_a_ladder_of_references_is_followed_a_bounded_number_of_times_by_xml() -> None:
    defs: dict[str, Any] = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 30} for n in range(30)}
    properties = {"value": {"$ref": "#/$defs/l0"}, "plain": {"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]}}
    schema = {
        "type": "object",
        "properties": properties,
        "$defs": {**defs, "l30": {"type": "string"}, "number": {"type": "integer"}},
    }
    xml, tool = protocols.get("xml"), ToolSpec.from_jsonschema(name="take", description="Takes.", input_schema=schema)
    reply = xml.render([ToolCall("take", {"value": "x", "plain": 1})])
    assert processor.seconds(lambda: xml.parse(reply, [tool]), enough=PROCESSOR_LIMIT_S) <= PROCESSOR_LIMIT_S
    (call,) = xml.parse(reply, [tool]).calls
    assert call.arguments == {"value": "x", "plain": 1}
