"""Old public names: each works for two minor releases, with a warning that names the new one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class ToolwireDeprecationWarning(DeprecationWarning):
    """Code uses an old name of toolwire. The text says what to write instead."""


def deprecated(*, since: str, use: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks an old function or method: each call warns, and names `use`, the code to write instead. So does its `help`.

    `since` is the version that brought `use`. The old name goes two minor releases later.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def warn_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            _warn(function.__name__, since, use, frames=3)
            return function(*args, **kwargs)

        warn_and_call.__doc__ = f"Is deprecated since {since}: use `{use}`."
        return warn_and_call

    return mark


def moved_name(module: str, name: str, *, to: str, since: str) -> object:
    """Returns a name that is now in the module `to`, for the `__getattr__` of the module that had it. Warns."""
    _warn(f"{module}.{name}", since, f"{to}.{name}", frames=4)
    return getattr(import_module(to), name)


def _warn(old: str, since: str, use: str, *, frames: int) -> None:
    """Warns at the line of the user, which is that many frames above the call of `warnings.warn`."""
    text = f"{old} is deprecated since {since}: use {use}"
    warnings.warn(text, ToolwireDeprecationWarning, stacklevel=frames)
