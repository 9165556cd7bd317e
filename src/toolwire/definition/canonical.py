"""The canonical form of a call's arguments: the one that rules, people, digests, memory and the cache go by.

The rule: the canonical form, validated again, gives the same values. So no two values share a form. It holds for
parameters of JSON types without a doubt (`Form.is_certain`); all others are read again each time. Arguments for which
it does not hold are unrepresentable: nothing runs by a rule, a memory or a cache for them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

from toolwire.definition.inverse import read_again, secrets_of, shown
from toolwire.definition.same import same
from toolwire.definition.shape import Invalid, Validated
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import plain

PROCESS_KEY = os.urandom(32)
"""Hashes the secrets of calls that no store keeps: nothing that has these hashes outlives the process."""

_SCALARS = frozenset({str, bool, type(None)})


def canonical(validated: Validated, key: bytes = PROCESS_KEY) -> dict[str, Any]:
    """The visible arguments in JSON types: what rules and people judge, and what validates to the same values again.

    Secrets are stars and a hash that is made with the key. A default that JSON cannot hold, a sentinel say, is left
    out: validating fills it in again.

    Raises:
        Unrepresentable: a value that was given and that JSON cannot hold, or that would be another one when its JSON
            form is validated.
    """
    form = validated.form
    found: dict[str, Any] = {}
    again: dict[str, Any] = {}
    uncertain: list[str] = []
    for name, value in validated.values.items():
        if form.is_certain(name):
            found[name] = again[name] = value if type(value) in _SCALARS else plain(value)
            continue
        is_default = form.is_default(name, value)
        try:
            found[name] = shown(value, key)
            if not is_default:
                again[name] = read_again(value)
        except Unrepresentable as error:
            if not is_default:
                raise Unrepresentable(error.what, path=f".{name}{error.path}") from error
        uncertain.append(name)
    if uncertain:
        _check(validated, again, uncertain)
    return found


def unmasked(arguments: Mapping[str, Any], validated: Validated, key: bytes = PROCESS_KEY) -> dict[str, Any]:
    """Arguments that were made from the canonical form of `validated`, with the secrets instead of their stars.

    Raises:
        Unrepresentable: as `canonical`.
    """
    form = validated.form
    secrets: dict[str, Any] = {}
    for name, value in validated.values.items():
        if not form.is_certain(name):
            secrets |= secrets_of(value, key)
    return {name: _unmasked(value, secrets) for name, value in arguments.items()} if secrets else dict(arguments)


def _unmasked(value: Any, secrets: Mapping[str, Any]) -> Any:
    if type(value) is str:
        return secrets.get(value, value)
    if isinstance(value, Mapping):
        return {key: _unmasked(item, secrets) for key, item in cast("Mapping[Any, Any]", value).items()}
    return [_unmasked(item, secrets) for item in cast("list[Any]", value)] if type(value) is list else value


def _check(validated: Validated, again: dict[str, Any], uncertain: list[str]) -> None:
    try:
        read = validated.form.read(again)
        different = () if isinstance(read, Invalid) else _different(validated.values, read, uncertain)
    except Exception as error:
        # Validators are the tool's own code.
        what = f"a value that raised {type(error).__name__} when it was read again from JSON"
        raise Unrepresentable(what, path="") from error
    if isinstance(read, Invalid):
        raise Unrepresentable("a value that cannot be read again from JSON", path=f".{read.problems[0].path}")
    if different:
        raise Unrepresentable("a value that is another one when it is read again from JSON", path=f".{different[0]}")


def _different(values: dict[str, Any], read: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    models = getattr(values, "structured", None), getattr(read, "structured", None)
    found = tuple(name for name in names if name not in read or not same(values[name], read[name]))
    return found if same(*models) else (*found, "model")
