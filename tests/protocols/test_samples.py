"""Sample arguments: those of a tool's example in a prompt."""

from __future__ import annotations

import datetime
import uuid
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Validated
from toolwire.protocols.samples import sample_arguments


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    name: str
    count: int = 1


def everything(
    path: str,
    city: str,
    other: str,
    count: int,
    at_least: Annotated[int, Field(ge=10)],
    at_most: Annotated[int, Field(ge=0, le=2)],
    share: float,
    colour: Colour,
    mode: Literal["fast", "slow"],
    when: datetime.datetime,
    day: datetime.date,
    key: uuid.UUID,
    names: list[str],
    order: Order,
    maybe: int | None,
    short: Annotated[str, Field(max_length=3)],
    long: Annotated[str, Field(min_length=10)],
    flag: bool,
    left_out: int = 3,
) -> None:
    """Takes much."""


def test_each_kind_of_parameter_gets_a_fitting_value() -> None:
    tool = from_function(everything)
    first, second = sample_arguments(tool)
    assert first == {
        "path": "/data/report.txt",
        "city": "Oslo",
        "other": "first",
        "count": 3,
        "at_least": 10,
        "at_most": 0,
        "share": 3,
        "colour": "red",
        "mode": "fast",
        "when": "2026-03-01T09:00:00",
        "day": "2026-03-01",
        "key": "00000000-0000-4000-8000-000000000001",
        "names": ["Ada"],
        "order": {"name": "Ada"},
        "maybe": 3,
        "short": "fir",
        "long": "firstxxxxx",
        "flag": True,
    }
    assert second != first
    assert isinstance(tool.validate(second), Validated)


def find(query: str, limit: int = 5) -> None:
    """Find.

    Example:
        >>> rows = find("notes", limit=2)
        >>> find(unknown)
        >>> find("a", 1, 2)
    """


def strict(code: Annotated[str, Field(pattern="^[A-Z]{9}$")]) -> None:
    """Takes what nobody guesses."""


@pytest.mark.parametrize(
    ("function", "options", "samples"),
    [
        (find, {}, [{"query": "notes", "limit": 2}, {"query": "quarterly report"}]),
        (
            find,
            {"examples": [{"query": "mine"}, 'find("yours")', "no call", {"wrong": 1}]},
            [{"query": "mine"}, {"query": "yours"}],
        ),
        (strict, {}, []),
        (strict, {"examples": [{"code": "ABCDEFGHI"}]}, [{"code": "ABCDEFGHI"}]),
    ],
)
def test_an_authors_examples_come_first_and_only_what_the_tool_takes_is_shown(
    function: Any, options: dict[str, Any], samples: list[dict[str, Any]]
) -> None:
    assert sample_arguments(from_function(function, **options)) == samples


def test_state_that_is_not_there_yet_hides_nothing() -> None:
    tool = from_function(find)
    tool.bindings.bind("limit", "session.limit")
    assert sample_arguments(tool) == [{"query": "quarterly report"}, {"query": "open questions"}]
