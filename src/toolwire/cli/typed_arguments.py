"""Arguments as a person types them, such as `limit=3`, converted by the tool's schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, cast
from urllib.parse import unquote

from toolwire.cli.exit_codes import ExitCode, Stop

_JSON_TYPES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""The JSON type of each class that `json.loads` returns."""
_REFERENCES_MAX = 32
"""Maximum number of references followed, because schemas may refer to themselves."""


def read_pairs(pairs: Iterable[str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Converts `key=value` texts to arguments. `schema` is the tool's input schema.

    Raises:
        Stop: A text has no `=`, or a key is given twice.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise Stop(
                ExitCode.WRONG_USAGE, f"{pair!r} is not a key=value argument", hint="Write key=value, as limit=3."
            )
        if key in arguments:
            raise Stop(
                ExitCode.WRONG_USAGE,
                f"{key!r} is given twice",
                hint=f"""Write a list as JSON: {key}='["a", "b"]'.""",
            )
        arguments[key] = read_value(text, _parameter(key, schema), schema)
    return arguments


def read_value(text: str, wanted: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Converts a text by the schema `wanted`. `root` is the schema that its references belong to.

    Text stays text if the schema asks for a string, even `10`. Otherwise it is parsed as JSON. A text that does not fit
    stays text; the tool's validation then reports the expected type.
    """
    types = _types(wanted, root)
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    kind = _type_of(value)
    if kind == "number" and "integer" in types and float(value).is_integer():
        kind = "integer"
    if "string" in types:
        # Exact decimals and numbers with leading zeros are kept as text.
        return value if kind in types - {"string", "integer", "number"} else text
    return value if kind in types or (kind == "integer" and "number" in types) else text


def read_object(text: str, *, place: str) -> dict[str, Any]:
    """Parses a text as a JSON object. `place` names its source in messages.

    Raises:
        Stop: The text is not JSON, or not an object.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise Stop(
            ExitCode.WRONG_USAGE, f"{place} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise Stop(ExitCode.WRONG_USAGE, f"{place} is not JSON: {error}") from error
    if not isinstance(value, dict):
        hint = 'Write the arguments by name: {"query": "x", "limit": 3}.'
        raise Stop(ExitCode.WRONG_USAGE, f"{place} holds {_type_of(value)}, not an object", hint=hint)
    return cast("dict[str, Any]", value)


def _parameter(key: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the schema for a key. An unknown key counts as text; the call then reports it."""
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    more = schema.get("additionalProperties")
    found = properties.get(key, more if isinstance(more, Mapping) else {"type": "string"})
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _types(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """Returns the JSON types that a schema allows. A schema without types counts as all types except string."""
    if depth > _REFERENCES_MAX:
        return frozenset()
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _types(_resolve_reference(reference, root), root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            members = cast("list[Mapping[str, Any]]", schema[key])
            found = [_types(member, root, depth + 1) for member in members]
            return frozenset[str].intersection(*found) if key == "allOf" else frozenset[str]().union(*found)
    if "enum" in schema:
        return frozenset(_type_of(value) for value in cast("list[Any]", schema["enum"]))
    if "const" in schema:
        return frozenset({_type_of(schema["const"])})
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(cast("list[str]", named))
    return frozenset(_JSON_TYPES.values()) - {"string"}


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolves a reference within the document. Returns an empty schema if the target does not exist."""
    found: object = root
    for part in unquote(reference).removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        found = cast("Mapping[str, object]", found).get(key, {}) if isinstance(found, Mapping) else {}
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _type_of(value: object) -> str:
    return _JSON_TYPES.get(value.__class__, "object")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
