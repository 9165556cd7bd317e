"""Running a colourless coroutine without an event loop."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from toolwire.runtime.step import step


class Suspends:
    """A port that waits for an event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def plain(value: int) -> int:
    return value


async def deep(value: int) -> int:
    return await plain(value) + await plain(1)


def test_a_coroutine_that_never_suspends_gives_its_result() -> None:
    assert step(deep(2)) == 3


def test_its_exception_passes() -> None:
    async def fail() -> None:
        await plain(1)
        raise KeyError("x")

    with pytest.raises(KeyError):
        step(fail())


def test_a_port_that_suspends_is_a_fault_of_ours() -> None:
    cleaned = []

    async def wait() -> None:
        try:
            await Suspends()
        finally:
            cleaned.append(True)

    with pytest.raises(AssertionError) as caught:
        step(wait())
    assert str(caught.value) == "a port waited for an event loop in a blocking call"
    assert cleaned == [True]
