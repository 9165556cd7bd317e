"""What pydantic's own conversions raise is a problem of the argument, and a pattern costs little."""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, FilePath

from tests.processor import seconds
from toolwire import ToolRegistry
from toolwire.definition.arguments.conversions import PATTERN_LIMIT_CHARACTERS, PATTERN_SETS_LIMIT

BRACKETS = "(" * 4_999 + ")" * 4_999
HUGE_SETS = "(?i)" + "[!-\U0010ffff]" * PATTERN_SETS_LIMIT


class Filter(BaseModel):
    pattern: re.Pattern[str]


def failure_of(annotation: Any, value: Any) -> tuple[str, str] | None:
    def take(value: Any) -> str:
        return type(value).__name__

    take.__annotations__["value"] = annotation
    registry = ToolRegistry()
    registry.register(take)
    result = registry.invoke("take", {"value": value})
    return None if result.failure is None else (result.failure.kind, result.text)


@pytest.mark.threat(45)
@pytest.mark.parametrize(
    ("annotation", "honest", "wrong", "reason"),
    [
        (re.Pattern[str], "a+", BRACKETS, "it is nested too deeply"),
        (re.Pattern, "a+", "a{99999999999}", "a number in it is too large"),
        (Filter, {"pattern": "a+"}, {"pattern": BRACKETS}, "it is nested too deeply"),
        (FilePath, __file__, "a" * 5_000, "this system does not take it as a path"),
        (ZoneInfo, "Europe/Paris", "\ud800", "it has a lone surrogate"),
    ],
)
def test_a_failing_conversion_is_a_problem_of_the_argument(
    annotation: Any, honest: Any, wrong: Any, reason: str
) -> None:
    assert failure_of(annotation, honest) is None
    found = failure_of(annotation, wrong)
    assert found is not None
    assert (found[0], reason in found[1]) == ("invalid_arguments", True)


def test_a_pattern_has_at_most_its_limits() -> None:
    assert failure_of(re.Pattern[str], "a" * PATTERN_LIMIT_CHARACTERS) is None
    too_long = failure_of(re.Pattern[str], "a" * (PATTERN_LIMIT_CHARACTERS + 1))
    assert too_long is not None
    assert "a pattern has at most 10,000 characters" in too_long[1]
    assert failure_of(re.Pattern[str], "[ab]" * (PATTERN_SETS_LIMIT + 1)) is None
    too_many = failure_of(re.Pattern[str], "(?si)" + "[ab]" * (PATTERN_SETS_LIMIT + 1))
    assert too_many is not None
    assert "a pattern has at most 100 sets if it ignores case" in too_many[1]


@pytest.mark.threat(46)
def test_the_costliest_pattern_takes_a_second() -> None:
    assert seconds(lambda: failure_of(re.Pattern[str], HUGE_SETS), enough=1.5) <= 1.5
