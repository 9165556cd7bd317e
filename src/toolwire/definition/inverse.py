"""Validated values as what would have to be given to get them again.

The *shown* form of a value has every default filled in, and stars for secrets. The *read again* form has the secrets
and no defaults: a default need not fit its own type.
"""

from __future__ import annotations

import dataclasses
import hmac
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from toolwire.definition.same import same
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.values import DEPTH_LIMIT, canonical, plain


def shown(value: Any, key: bytes) -> Any:
    """The value in JSON types, named as it is read: what rules and people see.

    A secret is stars and a keyed hash. Two secrets have two hashes, and without the key no guess can be tested.

    Raises:
        Unrepresentable: something in it has no JSON form, is nested too deeply, or could pass for something else.
    """
    return plain(_opened(value, DEPTH_LIMIT, _Form(secret=lambda secret: mask(secret, key), has_defaults=True)))


def read_again(value: Any) -> Any:
    """The value in JSON types, so that validating it gives the same value if any JSON does. Never show it: it has the
    secrets.

    Raises:
        Unrepresentable: as `shown`.
    """
    return plain(_opened(value, DEPTH_LIMIT, _Form(secret=lambda secret: secret, has_defaults=False)))


def secrets_of(value: Any, key: bytes) -> dict[str, Any]:
    """The secrets in the value, in JSON types, by their masks.

    Raises:
        Unrepresentable: as `shown`.
    """
    found: dict[str, Any] = {}

    def keep(secret: Any) -> None:
        found[mask(secret, key)] = secret

    _opened(value, DEPTH_LIMIT, _Form(secret=keep, has_defaults=True))
    return found


def mask(secret: Any, key: bytes) -> str:
    """The stars that stand for a secret, given as its JSON form."""
    return _STARS + hmac.digest(key, canonical(secret).encode("utf-8", "surrogatepass"), "sha256").hex()[:_MASK_DIGITS]


def is_mask(text: str) -> bool:
    """Whether the text is the mask of a secret."""
    return text.startswith(_STARS) and _MASK.fullmatch(text) is not None


PARTS_LIMIT = 200_000
"""Values in one argument that is not of JSON types alone: half a processor second for its canonical form."""
OBJECT_PARTS = 10
"""Values that one model or dataclass counts as: each of them is opened, read again and compared."""
_STARS = "********** #"
_MASK_DIGITS = 32
"""128 bits: two secrets with one mask cannot be found."""
_MASK = re.compile(r"\*{10} #[0-9a-f]{32}")


@dataclasses.dataclass(slots=True, kw_only=True)
class _Form:
    secret: Callable[[Any], Any]
    """Gives the substitute for a secret in JSON types."""
    has_defaults: bool
    """Whether fields that hold their own default are there."""
    left: int = PARTS_LIMIT
    """Parts that may still come."""

    def count(self, parts: int) -> None:
        self.left -= parts
        if self.left < 0:
            raise Unrepresentable(
                f"more than {PARTS_LIMIT:,} values, or {PARTS_LIMIT // OBJECT_PARTS:,} models, in one argument", path=""
            )


_LEAVES = frozenset({int, float, bool, bytes, type(None)})
_LEFT_TO_PLAIN = frozenset({"datetime", "decimal", "uuid", "pathlib", "pathlib._local"})


def _opened(value: Any, depth: int, form: _Form) -> Any:
    kind = cast("Any", type(value))
    form.count(1)
    if kind is str:
        return _text(value)
    if kind in _LEAVES or kind.__module__ in _LEFT_TO_PLAIN or depth <= 0:
        return value
    if hasattr(kind, "get_secret_value"):
        return form.secret(plain(_opened(value.get_secret_value(), depth - 1, form)))
    if hasattr(kind, "__pydantic_fields__") or dataclasses.is_dataclass(kind):
        form.count(OBJECT_PARTS)
        is_root = getattr(kind, "__pydantic_root_model__", False)
        return _opened(value.root, depth, form) if is_root else _opened_fields(value, depth, form)
    if isinstance(value, Mapping):
        return {_key(key): _opened(item, depth - 1, form) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | deque):
        return [_opened(item, depth - 1, form) for item in cast("Iterable[Any]", value)]
    if isinstance(value, set | frozenset):
        # In the order that `plain` gives to sets.
        ordered = sorted(cast("Iterable[Any]", value), key=lambda item: (type(item).__name__, repr(item)))
        return [_opened(item, depth - 1, form) for item in ordered]
    return _by_pydantic(value)


def _text(text: str) -> str:
    if is_mask(text):
        raise Unrepresentable("a text that reads as a secret which is not shown", path="")
    return text


def _key(key: Any) -> Any:
    return _text(key) if type(key) is str else key


def _opened_fields(value: Any, depth: int, form: _Form) -> dict[str, Any]:
    """A model or dataclass as what its fields are read from."""
    fields, taken = _fields_of(cast("Any", type(value)))
    found: dict[str, Any] = {}
    for name, given_as, default in fields:
        item = getattr(value, name)
        if form.has_defaults or not same(item, default):
            found[given_as] = _opened(item, depth - 1, form)
    extra = cast("Mapping[str, Any]", getattr(value, "__pydantic_extra__", None) or {})
    for name, item in extra.items():
        if name in taken:
            # A rule that looks at the name would see the extra value, and the field's own would run.
            raise Unrepresentable(f"a value beside the field of its name {name!r}", path="")
        found[_key(name)] = _opened(item, depth - 1, form)
    return found


@lru_cache(maxsize=1_000)
def _fields_of(kind: Any) -> tuple[tuple[tuple[str, str, Any], ...], frozenset[str]]:
    """The fields of a model or dataclass, each with what it is read from and its default; and all of these names.

    Raises:
        Unrepresentable: it has an InitVar, or two fields that are read from one name.
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
        raise Unrepresentable(f"{kind.__name__}, two fields of which are read from one name,", path="")
    return fields, frozenset({*defaults, *filter(None, aliases.values())})


def _defaults(kind: Any) -> dict[str, Any]:
    kept = {item.name for item in dataclasses.fields(kind)}
    if any(name not in kept and _is_init_var(item) for name, item in kind.__dataclass_fields__.items()):
        raise Unrepresentable(f"{kind.__name__}, which does not keep its InitVar,", path="")
    return {item.name: item.default for item in dataclasses.fields(kind) if item.init}


def _is_init_var(item: Any) -> bool:
    """Whether it is an InitVar and no ClassVar: nothing public says which."""
    return getattr(item, "_field_type").name == "_FIELD_INITVAR"  # noqa: B009 - the name is private to dataclasses


def _alias(field: Any) -> str | None:
    alias: Any = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
    choices: list[Any] = getattr(alias, "choices", [alias])
    return next((choice for choice in choices if isinstance(choice, str)), None)


def _by_pydantic(value: Any) -> Any:
    """URLs, addresses, patterns and such as pydantic writes them; what it cannot write is left as it is."""
    # Loaded here: a tool known by its schema alone never needs it.
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        return value
