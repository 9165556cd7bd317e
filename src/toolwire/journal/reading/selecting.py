"""Checks of the arguments that select entries of a store: one for each kind of argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.errors import ConfigurationError

T = TypeVar("T")


def check_choice(place: str, name: str, given: object, choices: Sequence[str]) -> None:
    """Accepts one of these texts, and None.

    Raises:
        ConfigurationError: It is another value, which no entry would match.
    """
    if given is not None and given not in choices:
        raise ConfigurationError(f"{place}({name}={given!r:.80}): write one of {', '.join(choices)}")


def check_flag(place: str, name: str, given: object) -> None:
    """Accepts True, False and None.

    Raises:
        ConfigurationError: It is another value.
    """
    if given is not None and not isinstance(given, bool):
        raise ConfigurationError(f"{place}({name}={given!r:.80}): write True or False, or leave it out")


def check_caller(place: str, given: object) -> None:
    """Accepts a `Caller`, and None.

    Raises:
        ConfigurationError: It is another value.
    """
    if given is None or isinstance(given, Caller):
        return
    name = given if isinstance(given, str) and given else "ann"
    raise ConfigurationError(f"{place}(caller={given!r:.80}): write caller=Caller(principal={name!r:.80})")


def check_type(place: str, given: object, wanted: type[T], form: str) -> None:
    """Accepts an object of the class `wanted`. `form` is the argument as one writes it.

    Raises:
        ConfigurationError: It is another value.
    """
    if not isinstance(given, wanted):
        raise ConfigurationError(f"{place}({given!r:.80}): write {place}({form})")
