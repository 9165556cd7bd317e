"""The canonical form of a call's arguments. Rules, approvals, digests, remembered rules and the cache use it.

Invariant: validating the canonical form gives the same values again, so no two different values share a form. It is
certain for parameters of JSON types (`Form.is_certain`); the form of all others is validated again each time. Arguments
that violate it are unrepresentable, and no rule, approval or cache applies to them.

The *shown* form of a value has every default filled in and masks for secrets. The *read again* form has the secrets and
no defaults, because a default need not fit its own type.
"""

from __future__ import annotations

import dataclasses
import hmac
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, cast

from toolwire.definition.arguments.same import same
from toolwire.definition.shape import Invalid, Validated
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import DEPTH_LIMIT, plain_value
from toolwire.vocabulary.values import canonical as canonical_text

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
            found[name] = again[name] = value if type(value) in _SCALARS else plain_value(value)
            continue
        is_default = form.is_default(name, value)
        try:
            found[name] = json_with_masks(value, key)
            if not is_default:
                again[name] = read_again(value)
        except Unrepresentable as error:
            if not is_default:
                raise Unrepresentable(error.what, path=f".{name}{error.path}") from error
        uncertain.append(name)
    if uncertain:
        _check_round_trip(validated, again, uncertain)
    return found


def arguments_with_types(validated: Validated, key: bytes = PROCESS_KEY) -> dict[str, Any] | None:
    """Returns the arguments in the shape of `canonical`, with Decimals, dates, times, durations and bytes as such.

    A member of an enumeration is its value. None if all parameters are of JSON types.

    Raises:
        Unrepresentable: As in `canonical`. A default that JSON cannot hold is left out.
    """
    form = validated.form
    if all(map(form.is_certain, validated.values)):
        return None
    found: dict[str, Any] = {}
    for name, value in validated.values.items():
        try:
            opened = _Form(secret=lambda secret: mask(secret, key), has_defaults=True, has_types=True)
            found[name] = _value_with_types(_to_data(value, DEPTH_LIMIT, opened))
        except Unrepresentable:
            if not form.is_default(name, value):
                raise
    return found


def _value_with_types(opened: Any) -> Any:
    if isinstance(opened, Decimal | date | time | timedelta | bytes):
        return opened
    if isinstance(opened, Mapping):
        items = cast("Mapping[Any, Any]", opened).items()
        return {next(iter(plain_value({key: None}))): _value_with_types(item) for key, item in items}
    return list(map(_value_with_types, cast("list[Any]", opened))) if isinstance(opened, list) else plain_value(opened)


def unmask(arguments: Mapping[str, Any], validated: Validated, key: bytes = PROCESS_KEY) -> dict[str, Any]:
    """Replaces masks with the secrets of `validated`, in arguments that were made from its canonical form.

    Raises:
        Unrepresentable: A value that contains secrets has no JSON form.
    """
    form = validated.form
    secrets: dict[str, Any] = {}
    for name, value in validated.values.items():
        if not form.is_certain(name):
            secrets |= secrets_of(value, key)
    return {name: _unmask_value(value, secrets) for name, value in arguments.items()} if secrets else dict(arguments)


def _unmask_value(value: Any, secrets: Mapping[str, Any]) -> Any:
    if type(value) is str:
        return secrets.get(value, value)
    if isinstance(value, Mapping):
        return {key: _unmask_value(item, secrets) for key, item in cast("Mapping[Any, Any]", value).items()}
    return [_unmask_value(item, secrets) for item in cast("list[Any]", value)] if type(value) is list else value


def _check_round_trip(validated: Validated, again: dict[str, Any], uncertain: list[str]) -> None:
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
        raise Unrepresentable("a value that changes when it is read again from JSON", path=f".{different[0]}")


def _different(values: dict[str, Any], read: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    models = getattr(values, "structured", None), getattr(read, "structured", None)
    found = tuple(name for name in names if name not in read or not same(values[name], read[name]))
    return found if same(*models) else (*found, "model")


def json_with_masks(value: Any, key: bytes) -> Any:
    """Returns the value as JSON types under the names that validation reads. Rules and people see this form.

    A secret becomes stars and a keyed hash. Different secrets have different hashes, and without the key a guess cannot
    be tested.

    Raises:
        Unrepresentable: A part has no JSON form, is nested too deeply, or could be mistaken for another value.
    """
    return plain_value(_to_data(value, DEPTH_LIMIT, _Form(secret=lambda secret: mask(secret, key), has_defaults=True)))


def read_again(value: Any) -> Any:
    """Returns JSON types that validate to the same value, if any do. Never show the result: it contains the secrets.

    Raises:
        Unrepresentable: As in `json_with_masks`.
    """
    return plain_value(_to_data(value, DEPTH_LIMIT, _Form(secret=lambda secret: secret, has_defaults=False)))


def secrets_of(value: Any, key: bytes) -> dict[str, Any]:
    """Returns the secrets in the value as JSON types, by their masks.

    Raises:
        Unrepresentable: As in `json_with_masks`.
    """
    found: dict[str, Any] = {}

    def keep(secret: Any) -> None:
        found[mask(secret, key)] = secret

    _to_data(value, DEPTH_LIMIT, _Form(secret=keep, has_defaults=True))
    return found


def mask(secret: Any, key: bytes) -> str:
    """Returns the mask of a secret, which is given in its JSON form."""
    text = utf8_bytes(canonical_text(secret))
    return _STARS + hmac.digest(key, text, "sha256").hex()[:_MASK_DIGITS]


def is_mask(text: str) -> bool:
    """True if the text is the mask of a secret."""
    return text.startswith(_STARS) and _MASK.fullmatch(text) is not None


PARTS_LIMIT = 200_000
"""Maximum number of values in one argument of other than JSON types: half a second of processor time."""
OBJECT_PARTS = 10
"""Number of values that one model or dataclass counts as. Each one is opened, validated again and compared."""
_STARS = "********** #"
_MASK_DIGITS = 32
"""128 bits, so that two secrets with the same mask cannot be found."""
_MASK = re.compile(r"\*{10} #[0-9a-f]{32}")


@dataclasses.dataclass(slots=True, kw_only=True)
class _Form:
    secret: Callable[[Any], Any]
    """Returns the substitute for a secret, which is given as JSON types."""
    has_defaults: bool
    """True if fields with their default value are included."""
    has_types: bool = False
    """True if a member of an enumeration becomes its value, whatever its type."""
    left: int = PARTS_LIMIT
    """Number of parts that are still allowed."""

    def count(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise Unrepresentable(
                f"more than {PARTS_LIMIT:,} values, or {PARTS_LIMIT // OBJECT_PARTS:,} models, in one argument", path=""
            )


_LEAVES = frozenset({int, float, bool, bytes, type(None)})
_LEFT_TO_PLAIN = frozenset({"datetime", "decimal", "uuid", "pathlib", "pathlib._local"})


def _to_data(value: Any, depth: int, form: _Form) -> Any:
    kind = cast("Any", type(value))
    form.count(1)
    if kind is str:
        return _check_not_mask(value)
    if kind in _LEAVES or kind.__module__ in _LEFT_TO_PLAIN or depth <= 0:
        return value
    if form.has_types and isinstance(value, Enum):
        return _to_data(value.value, depth - 1, form)
    if hasattr(kind, "get_secret_value"):
        return form.secret(plain_value(_to_data(value.get_secret_value(), depth - 1, form)))
    if hasattr(kind, "__pydantic_fields__") or dataclasses.is_dataclass(kind):
        form.count(OBJECT_PARTS)
        is_root = getattr(kind, "__pydantic_root_model__", False)
        return _to_data(value.root, depth, form) if is_root else _fields_to_data(value, depth, form)
    if isinstance(value, Mapping):
        return {
            _check_key(key): _to_data(item, depth - 1, form) for key, item in cast("Mapping[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple | deque):
        return [_to_data(item, depth - 1, form) for item in cast("Iterable[Any]", value)]
    if isinstance(value, set | frozenset):
        # The same order in which `plain_value` lists sets.
        ordered = sorted(cast("Iterable[Any]", value), key=lambda item: (type(item).__name__, repr(item)))
        return [_to_data(item, depth - 1, form) for item in ordered]
    return _by_pydantic(value)


def _check_not_mask(text: str) -> str:
    if is_mask(text):
        raise Unrepresentable("a string equal to the placeholder of a hidden secret", path="")
    return text


def _check_key(key: Any) -> Any:
    return _check_not_mask(key) if type(key) is str else key


def _fields_to_data(value: Any, depth: int, form: _Form) -> dict[str, Any]:
    """Returns a model or dataclass as the data that its fields are read from."""
    fields, taken = _fields_of(cast("Any", type(value)))
    found: dict[str, Any] = {}
    for name, given_as, default in fields:
        item = getattr(value, name)
        if form.has_defaults or not same(item, default):
            found[given_as] = _to_data(item, depth - 1, form)
    extra = cast("Mapping[str, Any]", getattr(value, "__pydantic_extra__", None) or {})
    for name, item in extra.items():
        if name in taken:
            # A rule on this name would see the extra value, but the field's own value would run.
            raise Unrepresentable(f"an extra value with the name of the field {name!r}", path="")
        found[_check_key(name)] = _to_data(item, depth - 1, form)
    return found


@lru_cache(maxsize=1_000)
def _fields_of(kind: Any) -> tuple[tuple[tuple[str, str, Any], ...], frozenset[str]]:
    """Returns the fields of a model or dataclass with their input names and defaults, and all names in use.

    Raises:
        Unrepresentable: The class has an InitVar, or reads two fields from the same name.
    """
    known: Mapping[str, Any] = getattr(kind, "__pydantic_fields__", {})
    config: Mapping[str, Any] = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", {})
    is_dataclass = "__dataclass_fields__" in dir(kind)
    defaults = _defaults(kind) if is_dataclass else {name: one.default for name, one in known.items()}
    aliases = {name: _alias(known.get(name)) for name in defaults}
    aliased = config.get("validate_by_alias", True)
    fields = tuple((name, (aliases[name] if aliased else None) or name, default) for name, default in defaults.items())
    read_from = [given_as for _, given_as, _ in fields]
    if len(set(read_from)) < len(fields):
        raise Unrepresentable(f"{kind.__name__}, which reads two fields from one name,", path="")
    return fields, frozenset({*defaults, *filter(None, aliases.values())})


def _defaults(kind: Any) -> dict[str, Any]:
    kept = {item.name for item in dataclasses.fields(kind)}
    if any(name not in kept and _is_init_var(item) for name, item in kind.__dataclass_fields__.items()):
        raise Unrepresentable(f"{kind.__name__}, which does not keep its InitVar,", path="")
    return {item.name: item.default for item in dataclasses.fields(kind) if item.init}


def _is_init_var(item: Any) -> bool:
    """True for an InitVar, False for a ClassVar. No public attribute distinguishes them."""
    return getattr(item, "_field_type").name == "_FIELD_INITVAR"  # noqa: B009 - the name is private to dataclasses


def _alias(field: Any) -> str | None:
    alias: Any = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
    choices: list[Any] = getattr(alias, "choices", [alias])
    return next((choice for choice in choices if isinstance(choice, str)), None)


def _by_pydantic(value: Any) -> Any:
    """Returns URLs, addresses, patterns and similar values as pydantic writes them, and other values unchanged."""
    # Imported here: a tool defined by a schema never needs it.
    from pydantic_core import PydanticSerializationError

    from toolwire.definition.arguments.json_values import json_form

    try:
        return json_form(value)
    except PydanticSerializationError:
        return value
