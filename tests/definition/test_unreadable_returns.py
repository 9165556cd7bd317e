"""Return types that no model can read are found at the definition."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Protocol, TypedDict, TypeVar

import numpy as np
import pytest
from pydantic import AnyUrl, BaseModel

from toolwire import ToolRegistry, ToolResponse
from toolwire.definition.unreadable_returns import UnreadableReturn, unreadable_return
from toolwire.vocabulary.blocks import TextBlock
from toolwire.vocabulary.results import ToolResult


class Handle:
    pass


class Base:
    pass


@dataclass
class Leaf(Base):
    a: int


class Abstract(ABC):
    @abstractmethod
    def go(self) -> None: ...


class Shape(Protocol):
    a: int


class Row(TypedDict):
    a: int


class Model(BaseModel):
    a: int


T = TypeVar("T")


@pytest.mark.parametrize(
    ("returns", "found"),
    [
        (Handle, UnreadableReturn("Handle", True)),
        (re.Match[str], UnreadableReturn("Match", True)),
        (Handle | re.Pattern[str], UnreadableReturn("Handle", True)),
        (Future[Handle], UnreadableReturn("Handle", True)),
        (Handle | None, UnreadableReturn("Handle", False)),
        (list[Handle], UnreadableReturn("Handle", False)),
        (dict[str, tuple[Handle, ...]], UnreadableReturn("Handle", False)),
        (Iterator[Handle], UnreadableReturn("Handle", False)),
    ],
)
def test_a_part_that_no_model_can_read_is_named(returns: Any, found: UnreadableReturn) -> None:
    assert unreadable_return(returns) == found


@pytest.mark.parametrize(
    "returns",
    [
        *(None, Any, object, T, int, str, bytes, list, dict[str, int], tuple[int, ...], set[str], Row, Model, Leaf),
        *(Base, Abstract, Shape, range, deque[int], map, np.ndarray, np.int64, Iterator[int], AsyncIterator[str]),
        *(ToolResult, ToolResponse, TextBlock, list[TextBlock], int | None, Future[int], Callable[[], int]),
        *(AnyUrl, IPv4Address, list[IPv4Network], Fraction),
    ],
)
def test_a_type_that_can_be_read_or_says_little_is_not_named(returns: Any) -> None:
    assert unreadable_return(returns) is None


def registry_of(function: Callable[..., Any], **options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(function, **options)
    return registry


def opened() -> Handle:
    """Opens."""
    raise AssertionError("it ran")


def test_registering_an_unreadable_tool_warns(caplog: pytest.LogCaptureFixture) -> None:
    registry_of(opened)
    assert [record.message for record in caplog.records] == [
        "tool 'opened' returns Handle, which no model can read: return text, numbers, lists, dicts or a model of them."
    ]


def test_a_tool_whose_result_would_be_lost_does_not_run() -> None:
    result = registry_of(opened).invoke("opened", {})
    assert result.failure is not None
    assert (result.failure.kind, result.error) == (
        "unavailable",
        "'opened' was not run: it returns Handle, which cannot be shown.",
    )
    assert result.failure.data == {
        "is_started": False,
        "for_owner": "return text, numbers, lists, dicts or a model of them; or give postprocess_func or a middleware.",
    }


def test_a_middleware_may_give_another_result() -> None:
    def find() -> Handle:
        """Finds."""
        return Handle()

    async def as_text(call: Any, call_next: Any) -> ToolResult:
        await call_next(call)
        return ToolResult(True, "found")

    registry = registry_of(find, middleware=[as_text])
    assert asyncio.run(registry.ainvoke("find", {})).data == "found"


def test_a_result_that_may_be_readable_is_made() -> None:
    def find(is_there: bool) -> Handle | None:
        """Finds."""
        return Handle() if is_there else None

    registry = registry_of(find)
    assert registry.invoke("find", {"is_there": False}).text == "null"
    lost = registry.invoke("find", {"is_there": True})
    assert lost.failure is not None
    assert lost.failure.kind == "invalid_result"
    owners = str((lost.failure.data or {})["for_owner"])
    assert re.fullmatch(r"return a value that JSON can hold, not <.*\.Handle object at 0x\w+>\.", owners)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_items_of_a_returned_iterator_are_the_result(is_async: bool) -> None:
    def plain(words: list[str]) -> Any:
        """Shouts."""
        return map(str.upper, words)

    async def later(words: list[str]) -> Any:
        """Shouts."""
        return map(str.upper, words)

    registry = registry_of(later if is_async else plain, name="shout")
    assert registry.invoke("shout", {"words": ["a", "b"]}).data == ["A", "B"]


def test_an_array_is_shown_as_its_numbers() -> None:
    def count() -> np.ndarray[Any, Any]:
        """Counts."""
        return np.arange(3)

    result = registry_of(count).invoke("count", {})
    assert (result.success, result.text, result.structured_content) == (True, "[0, 1, 2]", {"result": [0, 1, 2]})
