"""Validation by JSON Schema. Import this module only when it is needed: jsonschema is slow to import."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping
from functools import cache, partial
from typing import Any, cast
from urllib.parse import urljoin

import referencing
from jsonschema.exceptions import ValidationError
from jsonschema.validators import Draft202012Validator, validator_for
from jsonschema_specifications import REGISTRY as SPECIFICATIONS  # pyright: ignore[reportMissingTypeStubs]  # it has no types
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from toolwire.definition.arguments.problems import LazyProblem, invalid_problem, missing_problem, unknown_problem
from toolwire.definition.arguments.tagged_unions import Tags, tags_of
from toolwire.definition.hostile.keywords import (
    DEPTH_LIMIT,
    RUN,
    STEPS_LIMIT,
    Exceeded,
    SchemaRun,
    brief,
    validator_with_counter,
)
from toolwire.definition.hostile.patterns import PATTERN_STATES_LIMIT, Patterns, patterns_of
from toolwire.definition.hostile.schema_limits import (
    SCHEMA_LEVELS_LIMIT,
    SCHEMA_NODES_LIMIT,
    check_loops,
    references,
)
from toolwire.definition.hostile.schema_walk import objects_in
from toolwire.definition.shape import ArgumentProblem
from toolwire.definition.words import describe_one_value, path_text, resolve
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.texts.counting import count_of

_LOG = logging.getLogger("toolwire.definition")

_UNUSABLE = (Unresolvable, RecursionError, ValueError, TypeError)
"""Exceptions for references that lead nowhere or in circles, or are malformed."""


def check_schema(schema: Mapping[str, Any], label: str) -> Patterns:
    """Checks that a schema is usable, and returns its patterns.

    Raises:
        DefinitionError: The schema is not a JSON schema, a pattern is not a regular expression, or a reference leads to
            another document, nowhere or back to itself.
    """
    error = _schema_error(schema, label)
    if error is not None:
        place = path_text(["schema", *error.absolute_path])
        raise DefinitionError(f"{label}: {place} is not a JSON schema: {error.message}") from error
    try:
        resolver = _resolver(schema)
    except ValueError as error:
        raise DefinitionError(
            f"{label}: an `$id` of the schema is not a URL ({error}): mend it or leave it out"
        ) from error
    except TypeError as error:
        raise DefinitionError(
            f"{label}: true or false stands for a schema, which the draft of its '$schema' has not: leave '$schema' out"
        ) from error
    for reference in references(schema):
        if not reference.startswith("#"):
            raise DefinitionError(
                f"{label}: the schema refers to another document, {reference[:200]!r}, and toolwire does not fetch it: "
                "copy its target under '$defs' and write '#/$defs/NAME'"
            )
        try:
            target = resolver.lookup(reference).contents
        except _UNUSABLE as error:
            raise DefinitionError(
                f"{label}: the schema's reference {reference[:200]!r} leads nowhere: add it under '$defs'"
            ) from error
        if not isinstance(target, dict | bool):
            raise DefinitionError(
                f"{label}: the schema's reference {reference[:200]!r} leads to a {type(target).__name__}, which is not "
                "a schema: write '#/$defs/NAME'"
            )
    check_loops(schema, label)
    return patterns_of(schema, label)


def warn_of_unchecked(schema: Mapping[str, Any], patterns: Patterns, label: str) -> None:
    """Logs the keywords that only the tool itself can check."""
    if patterns.unchecked:
        others = len(patterns.unchecked) - 1
        _LOG.warning(
            "%s: the pattern %.80r%s is not checked here, since the engine has no look-around, no back-references and "
            "at most %d states for a schema: the tool itself must check it",
            *(
                label,
                patterns.unchecked[0],
                f", like {count_of(others, 'other')}," if others else "",
                PATTERN_STATES_LIMIT,
            ),
        )
    if patterns.are_for_names and any("unevaluatedProperties" in node for node in objects_in(schema)):
        _LOG.warning(
            "%s: 'unevaluatedProperties' is not checked here, since the schema has 'patternProperties': the tool "
            "itself must check it",
            label,
        )


class Validator:
    """Checks a value against one schema, in the draft that it names or in 2020-12. Formats are not checked."""

    def __init__(self, schema: Mapping[str, Any], patterns: Patterns, label: str, *, whole: str = "arguments") -> None:
        """`patterns` is the result of `check_schema` for the schema. `whole` names the whole value in problems."""
        self._whole = whole
        self._schema: dict[str, Any] = brief(schema)
        self._label = label
        self._patterns = patterns
        self._choices: dict[int, frozenset[str]] = {}
        self._validator: Any = validator_with_counter(_draft(schema))(
            self._schema, registry=_NO_DOCUMENTS, _resolver=_resolver(self._schema)
        )

    def problems(self, arguments: Mapping[str, Any]) -> Generator[LazyProblem]:
        """Yields all problems of the arguments. Read it to its end or close it, in one thread.

        Raises:
            DefinitionError: The schema is at fault: the check of small arguments does not end.
        """
        token = RUN.set(SchemaRun(patterns=self._patterns, choices=self._choices))
        try:
            for error in cast("Iterator[ValidationError]", self._validator.iter_errors(brief(arguments))):
                yield from self._problems_of_error(error, depth=8)
        except (Exceeded, *_UNUSABLE) as error:
            problem = self._too_large_problem(arguments, error)
            yield LazyProblem(problem.path, lambda: problem)
        finally:
            RUN.reset(token)

    def fits(self, node: Any, value: Any) -> bool:
        """True if the value fits this part of the schema. False also if that cannot be found out."""
        token = RUN.set(SchemaRun(patterns=self._patterns))
        try:
            part = self._validator.evolve(schema=brief(node))
            return next(part.iter_errors(brief(value)), None) is None
        except (Exceeded, *_UNUSABLE):
            return False
        finally:
            RUN.reset(token)

    def _too_large_problem(self, arguments: Mapping[str, Any], error: Exception) -> ArgumentProblem:
        """Returns the problem of arguments that are too large to check. For small arguments the schema is at fault."""
        values, characters = _argument_size(arguments)
        limits = f"{STEPS_LIMIT:,} steps or {DEPTH_LIMIT} levels"
        if not isinstance(error, Exceeded) or values + characters // _CHARACTERS < _LARGE:
            reason = f"a check of {values} values takes more than {limits}"
            detail = reason if isinstance(error, Exceeded) else str(error)[:200]
            raise DefinitionError(f"{self._label}: its schema cannot be used: {detail}") from error
        holds = f"The {self._whole} {'hold' if self._whole.endswith('s') else 'holds'}"
        message = (
            f"{holds} {count_of(values, 'value')} and {count_of(characters, 'character')}, "
            f"and checking them takes more than {limits}: give less in one call."
        )
        return ArgumentProblem(path="", kind="invalid", message=message)

    def _problems_of_error(self, error: ValidationError, depth: int) -> Iterator[LazyProblem]:
        place = list(error.absolute_path)
        node = cast("dict[str, Any]", error.schema)
        keyword = str(error.validator)
        instance = cast("Any", error.instance)
        if keyword == "required" and isinstance(node["required"], list):
            yield from self._missing(place, node, instance)
        elif keyword in ("additionalProperties", "unevaluatedProperties") and isinstance(instance, dict):
            yield from self._unknown_names(place, node, cast("dict[str, Any]", instance))
        elif keyword in ("anyOf", "oneOf") and (tags := _wrong_tag(node, instance, self._schema)) is not None:
            yield LazyProblem(
                path_text([*place, tags.name]), partial(self._tag_problem, [*place, tags.name], tags, instance)
            )
        elif keyword in ("anyOf", "oneOf") and depth and (inner := _errors_of_meant_option(error, node, self._schema)):
            for below in inner:
                yield from self._problems_of_error(below, depth - 1)
        else:
            is_said = keyword in _SAID_IN_WORDS and not (keyword in _SAID_OF_A_TYPE and "type" not in node)
            detail = "" if is_said else str(error.message)
            whole = self._whole
            wanted = partial(describe_one_value, node, self._schema)
            yield LazyProblem(
                path_text(place) or whole, lambda: invalid_problem(place, wanted(), instance, detail, whole=whole)
            )

    def _tag_problem(self, place: list[str | int], tags: Tags, instance: Mapping[str, Any]) -> ArgumentProblem:
        wanted = describe_one_value(tags.node, self._schema)
        if tags.name not in instance:
            return missing_problem(path_text(place), wanted)
        return invalid_problem(place, wanted, instance[tags.name])

    def _missing(
        self, place: list[str | int], node: Mapping[str, Any], instance: Mapping[str, Any]
    ) -> Iterator[LazyProblem]:
        properties = node.get("properties", {})
        for name in node["required"]:
            if name not in instance:
                path = path_text([*place, name])
                yield LazyProblem(path, partial(self._missing_one, path, properties.get(name)))

    def _missing_one(self, path: str, node: Any) -> ArgumentProblem:
        return missing_problem(path, describe_one_value(node, self._schema))

    def _unknown_names(
        self, place: list[str | int], node: Mapping[str, Any], instance: Mapping[str, Any]
    ) -> Iterator[LazyProblem]:
        properties = cast("Mapping[str, Any]", node.get("properties", {}))
        for name in instance:
            if name not in properties:
                path = path_text([*place, name])
                yield LazyProblem(path, partial(unknown_problem, path, name, properties))


_SAID_OF_A_TYPE = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems"),
    }
)
_SAID_IN_WORDS = _SAID_OF_A_TYPE | {"type", "enum", "const", "anyOf"}


def _wrong_tag(node: Mapping[str, Any], instance: Any, root: Mapping[str, Any]) -> Tags | None:
    """Returns the field that tells the objects of a union apart, if the object has none of its values there."""
    tags = tags_of(node, root) if isinstance(instance, dict) else None
    return None if tags is None or tags.option_for(cast("dict[str, Any]", instance)) is not None else tags


def _errors_of_meant_option(
    error: ValidationError, node: Mapping[str, Any], root: Mapping[str, Any]
) -> list[ValidationError]:
    """Returns the errors of the alternative that the value is meant to be.

    It is the one that a field of the object names, or the only one with the value's JSON type. Empty if there is none.
    """
    value = cast("Any", error.instance)
    kind = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
    options = [resolve(option, root) for option in cast("list[Any]", node[str(error.validator)])]
    tags = tags_of(node, root) if kind == "object" else None
    named = None if tags is None else tags.option_for(cast("dict[str, Any]", value))
    fitting = [place for place, option in enumerate(options) if option is named]
    if not fitting:
        fitting = [place for place, option in enumerate(options) if kind and _may_be(option, kind)]
    return [inner for inner in error.context or [] if len(fitting) == 1 and inner.relative_schema_path[0] == fitting[0]]


def _may_be(option: Mapping[str, Any], kind: str) -> bool:
    return option.get("type") == kind or ("type" not in option and bool({"anyOf", "oneOf"} & option.keys()))


def _draft(schema: Mapping[str, Any]) -> Any:
    return validator_for(schema, default=Draft202012Validator)


@cache
def _schemas_validator(draft: Any) -> tuple[Any, Patterns]:
    """Returns a validator for the draft's own schema as a single document, and its patterns.

    Newer drafts spread their schema over several documents. Looking up each of them takes six times as long.
    """
    whole: dict[str, Any] = {key: value for key, value in draft.META_SCHEMA.items() if key not in ("$id", "$schema")}
    for part in cast("list[dict[str, str]]", whole.pop("allOf", [])):
        vocabulary = cast("Any", SPECIFICATIONS)[urljoin(str(draft.META_SCHEMA["$id"]), part["$ref"])].contents
        for key in ("properties", "$defs"):
            whole[key] = {**vocabulary.get(key, {}), **whole.get(key, {})}
    schema = _resolve_meta_references(whole)
    return validator_with_counter(draft)(schema), patterns_of(schema, "JSON Schema")


_SCHEMA_STEPS_LIMIT = 100 * SCHEMA_NODES_LIMIT
"""Maximum number of steps for checking a schema itself. Each of its values takes about ten."""

_SCHEMA_DEPTH_LIMIT = 4 * SCHEMA_LEVELS_LIMIT


def _schema_error(schema: Mapping[str, Any], label: str) -> ValidationError | None:
    """Returns the first reason why the schema is not a JSON schema, or None."""
    validator, patterns = _schemas_validator(_draft(schema))
    token = RUN.set(SchemaRun(patterns=patterns, steps_limit=_SCHEMA_STEPS_LIMIT, depth_limit=_SCHEMA_DEPTH_LIMIT))
    try:
        return next(validator.iter_errors(brief(schema)), None)
    except (Exceeded, RecursionError) as error:
        raise DefinitionError(f"{label}: its schema is nested too deeply to be checked: make it flatter") from error
    finally:
        RUN.reset(token)


def _resolve_meta_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_resolve_meta_references(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, Any]", schema)
    if node in ({"$dynamicRef": "#meta"}, {"$recursiveRef": "#"}):
        return {"$ref": "#"}
    if str(node.get("$ref", "")).startswith("meta/"):
        # The documents are one here, and old keywords such as `dependencies` refer to the others by name.
        return {"$ref": f"#{node['$ref'].partition('#')[2]}"}
    return {key: _resolve_meta_references(value) for key, value in node.items()}


_NO_DOCUMENTS = cast("Any", referencing.Registry)()
"""An own, empty registry. jsonschema would fetch unknown documents with its default."""


def _resolver(schema: Mapping[str, Any]) -> Any:
    """Returns a resolver for the schema.

    It is crawled once, because each anchor lookup would crawl the whole schema again.
    """
    resource = referencing.Resource.from_contents(schema, default_specification=_specification(schema))
    uri = resource.id() or ""
    return _NO_DOCUMENTS.with_resource(uri, resource).crawl().resolver(uri)


def _specification(schema: Mapping[str, Any]) -> Any:
    return specification_with(str(_draft(schema).META_SCHEMA["$schema"]), default=DRAFT202012)


_LARGE = 1_000
"""Number of values, or of texts of `_CHARACTERS`, from which arguments count as too large for a check."""

_CHARACTERS = 256


def _argument_size(arguments: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the number of values, and the number of characters of all texts, in the arguments."""
    values = characters = 0
    waiting: list[Any] = [arguments]
    while waiting:
        value = waiting.pop()
        values += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, dict):
            keyed = cast("dict[str, Any]", value)
            characters += sum(map(len, keyed))
            waiting.extend(keyed.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[Any]", value))
    return values, characters
