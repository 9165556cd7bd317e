"""Rules about money, days, moments, durations, members of enumerations and bytes: they decide by value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolwire import Condition, Policy, ToolRegistry, ToolSpec
from toolwire.vocabulary.errors import ConfigurationError


class Price(Enum):
    LOW = Decimal("5.00")
    HIGH = Decimal(500)


class Span(Enum):
    DAY = dt.timedelta(days=1)
    WEEK = dt.timedelta(days=7)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    total: Decimal
    days: list[dt.date] = []


def registry_for(annotation: Any, effect: str, op: str, value: Any, *, path: str = "it") -> ToolRegistry:
    def pay(it: Any) -> str:
        return "ran"

    pay.__annotations__["it"] = annotation
    condition = {"path": f"/arguments/{path}", "op": op, "value": value}
    registry = ToolRegistry(policy=[{"effect": effect, "tool": "pay", "when": [condition]}])
    registry.register(pay, permission="confirm" if effect == "auto" else "auto")
    return registry


def runs(registry: ToolRegistry, value: Any) -> bool:
    result = registry.invoke("pay", {"it": value})
    assert result.success or (result.failure is not None and result.failure.kind in ("denied", "approval_required"))
    return result.success


def is_true(annotation: Any, op: str, rule_value: Any, value: Any, *, path: str = "it") -> bool:
    """Returns the outcome of the condition. A deny rule and an auto rule must agree, so it is decided."""
    is_held = not runs(registry_for(annotation, "deny", op, rule_value, path=path), value)
    is_let = runs(registry_for(annotation, "auto", op, rule_value, path=path), value)
    assert is_held == is_let
    return is_let


UTC = dt.UTC
CASES: list[tuple[Any, str, Any, list[Any], list[Any]]] = [
    (Decimal, ">", 100, ["150", "1e3", 100.01, 101, "100.000001"], ["50", 50, "100", "100.00", "-150", "0.1"]),
    (Decimal, "<=", Decimal("0.1"), ["0.1", 0.1, "0.10"], ["0.1000000000000000001", 0.2]),
    (Decimal, "<=", 0.1, ["0.1", 0.1], ["0.1000000000000000001"]),
    (Decimal, "==", 100, ["100", "100.0", "1E+2", 100], ["100.5"]),
    (Decimal, "==", "100", ["100", "100.0"], ["101"]),
    (Decimal, "in", [1, "2.50", Decimal(3)], ["1.0", "2.5", 3], ["4"]),
    (Decimal | None, ">", 100, ["150"], ["50"]),
    (float, ">", Decimal("0.1"), [0.2], [0.1]),
    (int, "==", Decimal(5), [5], [6]),
    (dt.date, "<", dt.date(2026, 1, 1), ["2025-12-31"], ["2026-01-01", "2027-01-01"]),
    (dt.date, ">=", "2026-01-01", ["2026-01-01", "2027-01-01"], ["2025-12-31"]),
    (dt.date, "==", "2026-01-01", ["2026-01-01"], ["2026-01-02"]),
    (
        dt.datetime,
        "<",
        dt.datetime(2026, 1, 1, tzinfo=UTC),
        ["2026-01-01T00:30:00+01:00"],
        ["2025-12-31T23:30:00-02:00"],
    ),
    (dt.datetime, "==", "2026-01-01T00:00:00Z", ["2026-01-01T01:00:00+01:00"], ["2026-01-01T00:00:00+01:00"]),
    (dt.datetime, ">=", dt.date(2026, 1, 1), ["2026-01-01T00:00:00"], ["2025-12-31T23:59:59"]),
    (dt.time, "<", "12:00", ["11:59"], ["12:00:00"]),
    (dt.timedelta, ">", "PT1H", ["PT2H", "P1D", 7200], ["PT30M", "PT60M"]),
    (dt.timedelta, "==", dt.timedelta(days=1), ["P1D", "PT24H"], ["P2D"]),
    (bytes, "==", b"hi", ["aGk="], ["aGkh"]),
    (bytes, "==", "aGk=", ["aGk="], ["aGkh"]),
    (bytes, "in", [b"hi"], ["aGk="], ["aGkh"]),
    (Price, ">", 100, ["500"], ["5.00"]),
    (Price, "==", Price.LOW, ["5.00", "5"], ["500"]),
    (Span, ">", "P2D", ["P7D"], ["P1D"]),
    (Span, "==", Span.DAY, ["P1D", "PT24H"], ["P7D"]),
    (Colour, "==", Colour.RED, ["red"], ["blue"]),
    (Colour, "in", [Colour.RED], ["red"], ["blue"]),
    (UUID, "==", UUID(int=5), [str(UUID(int=5))], [str(UUID(int=6))]),
    (PurePosixPath, "==", PurePosixPath("a/b"), ["a/b"], ["a/c"]),
    (list[Decimal], "contains", 5, [["1", "5.0"]], [["1"], []]),
    (list[dt.date], "contains", dt.date(2026, 1, 1), [["2026-01-01"]], [["2026-01-02"]]),
    (list[Span], "contains", Span.DAY, [["PT24H"]], [["P7D"]]),
    (Literal["a", "b"], "==", "a", ["a"], ["b"]),
    (str, "<", "2026-01-01", ["2025-12-31"], ["2026-01-01"]),
    (str, "==", "100", ["100"], ["101"]),
]


@pytest.mark.parametrize(("annotation", "op", "rule_value", "yes", "no"), CASES, ids=str)
def test_a_condition_decides_by_value(annotation: Any, op: str, rule_value: Any, yes: list[Any], no: list[Any]) -> None:
    assert [is_true(annotation, op, rule_value, value) for value in yes] == [True] * len(yes)
    assert [is_true(annotation, op, rule_value, value) for value in no] == [False] * len(no)


def test_a_value_inside_a_model_is_compared_by_value() -> None:
    assert is_true(Order, ">", 100, {"total": "150"}, path="it/total")
    assert not is_true(Order, ">", 100, {"total": "50"}, path="it/total")
    order = {"total": "1", "days": ["2026-01-01"]}
    assert is_true(Order, "<", "2026-06-01", order, path="it/days/0")


@pytest.mark.parametrize(
    ("annotation", "op", "rule_value", "value"),
    [
        (dt.datetime, "<", "2026-01-01T00:00:00Z", "2025-01-01T00:00:00"),
        (str, "<", "2026-01-01", "soon"),
        (Decimal | str, ">", 100, "much"),
    ],
)
def test_what_cannot_be_compared_holds_a_call_back_and_lets_none_run(
    annotation: Any, op: str, rule_value: Any, value: Any
) -> None:
    assert not runs(registry_for(annotation, "deny", op, rule_value), value)
    assert not runs(registry_for(annotation, "confirm", op, rule_value), value)
    assert not runs(registry_for(annotation, "auto", op, rule_value), value)


def test_what_is_no_number_is_neither_more_nor_less() -> None:
    for text in ("NaN", "sNaN"):
        assert Condition(path="/arguments/a", op=">", value=1).holds_of(Decimal(text)) is None
        assert Condition(path="/arguments/a", op="==", value=1).holds_of(Decimal(text)) is None


@pytest.mark.parametrize(
    ("annotation", "op", "rule_value", "message"),
    [
        (dt.date, ">", 100, "it > 100 looks at a number, and '/arguments/it' is a date in its schema"),
        (dt.date, "==", "tomorrow", "it == 'tomorrow' looks at a string, and '/arguments/it' is a date in its schema"),
        (
            dt.date,
            "<",
            "2026-01-01T00:00",
            "it < '2026-01-01T00:00' looks at a date and time, and '/arguments/it' is a date in its schema",
        ),
        (dt.timedelta, ">", 3600, "it > 3600 looks at a number, and '/arguments/it' is a duration in its schema"),
        (dt.time, "<", "PT1H", "it < 'PT1H' looks at a duration, and '/arguments/it' is a time in its schema"),
        (bytes, "==", "hi!", "it == 'hi!' looks at a string, and '/arguments/it' is bytes in its schema"),
        (str, ">", 100, "it > 100 looks at a number, and '/arguments/it' is a string in its schema"),
        (
            int,
            "<",
            "2026-01-01",
            "it < '2026-01-01' looks at a date or a date and time, and '/arguments/it' is a number in its schema",
        ),
        (Price, "==", 7, "it == 7 can never hold among '5.00', '500'"),
        (Colour, ">", 7, "it > 7 looks at a number, and '/arguments/it' is a string in its schema"),
    ],
)
def test_a_condition_that_no_value_can_decide_is_an_error_when_it_is_loaded(
    annotation: Any, op: str, rule_value: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        registry_for(annotation, "deny", op, rule_value)
    assert str(caught.value) == f"rule 1: it can never hit 'pay': {message}"


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=4),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
)
def test_decimals_are_compared_exactly(argument: Decimal, limit: Decimal) -> None:
    condition = Condition(path="/arguments/it", op=">", value=limit)
    assert condition.holds({"it": str(argument)}, {"it": argument}) is (argument > limit)


def test_a_rule_shows_its_value_as_a_file_writes_it() -> None:
    conditions = [
        Condition(path="/arguments/it", op="<", value=dt.date(2026, 1, 1)),
        Condition(path="/arguments/it", op="in", value=[Price.LOW, 1]),
        Condition(path="/arguments/it", op="==", value=b"hi"),
    ]
    assert [str(each) for each in conditions] == ["it < '2026-01-01'", "it in ['5.00', 1]", "it == 'aGk='"]


def test_a_policy_with_such_values_has_a_digest() -> None:
    rule = {"effect": "deny", "tool": "pay", "when": [{"path": "/arguments/it", "op": ">", "value": Decimal(100)}]}
    assert Policy([rule]).digest == Policy([rule]).digest


def test_the_explanation_and_the_examples_of_a_rule_compare_by_value_too() -> None:
    def pay(it: Decimal) -> str:
        return "ran"

    condition = {"path": "/arguments/it", "op": ">", "value": 100}
    rule = {
        "effect": "deny",
        "tool": "pay",
        "when": [condition],
        "match": [{"arguments": {"it": "150"}}],
        "not_match": [{"arguments": {"it": "50"}}],
    }
    registry = ToolRegistry(policy=[rule])
    registry.register(pay)
    assert [(each.hits, each.why) for each in registry.explain_call("pay", {"it": "50"}).rules] == [
        (False, "it > 100 does not hold")
    ]


def test_a_tool_known_by_its_schema_keeps_texts() -> None:
    schema = {
        "type": "object",
        "properties": {"it": {"type": ["string", "number"]}, "day": {"type": "string", "format": "date"}},
    }
    spec = ToolSpec.from_jsonschema(name="pay", description="", input_schema=schema, function=lambda **_: "ran")
    condition = {"path": "/arguments/it", "op": ">", "value": 100}
    registry = ToolRegistry(policy=[{"effect": "deny", "tool": "pay", "when": [condition]}])
    registry.register(spec)
    assert runs(registry, 50)
    assert not runs(registry, "50")
