"""Types as Python text, in terms of the values that a model can give."""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import keyword
import math
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin
from urllib.parse import unquote
from uuid import UUID

from toolwire.definition.texts.default_text import default_text
from toolwire.definition.words import flatten_schema, limit_references, resolve
from toolwire.vocabulary.values import plain_value

_NODES_LIMIT = 5_000
"""Maximum number of schema nodes that are visited. The text about a larger schema is cut anyway."""

_WITHIN = ("items", "additionalProperties", "contains", "not")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "patternProperties")
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTypes:
    """The named objects of one schema."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The name of each reference, in the order of first use."""

    def name_of(self, schema: Any) -> str:
        """Returns the name of the object that this schema refers to. Empty if it has no name."""
        reference = _reference(schema)
        return self.names.get(reference, "") if reference else ""


NO_NAMES = NamedTypes()


def name_types(root: Mapping[str, Any]) -> NamedTypes:
    """Returns names for the objects that the root's properties use more than once, or recursively."""
    counts: dict[str, int] = {}
    open_nodes = [iter([cast("Any", root)])]
    seen = 0
    while open_nodes and seen < _NODES_LIMIT:
        node = next(open_nodes[-1], None)
        if node is None:
            open_nodes.pop()
            continue
        seen += 1
        reference = _reference(node)
        if reference:
            counts[reference] = counts.get(reference, 0) + 1
            # The inside of an object is walked once. A second use, also from its own inside, makes a name worthwhile.
            if counts[reference] == 1:
                open_nodes.append(_inner_schemas(resolve(node, root)))
        elif isinstance(node, dict):
            open_nodes.append(_inner_schemas(cast("dict[str, Any]", node)))
    return NamedTypes(names=_name_references([key for key, count in counts.items() if count > 1], root))


def _name_references(references: list[str], root: Mapping[str, Any]) -> dict[str, str]:
    names: dict[str, str] = {}
    for reference in references:
        if not _is_object_schema(resolve({"$ref": reference}, root)):
            continue
        stem = _NO_WORD.sub("_", unquote(reference.rpartition("/")[2])).strip("_") or "Arguments"
        if stem[0].isdigit() or keyword.iskeyword(stem) or not stem.isidentifier():
            stem = f"Type_{stem}"
        name, number = stem, 1
        while name in names.values():
            number += 1
            name = f"{stem}_{number}"
        names[reference] = name
    return names


def _is_object_schema(node: Mapping[str, Any]) -> bool:
    return bool(node.get("properties") or node.get("allOf"))


def _reference(schema: Any) -> str:
    reference = cast("dict[str, Any]", schema).get("$ref") if isinstance(schema, dict) else None
    return reference if isinstance(reference, str) else ""


def _inner_schemas(node: Mapping[str, Any]) -> Iterator[Any]:
    for key in _MAPS:
        inner = cast("Any", node.get(key))
        yield from cast("dict[str, Any]", inner).values() if isinstance(inner, dict) else ()
    for key in _LISTS:
        inner = cast("Any", node.get(key))
        yield from cast("list[Any]", inner) if isinstance(inner, list) else ()
    for key in _WITHIN:
        if isinstance(node.get(key), dict):
            yield node[key]


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
        return _simple_type_text(annotation)
    return _generic(origin, get_args(annotation))


@limit_references
def schema_text(schema: Any, root: Mapping[str, Any], names: NamedTypes = NO_NAMES, depth: int = _DEPTH) -> str:
    """Returns a JSON schema as a Python type: `list[str]`, `Literal['a']`, `dict`, `str | None`.

    An object listed in `names` is shown by its name. Above `LITERAL_LIMIT` values only their type is shown.
    """
    name = names.name_of(schema)
    if name:
        return name
    node = flatten_schema(schema, root)
    if "enum" in node or "const" in node:
        return _literal(node["enum"] if "enum" in node else [node["const"]])
    options = cast("list[Any]", node.get("anyOf") or node.get("oneOf") or [])
    if options and depth > 0 and "properties" not in node:
        return _union_text([schema_text(option, root, names, depth - 1) for option in options])
    kind = node.get("type", "object" if "properties" in node else None)
    if isinstance(kind, list):
        return _union_text([schema_text({**node, "type": one}, root, names, depth) for one in cast("list[str]", kind)])
    if kind == "array" and depth > 0:
        return _list_text(node, root, names, depth - 1)
    if kind == "object" and depth > 0:
        return _dict_text(node, root, names, depth - 1)
    return _JSON_TYPES.get(str(kind), "Any")


def _list_text(node: Mapping[str, Any], root: Mapping[str, Any], names: NamedTypes, depth: int) -> str:
    places = cast("list[Any]", node.get("prefixItems") or [])
    kinds = [*places, node["items"]] if isinstance(node.get("items"), dict) else places
    inner = _union_text([schema_text(kind, root, names, depth) for kind in kinds]) if kinds else "Any"
    return "list" if inner == "Any" or " | Any" in inner else f"list[{inner}]"


def _dict_text(node: Mapping[str, Any], root: Mapping[str, Any], names: NamedTypes, depth: int) -> str:
    values = [*cast("dict[str, Any]", node.get("patternProperties") or {}).values(), node.get("additionalProperties")]
    kinds = [schema_text(value, root, names, depth) for value in values if isinstance(value, dict) and value]
    inner = _union_text(kinds) if kinds and not node.get("properties") else "Any"
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


def _simple_type_text(annotation: Any) -> str:
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
        return _union_text([annotation_text(option) for option in inner])
    name = annotation_text(origin)
    if name in ("dict", "type") and (origin not in (dict, type) and _has_fields(origin)):
        return name
    if name == "Callable":
        return name
    return f"{name}[{', '.join(annotation_text(item) for item in inner)}]"


def _union_text(options: Sequence[str]) -> str:
    kept = [option for option in dict.fromkeys(options) if option != "None"]
    return " | ".join([*kept, "None"] if len(kept) < len(set(options)) else kept)


def _literal(values: Sequence[Any]) -> str:
    plain = [value.value if isinstance(value, Enum) else value for value in values]
    is_short = len(plain) <= LITERAL_LIMIT and not any(_is_long(value) for value in plain)
    written = [_value_text(value) for value in plain] if is_short else [""]
    if all(written):
        return f"Literal[{', '.join(written)}]"
    return _union_text(["None" if value is None else type(value).__name__ for value in plain])


def _value_text(value: Any) -> str:
    """Returns a value as Python source. Infinity is a text, as models write it; an object without a form is empty."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(plain_value(value))
    return "" if default_text(value) == "..." else repr(value)


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
