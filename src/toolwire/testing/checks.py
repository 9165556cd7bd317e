"""What all conformance kits share: checks by name, run one by one, and one error that says all that did not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

M = TypeVar("M")


class PortFails(AssertionError):
    """An implementation that does what none may do; the message says all of it, each check by its name."""


def run_checks(checks: Mapping[str, Callable[[M], None]], make: M) -> None:
    """Runs every check.

    Raises:
        PortFails: some of them did not hold, or could not be made.
    """
    failures: list[str] = []
    for name, check in checks.items():
        try:
            check(make)
        except PortFails as failure:
            failures.append(f"{name}: {failure}")
        except Exception as error:  # noqa: BLE001 - what is checked is its owner's code, and may break in any way
            failures.append(f"{name}: it raised {error!r}")
    if failures:
        raise PortFails("\n".join(failures))


def holds(condition: bool, otherwise: str) -> None:
    """Does nothing when it is so.

    Raises:
        PortFails: it is not; `otherwise` says what was seen.
    """
    if not condition:
        raise PortFails(otherwise)
