"""Facts that an author declares about a tool: its effects, and the fields of exports that models never read."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, cast, get_args

from toolwire.vocabulary.effects import UNDECLARED, Effect, Effects, EffectsOf, Idempotency, Label, Reconcile
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.values import plain_value

Permission = Literal["auto", "confirm", "deny"]

EFFECT_OPTIONS = ("effects", "idempotent", "labels", "reconcile", "effects_of")


def check_effects(
    name: str,
    effects: Iterable[Effect] | None,
    idempotent: Idempotency,
    labels: Iterable[Label] | None,
    reconcile: Reconcile | None,
    effects_of: EffectsOf | None = None,
) -> Effects:
    """Returns the effects that a tool's author declared.

    Raises:
        DefinitionError: A word is unknown, `reconcile` or `effects_of` is not a fitting function, or `effects_of` is
            given without `effects`.
    """
    if not effects and idempotent == "no" and not labels and reconcile is None and effects_of is None:
        return UNDECLARED
    if idempotent not in get_args(Idempotency):
        raise DefinitionError(f"tool {name!r}: idempotent={idempotent!r} is unknown: write 'no', 'key' or 'natural'")
    if reconcile is not None and not callable(cast("object", reconcile)):
        raise DefinitionError(f"tool {name!r}: reconcile={reconcile!r} cannot be called: give a function of the key")
    kinds = frozenset(_words(name, "effects", effects, get_args(Effect)))
    if effects_of is not None:
        _check_by_call(name, kinds, effects_of)
    return Effects(
        kinds=kinds,
        idempotent=idempotent,
        labels=frozenset(_words(name, "labels", labels, get_args(Label))),
        reconcile=reconcile,
        of_call=effects_of,
    )


def _check_by_call(name: str, kinds: frozenset[Effect], effects_of: object) -> None:
    if not callable(effects_of) or inspect.iscoroutinefunction(effects_of):
        raise DefinitionError(
            f"tool {name!r}: effects_of={effects_of!r:.80}: give a plain function (arguments, seen) -> effects"
        )
    if not kinds:
        raise DefinitionError(
            f"tool {name!r}: effects_of says which of the declared effects one call has: declare them too, "
            "effects=['read', 'send']"
        )


def _words(name: str, option: str, given: Iterable[Any] | None, known: tuple[Any, ...]) -> list[Any]:
    if isinstance(given, str):
        raise DefinitionError(f"tool {name!r}: {option}={given!r} is one string: write {option}=[{given!r}]")
    words = list(given or ())
    for word in words:
        if word not in known:
            raise DefinitionError(f"tool {name!r}: {option} has {word!r}: write any of {', '.join(map(repr, known))}")
    return words


class PublishedOptions(TypedDict, total=False):
    """The options that a tool's author gives."""

    meta: Mapping[str, Any] | None
    icons: Iterable[Any] | None
    version: str | None


PUBLISHED_OPTIONS = ("meta", "icons", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """Facts that exports add to a tool's name, texts and schemas, as JSON types."""

    version: str | None = None
    """The version of the tool, as its author counts; None without one."""
    icons: tuple[Mapping[str, Any], ...] = ()
    """Each with `src`, a URL, and perhaps `mimeType`, `sizes` and `theme`, as MCP spells them."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields of MCP's `_meta`."""

    def own_meta(self) -> dict[str, Any]:
        """Returns a copy of `meta`."""
        return copy.deepcopy(dict(self.meta))

    def own_icons(self) -> list[dict[str, Any]]:
        """Returns a copy of `icons`."""
        return [copy.deepcopy(dict(icon)) for icon in self.icons]


NOTHING = Published()


def check_published_options(
    name: str,
    *,
    title: object = None,
    meta: Mapping[str, Any] | None = None,
    icons: Iterable[Any] | None = None,
    version: object = None,
) -> Published:
    """Returns the checked options of a tool. The title is checked and not kept.

    Raises:
        DefinitionError: A title or version that is not a text, an icon without `src`, or a value that is not JSON.
    """
    for option, value in (("title", title), ("version", version)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise DefinitionError(f"tool {name!r}: {option}={value!r:.80}: write a string, or leave it out")
    if meta is None and icons is None and version is None:
        return NOTHING
    return Published(version=cast("str | None", version), icons=_icons(name, icons), meta=_meta(name, meta))


def _meta(name: str, meta: object) -> dict[str, Any]:
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        raise DefinitionError(
            f"tool {name!r}: meta={meta!r:.80}: write a dict with string keys, meta={{'team': 'search'}}"
        )
    return _json(name, "meta", cast("Mapping[Any, Any]", meta))


def _icons(name: str, icons: object) -> tuple[dict[str, Any], ...]:
    if icons is None:
        return ()
    if isinstance(icons, str | Mapping) or not isinstance(icons, Iterable):
        raise DefinitionError(f"tool {name!r}: icons={icons!r:.80}: write a list, {_ICONS}")
    return tuple(_icon(name, icon) for icon in cast("Iterable[object]", icons))


def _icon(name: str, icon: Any) -> dict[str, Any]:
    fields = icon.model_dump(by_alias=True, exclude_none=True) if hasattr(icon, "model_dump") else icon
    if not isinstance(fields, Mapping):
        raise DefinitionError(f"tool {name!r}: the icon {icon!r:.80} is not a dict: write {_ICONS}")
    found = _json(name, "icons", cast("Mapping[Any, Any]", fields))
    if "mime_type" in found:
        found["mimeType"] = found.pop("mime_type")
    found = {key: value for key, value in found.items() if value is not None}
    for key, value in found.items():
        if key in _FORMS and not _FORMS[key](value):
            raise DefinitionError(f"tool {name!r}: the icon's {key}={value!r:.80} is wrong: write {_ICONS}")
    if "src" not in found:
        raise DefinitionError(f"tool {name!r}: the icon {icon!r:.80} has no src: write {_ICONS}")
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


_ICONS = (
    "icons=[{'src': 'https://example.com/icon.png', 'mimeType': 'image/png', 'sizes': ['48x48'], 'theme': 'light'}], "
    "where only src must be given"
)
_FORMS: Mapping[str, Callable[[Any], bool]] = {
    "src": _is_text,
    "mimeType": _is_text,
    "sizes": lambda value: isinstance(value, list) and all(map(_is_text, cast("list[Any]", value))),
    "theme": lambda value: value in ("light", "dark"),
}


def _json(name: str, option: str, value: Mapping[Any, Any]) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise DefinitionError(f"tool {name!r}: {option} has the key {key!r:.80}: write a string")
    try:
        return plain_value(dict(value))
    except Unrepresentable as error:
        raise DefinitionError(f"tool {name!r}: {option} must be JSON: {error}") from error


def check_tags(name: str, tags: Iterable[str]) -> frozenset[str]:
    """Returns the tags as a set.

    Raises:
        DefinitionError: They are one string.
    """
    if isinstance(tags, str):
        raise DefinitionError(f"tool {name!r}: tags={tags!r} is one string: write tags=[{tags!r}]")
    return frozenset(tags)


def check_output_schema(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of the output schema.

    Raises:
        DefinitionError: It is no dict.
    """
    if not isinstance(cast("object", schema), Mapping):
        raise DefinitionError(f"tool {name!r}: output_schema must be a JSON schema as a dict, not {schema!r}")
    return copy.deepcopy(dict(schema))


def check_permission(name: str, permission: object) -> Permission:
    """Returns the permission as a word, from the word or from an enum member with that value.

    Raises:
        DefinitionError: The value is not a permission.
    """
    plain = getattr(permission, "value", permission)
    if plain not in get_args(Permission):
        raise DefinitionError(f"tool {name!r}: permission={plain!r} is unknown: write 'auto', 'confirm' or 'deny'")
    return cast("Permission", plain)
