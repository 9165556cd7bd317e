"""Checks an author's declaration of a tool's effects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast, get_args

from toolwire.vocabulary.effects import UNDECLARED, Effect, Effects, Idempotency, Label, Reconcile
from toolwire.vocabulary.errors import DefinitionError

EFFECT_OPTIONS = ("effects", "idempotent", "labels", "reconcile")


def declared(
    name: str,
    effects: Iterable[Effect] | None,
    idempotent: Idempotency,
    labels: Iterable[Label] | None,
    reconcile: Reconcile | None,
) -> Effects:
    """Returns the effects that a tool's author declared.

    Raises:
        DefinitionError: A word is unknown, or `reconcile` is not callable.
    """
    if not effects and idempotent == "no" and not labels and reconcile is None:
        return UNDECLARED
    if idempotent not in get_args(Idempotency):
        raise DefinitionError(f"tool {name!r}: idempotent={idempotent!r} is unknown: write 'no', 'key' or 'natural'")
    if reconcile is not None and not callable(cast("object", reconcile)):
        raise DefinitionError(f"tool {name!r}: reconcile={reconcile!r} cannot be called: give a function of the key")
    return Effects(
        kinds=frozenset(_words(name, "effects", effects, get_args(Effect))),
        idempotent=idempotent,
        labels=frozenset(_words(name, "labels", labels, get_args(Label))),
        reconcile=reconcile,
    )


def _words(name: str, option: str, given: Iterable[Any] | None, known: tuple[Any, ...]) -> list[Any]:
    if isinstance(given, str):
        raise DefinitionError(f"tool {name!r}: {option}={given!r} is one text: write {option}=[{given!r}]")
    words = list(given or ())
    for word in words:
        if word not in known:
            raise DefinitionError(f"tool {name!r}: {option} has {word!r}: write any of {', '.join(map(repr, known))}")
    return words
