"""Validation by JSON Schema; the only module that imports jsonschema. Import this one when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import referencing
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, validator_for

from toolwire.definition.problems import invalid, missing, unexpected
from toolwire.definition.shape import ArgumentProblem
from toolwire.definition.words import expected, path_text, resolve
from toolwire.vocabulary.errors import DefinitionError


def check_schema(schema: Mapping[str, Any], label: str) -> None:
    """Refuses a schema that cannot be used.

    Raises:
        DefinitionError: it is no JSON schema, or a reference in it leads to another document or nowhere.
    """
    try:
        _validator_class(schema).check_schema(schema)
    except SchemaError as error:
        place = path_text(["schema", *error.absolute_path])
        raise DefinitionError(f"{label}: {place} is no JSON schema: {error.message}") from error
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise DefinitionError(
                f"{label}: the schema refers to another document, {reference!r}, and none is fetched: "
                "copy what it refers to under '$defs' and write '#/$defs/NAME'"
            )
        if reference.startswith("#/") and not resolve({"$ref": reference}, schema):
            raise DefinitionError(f"{label}: the schema's reference {reference!r} leads nowhere: add it under '$defs'")


class Validator:
    """Checks arguments against one schema, in the draft that it names or else 2020-12. Formats are not asserted."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        # A registry of our own, or jsonschema would fetch what it does not know.
        self._validator: Any = _validator_class(schema)(schema, registry=cast("Any", referencing.Registry)())

    def problems(self, arguments: Mapping[str, Any]) -> tuple[ArgumentProblem, ...]:
        """Everything that is wrong with them; empty when they fit."""
        found: dict[str, ArgumentProblem] = {}
        for error in cast("Iterator[ValidationError]", self._validator.iter_errors(arguments)):
            for problem in self._problems(error, depth=8):
                found.setdefault(problem.path, problem)
        return tuple(found.values())

    def _problems(self, error: ValidationError, depth: int) -> Iterator[ArgumentProblem]:
        place = list(error.absolute_path)
        node = cast("dict[str, Any]", error.schema)
        keyword = str(error.validator)
        instance = cast("Any", error.instance)
        if keyword == "required":
            yield from self._missing(place, node, instance)
        elif keyword in ("additionalProperties", "unevaluatedProperties") and isinstance(instance, dict):
            yield from self._unexpected(place, node, cast("dict[str, Any]", instance))
        elif keyword in ("anyOf", "oneOf") and depth and (inner := _of_the_one_meant(error, node, self._schema)):
            for below in inner:
                yield from self._problems(below, depth - 1)
        else:
            detail = "" if keyword in _SAID_IN_WORDS else str(error.message)
            yield invalid(path_text(place) or "arguments", expected(node, self._schema), instance, detail)

    def _missing(
        self, place: list[str | int], node: Mapping[str, Any], instance: Mapping[str, Any]
    ) -> Iterator[ArgumentProblem]:
        properties = node.get("properties", {})
        for name in node["required"]:
            if name not in instance:
                yield missing(path_text([*place, name]), expected(properties.get(name), self._schema))

    def _unexpected(
        self, place: list[str | int], node: Mapping[str, Any], instance: Mapping[str, Any]
    ) -> Iterator[ArgumentProblem]:
        properties = cast("Mapping[str, Any]", node.get("properties", {}))
        for name in instance:
            if name not in properties:
                yield unexpected(path_text([*place, name]), name, properties)


_SAID_IN_WORDS = frozenset(
    {
        *("type", "enum", "const", "anyOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems"),
    }
)


def _validator_class(schema: Mapping[str, Any]) -> Any:
    return validator_for(schema, default=Draft202012Validator)


def _of_the_one_meant(
    error: ValidationError, node: Mapping[str, Any], root: Mapping[str, Any]
) -> list[ValidationError]:
    """The errors of the only alternative whose JSON type is the value's; none when that is open."""
    value: Any = error.instance
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
    options = cast("list[Any]", node[str(error.validator)])
    fitting = [place for place, option in enumerate(options) if kind and resolve(option, root).get("type") == kind]
    return [inner for inner in error.context or [] if len(fitting) == 1 and inner.relative_schema_path[0] == fitting[0]]


_VALUES = frozenset({"enum", "const", "default", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def _references(schema: Any) -> Iterator[str]:
    """Every `$ref` that is a reference: not a property of that name, nor inside a default or an example."""
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _references(item)
    if not isinstance(schema, dict):
        return
    for key, value in cast("dict[str, Any]", schema).items():
        if key in ("$ref", "$dynamicRef") and isinstance(value, str):
            yield value
        elif key in _NAMED and isinstance(value, dict):
            for named in cast("dict[str, Any]", value).values():
                yield from _references(named)
        elif key not in _VALUES:
            yield from _references(value)
