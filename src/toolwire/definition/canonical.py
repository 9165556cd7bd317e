"""The canonical form of a call's arguments. Rules, approvals, digests, remembered rules and the cache use it.

Invariant: validating the canonical form gives the same values again, so no two different values share a form. It is
certain for parameters of JSON types (`Form.is_certain`); the form of all others is validated again each time. Arguments
that violate it are unrepresentable, and no rule, approval or cache applies to them.
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
"""Key for the secrets of calls without a store. Hashes made with it do not outlive the process."""

_SCALARS = frozenset({str, bool, type(None)})


def canonical(validated: Validated, key: bytes = PROCESS_KEY) -> dict[str, Any]:
    """Returns the visible arguments as JSON types, in the form that rules and people judge.

    A secret becomes stars and a hash made with the key. A default that JSON cannot hold, such as a sentinel, is left
    out, because validation fills it in again.

    Raises:
        Unrepresentable: JSON cannot hold a given value, or the value would change when its JSON form is validated.
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
    """Replaces masks with the secrets of `validated`, in arguments that were made from its canonical form.

    Raises:
        Unrepresentable: A value that contains secrets has no JSON form.
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
