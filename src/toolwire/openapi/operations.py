"""The operations of a document: their names, which of them are wanted, and their routes by FastMCP's parser."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

from fastmcp.utilities.openapi import HTTPRoute, parse_openapi_to_http_routes
from pydantic import ValidationError

from toolwire.definition.naming import program_parameter
from toolwire.openapi.api_document import ApiDocument
from toolwire.openapi.references import objects_in
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError
from toolwire.vocabulary.texts.counting import count_of

OPERATIONS_LIMIT = 2_000
"""Maximum operations of a document that become tools. GitHub's has 1,000; no model can choose among more."""
NAME_CHARS = 64
"""Maximum characters of a tool's name, the most that providers accept."""
SHOWN_NAMES = 5
"""Numbered names that a warning shows. Some documents name each operation twice."""
METHODS = ("get", "head", "put", "delete", "post", "patch")
"""The methods of operations that become tools. OPTIONS and TRACE are about the connection."""
_OTHER_KEYS = frozenset({"$ref", "summary", "description", "servers", "parameters", "options", "trace"})
"""What a path may have besides."""
_SCHEMAS = frozenset(
    {
        *("schema", "items", "not", "contains", "propertyNames", "if", "then", "else", "contentSchema"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "schemas"})
"""Keywords whose values are schemas, lists of schemas, and schemas by name."""

_LOG = logging.getLogger("toolwire.openapi")
_PARSER_LOG = logging.getLogger("fastmcp.utilities.openapi.parser")
_JSON = re.compile(r"(?:application/(?:[\w.+-]*\+)?json|text/json)(?:;.*)?|\*/\*|application/\*", re.IGNORECASE)
_BODIES = (
    _JSON,
    re.compile(r"application/x-www-form-urlencoded", re.IGNORECASE),
    re.compile(r"multipart/form-data", re.IGNORECASE),
    re.compile(r"text/(?!xml)[\w.+*-]+(?:;.*)?", re.IGNORECASE),
)
"""The content types of bodies that can be made of arguments, the best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a document."""

    name: str
    """The name of its tool."""
    method: str
    """The method in upper case."""
    path: str
    """The path, with its parameters in braces."""
    content: dict[str, Any]
    """The operation as the document has it."""
    item: dict[str, Any]
    """All that the document has of the path."""

    @property
    def title(self) -> str:
        """The operation as people write it, such as `GET /pets/{id}`."""
        return f"{self.method} {self.path}"

    def declared_parameters(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Returns the parameters of the operation and of its path; references are followed."""
        found: dict[tuple[Any, Any], dict[str, Any]] = {}
        for parameter in [*_list_of(self.content, "parameters"), *_list_of(self.item, "parameters")]:
            meant = component_of(document, parameter)
            found.setdefault((meant.get("in"), meant.get("name")), meant)
        return list(found.values())


def component_of(document: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Returns the object itself, or the component that its `$ref` means. References have been checked."""
    while isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        reference = members.get("$ref")
        if not isinstance(reference, str):
            return members
        _, _, kind, name = reference.split("/")
        value = document["components"][kind][name]
    return {}


def _list_of(holder: Mapping[str, Any], key: str) -> list[Any]:
    found = holder.get(key)
    return cast("list[Any]", found) if isinstance(found, list) else []


def write_booleans(document: ApiDocument) -> None:
    """Writes schemas that are true or false as objects, because the parser knows no others."""
    for members, place, is_map in objects_in(document.content):
        for key, inner in members.items():
            if place[-1] in _SCHEMA_MAPS if is_map else key in _SCHEMAS:
                members[key] = _as_object(inner)
            elif isinstance(inner, list) and key in _SCHEMA_LISTS and not is_map:
                members[key] = [_as_object(each) for each in cast("list[object]", inner)]


def _as_object(schema: object) -> object:
    if not isinstance(schema, bool):
        return schema
    return {} if schema else {"not": {}}


def choose_operations(
    document: ApiDocument, include: Iterable[str] | None, exclude: Iterable[str] | None
) -> list[Operation]:
    """Returns the operations that are wanted, under names of which no two are the same.

    Raises:
        ConfigurationError: A pattern matches nothing, or there are too many operations.
        DefinitionError: An operation is not an object.
    """
    operations = _list_operations(document)
    wanted, unwanted = _patterns("include", include), _patterns("exclude", exclude)
    for option, patterns in (("include", wanted or []), ("exclude", unwanted or [])):
        for pattern in patterns:
            if not any(_matches(operation, [pattern]) for operation in operations):
                raise ConfigurationError(
                    f"{option}=[{pattern!r:.100}] matches no operation of {document.label}: write a tool's name or "
                    "'METHOD /path', with '*' for any text"
                )
    chosen = [
        operation
        for operation in operations
        if (wanted is None or _matches(operation, wanted)) and not _matches(operation, unwanted or [])
    ]
    if operations and not chosen:
        raise ConfigurationError(
            f"include= and exclude= leave none of {count_of(len(operations), 'operation')} of {document.label}: "
            "choose some, or leave both out"
        )
    if len(chosen) > OPERATIONS_LIMIT:
        raise ConfigurationError(
            f"{document.label} has {len(chosen):,} operations, and at most {OPERATIONS_LIMIT:,} can become tools: "
            "choose some with include=['GET /orders*', ...]"
        )
    return chosen


def _patterns(option: str, given: Iterable[str] | None) -> list[str] | None:
    if isinstance(given, str) or not isinstance(cast("object", given), Iterable | None):
        raise ConfigurationError(f"{option}={given!r:.100}: write a list of patterns, {option}=[{given!r:.100}]")
    patterns = None if given is None else list(given)
    if any(not isinstance(cast("object", each), str) for each in patterns or ()):
        raise ConfigurationError(f"{option}={patterns!r:.100}: a pattern is a text, such as 'GET /orders*'")
    return patterns


def _matches(operation: Operation, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(operation.name, each) or fnmatchcase(operation.title, each) for each in patterns)


def _list_operations(document: ApiDocument) -> list[Operation]:
    found: list[Operation] = []
    names, renamed = dict[str, int](), list[str]()
    for path, item in cast("dict[str, Any]", document.content.get("paths", {})).items():
        for method, content in item.items() if path.startswith("/") else ():
            if method not in METHODS or content is None:
                if method not in _OTHER_KEYS and not method.startswith("x-"):
                    _LOG.warning("%s: paths.%s.%s is not read", document.label, path, method)
                continue
            if not isinstance(content, dict):
                raise DefinitionError(f"{document.label}: paths.{path}.{method} must be an object, not {content!r:.80}")
            operation = cast("dict[str, Any]", content)
            wanted = _name_of(operation.get("operationId"), method, path)
            name = _free_name(wanted, names)
            renamed += [f"{method.upper()} {path} is {name!r}"] if name != wanted else []
            found.append(Operation(name=name, method=method.upper(), path=path, content=operation, item=item))
    if not found:
        _LOG.warning("%s has no operation that can become a tool", document.label)
    if renamed:
        more = f", and {len(renamed) - SHOWN_NAMES} more" if len(renamed) > SHOWN_NAMES else ""
        _LOG.warning(
            "%s: names of operations occur twice and have a number: %s%s",
            *(document.label, ", ".join(renamed[:SHOWN_NAMES]), more),
        )
    return found


def _name_of(operation_id: object, method: str, path: str) -> str:
    """Returns a name that programs can write: that of the operation, else the method and the path."""
    given = operation_id if isinstance(operation_id, str) else ""
    for text in (given, re.sub(r"[\W_]+", "_", f"{method}_{path}")):
        words = re.sub(r"\W+", "_", text).strip("_")[:NAME_CHARS].strip("_")
        if words:
            return program_parameter(words)[:NAME_CHARS]
    return f"{method}_root"


def _free_name(wanted: str, names: dict[str, int]) -> str:
    """Returns the name, with a number if it is taken. `names` has the last number of each name that was wanted."""
    name, number = wanted, names.get(wanted, 0)
    while name in names:
        number += 1
        ending = f"_{number}"
        name = f"{wanted[: NAME_CHARS - len(ending)]}{ending}" if number > 1 else wanted
    names[wanted] = max(number, 1)
    names.setdefault(name, 1)
    return name


def parse_operations(document: ApiDocument, operations: Iterable[Operation]) -> list[tuple[Operation, HTTPRoute]]:
    """Returns the operations with their routes. A warning names each one that cannot become a tool.

    Raises:
        DefinitionError: A part of the document that these operations need is broken.
    """
    wanted = {(each.method, each.path): each for each in operations if _prepare_body(document, each)}
    content = _part_for_parser(document.content, wanted.values())
    try:
        with _without_log():
            routes = parse_openapi_to_http_routes(content)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DefinitionError(f"{document.label} is broken: {_reason(error)}") from error
    parsed = {(str(route.method), route.path): route for route in routes}
    found: list[tuple[Operation, HTTPRoute]] = []
    for key, operation in wanted.items():
        route, declared = parsed.get(key), operation.declared_parameters(document.content)
        if route is None or len(route.parameters) < len(declared):
            _LOG.warning("%s: %s is left out: a parameter or its body is broken", document.label, operation.title)
        else:
            found.append((operation, route))
    return found


@contextmanager
def _without_log() -> Generator[None]:
    """Drops what the parser logs in this thread: the error that it raises says the same in fewer words."""
    here = threading.get_ident()

    def is_of_another(record: logging.LogRecord) -> bool:
        return record.thread != here

    _PARSER_LOG.addFilter(is_of_another)
    try:
        yield
    finally:
        _PARSER_LOG.removeFilter(is_of_another)


def _prepare_body(document: ApiDocument, operation: Operation) -> bool:
    """Leaves only the content type of the body that is sent. False, with a warning, if none can be.

    Bodies that are not needed and cannot be made of arguments are left out.
    """
    body = component_of(document.content, operation.content.get("requestBody"))
    content = body.get("content")
    if not isinstance(content, dict) or not content:
        return True
    kinds = cast("dict[str, Any]", content)
    best = next((kind for form in _BODIES for kind in kinds if form.fullmatch(kind)), None)
    if best is not None:
        media = cast("dict[str, Any]", kinds[best] if isinstance(kinds[best], dict) else {})
        is_text = best.lower().startswith("text/") and _JSON.fullmatch(best) is None
        media.setdefault("schema", {"type": "string"} if is_text else {})
        body["content"] = {"application/json" if best.endswith("*") and not is_text else best: media}
        return True
    is_needed = body.get("required") is True
    _LOG.warning(
        "%s: %s %s: its body is %s, which cannot be made of arguments",
        *(document.label, operation.title, "is left out" if is_needed else "goes without its body"),
        ", ".join(kinds)[:200],
    )
    operation.content.pop("requestBody", None)
    return not is_needed


def _part_for_parser(document: Mapping[str, Any], operations: Iterable[Operation]) -> dict[str, Any]:
    """Returns the part of the document that tells of these requests, and nothing of answers."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        item = paths.setdefault(each.path, {"parameters": _list_of(each.item, "parameters")})
        kept = ("operationId", "summary", "description", "parameters", "requestBody")
        item[each.method.lower()] = {key: each.content[key] for key in kept if key in each.content} | {"responses": {}}
    components = cast("dict[str, Any]", document.get("components") or {})
    shared = {kind: components[kind] for kind in ("schemas", "parameters", "requestBodies") if components.get(kind)}
    info = {"title": "", "version": ""}
    # The parser knows the versions of its time. What is read here has the same meaning in later ones.
    version = "3.0.3" if document["openapi"].startswith("3.0") else "3.1.0"
    content = {"openapi": version, "info": info, "paths": paths, "components": shared}
    _drop_read_only(document, content)
    return content


def _drop_read_only(document: Mapping[str, Any], content: dict[str, Any]) -> None:
    """Takes the properties out of all schemas that only answers have."""
    for members, _, is_map in objects_in(content):
        properties = None if is_map else members.get("properties")
        if isinstance(properties, dict):
            named = cast("dict[str, Any]", properties)
            gone = [name for name, schema in named.items() if _is_read_only(document, schema)]
            for name in gone:
                del named[name]
            if gone and isinstance(members.get("required"), list):
                members["required"] = [name for name in members["required"] if name not in gone]


def _is_read_only(document: Mapping[str, Any], schema: object) -> bool:
    own = cast("dict[str, object]", schema).get("readOnly") if isinstance(schema, dict) else None
    return (component_of(document, schema).get("readOnly") if own is None else own) is True


def _reason(error: BaseException) -> str:
    """Returns the first places that are wrong, and why."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return str(error)[:500] or type(error).__name__
    found = cause.errors(include_url=False)
    # Each place may also hold a reference, so that the parser misses a `$ref` everywhere.
    found = [each for each in found if "Reference" not in each["loc"]] or found
    wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found[:3]]
    return f"{'; '.join(wrong)[:1_000]}. Correct it, or leave out an operation that is broken with exclude=[...]"
