"""The base of all conformance kits: named checks, and one error that lists all failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

M = TypeVar("M")


class PortFails(AssertionError):
    """An implementation failed its checks. The message lists every failure with the name of its check."""


def run_checks(checks: Mapping[str, Callable[[M], None]], make: M) -> None:
    """Runs every check.

    Raises:
        PortFails: At least one check failed or raised an exception.
    """
    failures: list[str] = []
    for name, check in checks.items():
        try:
            check(make)
        except PortFails as failure:
            failures.append(f"{name}: {failure}")
        except Exception as error:  # noqa: BLE001 - the code under test may raise anything
            failures.append(f"{name}: it raised {error!r}")
    if failures:
        raise PortFails("\n".join(failures))


def holds(condition: bool, otherwise: str) -> None:
    """Asserts a condition.

    Raises:
        PortFails: The condition is false; `otherwise` is the message.
    """
    if not condition:
        raise PortFails(otherwise)
