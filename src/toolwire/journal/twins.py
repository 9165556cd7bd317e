"""Twins of blocking methods, for callers that run an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def async_twin(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Returns the method that awaits what `method` waits for, in a thread. Its name is that of `method` after an `a`.

    A caller that is cancelled no longer waits; what `method` does goes on to its end.
    """
    name = method.__name__

    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        # By its name, so that the method of a subclass counts.
        return await asyncio.to_thread(getattr(self, name), *args, **kwargs)

    twin.__name__ = f"a{name}"
    twin.__qualname__ = ".".join([*method.__qualname__.split(".")[:-1], twin.__name__])
    twin.__doc__ = f"Works as `{name}`, and waits in a thread: it does not block the event loop."
    twin.__annotations__ = dict(method.__annotations__)
    twin.__module__, twin.__wrapped__ = method.__module__, method  # pyright: ignore[reportFunctionMemberAccess]
    return twin
