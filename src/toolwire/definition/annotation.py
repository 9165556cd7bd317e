"""Types as Python text, in terms of the values that a model can give."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin
from uuid import UUID

from toolwire.definition.named_types import NO_NAMES, NamedTypes
from toolwire.definition.words import bounded, flattened

LITERAL_LIMIT = 20
"""Maximum number of allowed values that a type lists. For more, the texts of a tool list the first ones."""

_DEPTH = 6
_UNIONS = (Union, types.UnionType)
_ABSTRACT = {"Sequence": "list", "Iterable": "list", "Collection": "list", "Mapping": "dict", "MutableMapping": "dict"}


def annotation_text(annotation: Any) -> str:
    """Returns the type as text: `list[dict]`, `str | None`, `Literal['asc', 'desc']`.

    Models, dataclasses and TypedDicts become `dict`, and an enumeration becomes its values, because a model gives and
    receives these. Paths and UUIDs become `str`.
    """
    if annotation is inspect.Parameter.empty:
        return ""
    if annotation is None or annotation is types.NoneType:
        return "None"
    if annotation is ...:
        return "..."
    if isinstance(annotation, str):
        return annotation
    origin = get_origin(annotation)
    if origin is None:
        return _plain(annotation)
    return _generic(origin, get_args(annotation))


@bounded
def schema_text(schema: Any, root: Mapping[str, Any], names: NamedTypes = NO_NAMES, depth: int = _DEPTH) -> str:
    """Returns a JSON schema as a Python type: `list[str]`, `Literal['a']`, `dict`, `str | None`.

    An object listed in `names` is shown by its name. Above `LITERAL_LIMIT` values only their type is shown.
    """
    name = names.name_of(schema)
    if name:
        return name
    node = flattened(schema, root)
    if "enum" in node or "const" in node:
        return _literal(node["enum"] if "enum" in node else [node["const"]])
    options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
    if options and depth > 0 and "properties" not in node:
        return _either([schema_text(option, root, names, depth - 1) for option in options])
    kind = node.get("type", "object" if "properties" in node else None)
    if isinstance(kind, list):
        return _either([schema_text({**node, "type": one}, root, names, depth) for one in cast("list[str]", kind)])
    if kind == "array" and depth > 0:
        return _list_text(node, root, names, depth - 1)
    if kind == "object" and depth > 0:
        return _dict_text(node, root, names, depth - 1)
    return _JSON_TYPES.get(str(kind), "Any")


def _list_text(node: Mapping[str, Any], root: Mapping[str, Any], names: NamedTypes, depth: int) -> str:
    places = cast("list[Any]", node.get("prefixItems") or [])
    kinds = [*places, node["items"]] if isinstance(node.get("items"), dict) else places
    inner = _either([schema_text(kind, root, names, depth) for kind in kinds]) if kinds else "Any"
    return "list" if inner == "Any" or " | Any" in inner else f"list[{inner}]"


def _dict_text(node: Mapping[str, Any], root: Mapping[str, Any], names: NamedTypes, depth: int) -> str:
    values = [*cast("dict[str, Any]", node.get("patternProperties") or {}).values(), node.get("additionalProperties")]
    kinds = [schema_text(value, root, names, depth) for value in values if isinstance(value, dict) and value]
    inner = _either(kinds) if kinds and not node.get("properties") else "Any"
    return "dict" if inner == "Any" or " | Any" in inner else f"dict[str, {inner}]"


def is_object(annotation: Any) -> bool:
    """True if values of the type are JSON objects."""
    if get_origin(annotation) is Annotated:
        return is_object(get_args(annotation)[0])
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and (issubclass(kind, Mapping) or _has_fields(kind))


_JSON_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "null": "None",
}


def _plain(annotation: Any) -> str:
    if isinstance(annotation, typing.TypeVar):
        return annotation_text(annotation.__bound__) if annotation.__bound__ is not None else "Any"
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    if isinstance(annotation, typing.NewType):
        return annotation_text(annotation.__supertype__)
    value = getattr(annotation, "__value__", None)
    if value is not None and type(annotation).__name__ == "TypeAliasType":
        return annotation_text(value)
    if not isinstance(annotation, type):
        return str(getattr(annotation, "__name__", None) or annotation).removeprefix("typing.")
    return _class(annotation)


def _class(kind: type) -> str:
    if issubclass(kind, Enum):
        return _literal([member.value for member in kind])
    if issubclass(kind, PurePath | UUID):
        return "str"
    if _has_fields(kind):
        return "dict"
    if issubclass(kind, datetime.date | datetime.time | datetime.timedelta):
        return f"datetime.{kind.__name__}"
    return _ABSTRACT.get(kind.__name__, kind.__name__)


def _generic(origin: Any, inner: tuple[Any, ...]) -> str:
    if origin in (Annotated, Required, NotRequired):
        return annotation_text(inner[0])
    if origin is Literal:
        return _literal(inner)
    if origin in _UNIONS:
        return _either([annotation_text(option) for option in inner])
    name = annotation_text(origin)
    if name in ("dict", "type") and (origin not in (dict, type) and _has_fields(origin)):
        return name
    if name == "Callable":
        return name
    return f"{name}[{', '.join(annotation_text(item) for item in inner)}]"


def _either(options: Sequence[str]) -> str:
    kept = [option for option in dict.fromkeys(options) if option != "None"]
    return " | ".join([*kept, "None"] if len(kept) < len(set(options)) else kept)


def _literal(values: Sequence[Any]) -> str:
    plain = [value.value if isinstance(value, Enum) else value for value in values]
    if len(plain) > LITERAL_LIMIT or any(_is_long(value) for value in plain):
        return _either(["None" if value is None else type(value).__name__ for value in plain])
    return f"Literal[{', '.join(repr(value) for value in plain)}]"


_LONG = 200
"""Maximum length in characters of a text that a type lists."""


def _is_long(value: Any) -> bool:
    return isinstance(value, list | dict) or (isinstance(value, str) and len(value) > _LONG)


def _has_fields(kind: Any) -> bool:
    """True for a model, a dataclass or a TypedDict. The check does not import pydantic."""
    return (
        hasattr(kind, "__pydantic_fields__")
        or dataclasses.is_dataclass(kind)
        or (isinstance(kind, type) and hasattr(kind, "__total__") and issubclass(kind, dict))
    )
