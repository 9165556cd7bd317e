"""The tools of a document's operations."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args
from urllib.parse import unquote

import httpx2
from fastmcp.utilities.openapi import HTTPRoute

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Permission, Tool
from toolwire.openapi.api_document import ApiDocument, read_document
from toolwire.openapi.api_results import result_of
from toolwire.openapi.api_server import (
    ANSWER_LIMIT_BYTES,
    AnswerTooLong,
    Headers,
    HeaderValue,
    NotPublic,
    Server,
    WrongHeader,
    find_server,
    warn_of_other_servers,
)
from toolwire.openapi.arguments import DIRECTOR, Place, WrongArgument, content_type_of, places_of, written
from toolwire.openapi.operations import Operation, choose_operations, component_of, parse_operations, write_booleans
from toolwire.openapi.references import resolve_references
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Idempotency
from toolwire.vocabulary.errors import CallNotAnswered, ConfigurationError, DefinitionError
from toolwire.vocabulary.results import ToolResult

READS = ("GET", "HEAD")
"""The methods that only look."""
REPEATABLE = (*READS, "PUT", "DELETE")
"""The methods of which a second request changes nothing."""
KEY_HEADER = "idempotency-key"
"""The header by which a server recognises a call that is repeated."""
_HOSTS_HEADERS = frozenset(
    {
        *("accept", "content-type", "authorization"),
        *("accept-encoding", "connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"),
        "user-agent",
        *("x-http-method", "x-http-method-override", "x-method-override"),
    }
)
"""Headers that no model gives: those that OpenAPI 3 does not take from parameters, those of the connection, and those
that would make a GET, for which no person is asked, a DELETE.
"""
_STATE = "state."
"""How the names of parameters begin whose values come from the state."""

_NO_USE = "Other arguments will not help."
"""The hint of a failure that the owner can mend alone."""

_LOG = logging.getLogger("toolwire.openapi")


def tools_of_document(
    source: object,
    *,
    client: object = None,
    headers: Mapping[str, HeaderValue] | None = None,
    include: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    permission: Permission | None = None,
    error_limit_bytes: int,
) -> list[Tool]:
    """Returns a tool for each wanted operation of a document. See `ToolRegistry.register_openapi`.

    `error_limit_bytes` is the maximum of an error's body in its message.

    Raises:
        ConfigurationError: An argument cannot be used, or the document cannot be read.
        DefinitionError: It is not an OpenAPI 3 document, or it is broken.
    """
    if permission not in (None, *get_args(Permission)):
        raise ConfigurationError(f"permission={permission!r:.80} is unknown: write 'auto', 'confirm' or 'deny'")
    document, given = read_document(source), Headers(headers)
    server = find_server(document, client)
    write_booleans(document)
    resolve_references(document)
    own = _places_of_the_owner(document, given, client)
    operations = choose_operations(document, include, exclude)
    for each in operations:
        warn_of_other_servers(document, [(f"paths.{each.path}", each.item), (each.title, each.content)])
    found: list[Tool] = []
    for operation, route in parse_operations(document, operations):
        declared = operation.declared_parameters(document.content)
        try:
            found.append(_tool(_Parts(operation, route, declared, server, given, own, error_limit_bytes), permission))
        except DefinitionError as error:
            _LOG.warning("%s: %s is left out: %s", document.label, operation.title, error)
    return found


def _places_of_the_owner(document: ApiDocument, headers: Headers, client: object) -> frozenset[tuple[str, str]]:
    """Returns the places that no model fills: keys of the API, and what `headers` or the client send themselves."""
    found = {("header", name) for name in headers.names}
    if isinstance(client, httpx2.AsyncClient):
        found |= {("header", name.lower()) for name in client.headers}
        found |= {("query", name) for name in client.params} | {("cookie", name) for name in client.cookies}
    schemes = cast("dict[str, Any]", document.content.get("components") or {}).get("securitySchemes")
    for one in cast("dict[str, Any]", schemes if isinstance(schemes, dict) else {}).values():
        scheme = component_of(document.content, one)
        if scheme.get("type") == "apiKey":
            where, name = str(scheme.get("in")), str(scheme.get("name"))
            found.add((where, name.lower() if where == "header" else name))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Parts:
    """All that makes the tool of one operation."""

    operation: Operation
    route: HTTPRoute
    declared: list[dict[str, Any]]
    server: Server
    headers: Headers
    own: frozenset[tuple[str, str]]
    error_limit_bytes: int


def _tool(parts: _Parts, permission: Permission | None) -> Tool:
    operation, route = parts.operation, parts.route
    places = places_of(route, parts.declared)
    key = next(
        (place.name for place in places.values() if _is_key(place) and KEY_HEADER not in parts.headers.names), ""
    )
    is_read, is_repeatable = operation.method in READS, operation.method in REPEATABLE
    idempotent: Idempotency = "key" if key else "natural" if is_repeatable else "no"
    said = [text for text in (route.summary, route.description) if text]
    tool = from_schema(
        operation.name,
        "\n\n".join(dict.fromkeys(said)) or operation.title,
        _input_schema(parts, places),
        None,
        _function(parts, places, key),
        title=operation.title,
        permission=permission or ("auto" if is_read else "confirm"),
        # A write carries its arguments to a server, so the guard on private and untrusted data asks about it.
        effects=("read",) if is_read else ("write", "send"),
        idempotent=idempotent,
        labels=("untrusted",),
        is_outside=True,
    )
    for state_key in parts.headers.state_keys:
        tool.bindings.bind(f"{_STATE}{state_key}", state_key)
    return tool


def _is_key(place: Place) -> bool:
    return place.location == "header" and place.name.lower() == KEY_HEADER


def _input_schema(parts: _Parts, places: Mapping[str, Place]) -> dict[str, Any]:
    """Returns the schema of the arguments that a model gives, and of the values that come from the state.

    Raises:
        DefinitionError: The operation needs a file, or a part of its path is not described.
    """
    flat = copy.deepcopy(parts.route.flat_param_schema)
    _correct_references(flat)
    properties = cast("dict[str, Any]", flat["properties"])
    required = {name for name in flat.get("required", []) if name in properties}
    _require_path(parts.route, places)
    for name, place in places.items():
        schema = properties.get(name)
        if _is_hidden(place, parts.own):
            del properties[name]
        elif _is_file(schema, flat.get("$defs", {}), content_type_of(parts.route)):
            if name in required:
                raise DefinitionError(f"it needs a file as {name!r}, and a model has none to send")
            _LOG.warning("%s goes without the file %r", parts.operation.title, name)
            del properties[name]
        else:
            properties[name] = _with_default_in_words(schema)
            required |= {name} if place.location == "path" else set()
    for key in parts.headers.state_keys:
        # Of any type: the call itself says what is wrong with a value, and other calls of its reply run.
        properties[f"{_STATE}{key}"] = {}
    return {
        **flat,
        "required": [name for name in properties if name in required or name.startswith(_STATE)],
        "additionalProperties": False,
    }


def _require_path(route: HTTPRoute, places: Mapping[str, Place]) -> None:
    described = {place.name for place in places.values() if place.location == "path"}
    for part in route.path.split("{")[1:]:
        name = part.partition("}")[0]
        if name not in described:
            raise DefinitionError(f"its path has {{{name}}}, which is not among its parameters")
    # Decoded twice: a proxy and the server behind it may each do so.
    if any(unquote(part) in (".", "..") for part in re.split(r"[/\\]", unquote(route.path))):
        raise DefinitionError("its path leads out of the server's")


def _is_hidden(place: Place, own: frozenset[tuple[str, str]]) -> bool:
    if place.location != "header":
        # Cookies that the owner sends as a header would replace those of the model.
        return (place.location, place.name) in own or (place.location == "cookie" and ("header", "cookie") in own)
    name = place.name.lower()
    return name in _HOSTS_HEADERS or name == KEY_HEADER or ("header", name) in own


def _correct_references(node: object) -> None:
    """Corrects references below keywords that the parser does not walk, such as `not` and `if`.

    Keywords of an older draft have no meaning in OpenAPI, and would make the schema wrong.
    """
    stack = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, dict):
            members = cast("dict[str, Any]", inner)
            reference = members.get("$ref")
            if isinstance(reference, str):
                members["$ref"] = reference.replace("#/components/schemas/", "#/$defs/", 1)
            members.pop("$recursiveAnchor", None)
            members.pop("$recursiveRef", None)
            stack += members.values()
        elif isinstance(inner, list):
            stack += cast("list[object]", inner)


def _is_file(schema: Any, definitions: Mapping[str, Any], content_type: str) -> bool:
    """True if the value is the bytes of a file, or a list of files."""
    node = _definition(schema, definitions)
    choices = [_definition(one, definitions) for key in ("anyOf", "oneOf", "allOf") for one in node.get(key, [])]
    choices = [one for one in choices if one.get("type") != "null"]
    if choices:
        return all(_is_file(one, {}, content_type) for one in choices)
    if "items" in node:
        return _is_file(node["items"], definitions, content_type)
    is_upload = content_type.startswith("multipart/") and node.get("format") == "byte"
    is_encoded = bool(node.get("contentEncoding")) or node.get("format") in ("binary", "base64")
    has_kind = "contentMediaType" in node and "json" not in node["contentMediaType"]
    return is_upload or is_encoded or has_kind


def _definition(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    reference = cast("dict[str, Any]", schema).get("$ref") if isinstance(schema, dict) else None
    if isinstance(reference, str):
        schema = definitions.get(reference.rpartition("/")[2])
    return cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}


def _with_default_in_words(schema: object) -> object:
    """Returns the schema with its default in its description.

    The server fills defaults in. Sent by us, they would overwrite what a PATCH leaves alone.
    """
    if not isinstance(schema, dict) or "default" not in schema:
        return cast("object", schema)
    node = cast("dict[str, Any]", schema)
    default = json.dumps(node.pop("default"), ensure_ascii=False)
    words = f"{str(node.get('description', '')).rstrip()} (default: {default})".strip()
    return node if default == "null" else {**node, "description": words}


def _function(parts: _Parts, places: Mapping[str, Place], key: str) -> Callable[..., Any]:
    operation, route, server, headers = parts.operation, parts.route, parts.server, parts.headers
    is_read = operation.method in READS

    async def call(context: CallContext, /, **arguments: Any) -> ToolResult:
        state = {name: arguments.pop(f"{_STATE}{name}") for name in headers.state_keys}
        try:
            request = build_request(route, arguments, places, server.base_url)
            # An object in the query has members of any name.
            if taken := [name for name in request.url.params if ("query", name) in parts.own]:
                raise WrongArgument(f"{taken[0]!r} in the query is not for you to give")
        except (WrongArgument, ValueError) as error:
            return ToolResult.failed("invalid_arguments", f"{error}.")
        try:
            own = await headers.values_for(context, state)
        except WrongHeader as error:
            _LOG.warning("%s was not sent: %s", operation.title, error)
            return ToolResult.failed("tool_error", f"{operation.title} was not sent: {error}.", hint=_NO_USE)
        try:
            answer = await server.send(request, {key: context.idempotency_key, **own} if key else own)
        except AnswerTooLong as error:
            done = "" if is_read else " The request itself was sent, and may have taken effect."
            return ToolResult.failed("limit", f"{operation.title}: {error}.{done}", data={"limit": ANSWER_LIMIT_BYTES})
        except NotPublic as error:
            return ToolResult.failed("tool_error", f"{error}.", hint=_NO_USE, exception=error)
        except CallNotAnswered as error:
            if not is_read:
                raise
            return ToolResult.failed("unavailable", f"{operation.title}: {error}.", exception=error)
        return result_of(answer, operation.title, is_read=is_read, error_limit_bytes=parts.error_limit_bytes)

    return call


def _needs_json(route: HTTPRoute) -> bool:
    return route.request_body is not None and route.request_body.required and "json" in content_type_of(route).lower()


def build_request(
    route: HTTPRoute, arguments: Mapping[str, Any], places: Mapping[str, Place], base_url: str
) -> httpx2.Request:
    """Returns the request of a call.

    Raises:
        WrongArgument: An argument cannot be sent in its place.
        ValueError: An argument would lead to another path, or cannot be written.
    """
    request = DIRECTOR.build(route, written(arguments, places), base_url)
    nulls = {
        place.name: None
        for name, place in places.items()
        if place.location == "body" and not place.is_whole and not place.is_form and name in arguments
        if arguments[name] is None
    }
    is_whole = any(place.is_whole for place in places.values())
    is_empty = not is_whole and _needs_json(route) and not request.read()
    if not nulls and not is_empty:
        return request
    # The director leaves nulls out, and a PATCH with one means another thing. Nor does it send an empty object, which
    # a server refuses that needs one.
    body = cast("dict[str, Any]", json.loads(request.read() or b"{}")) | nulls
    headers = {name: value for name, value in request.headers.items() if name.lower() != "content-length"}
    headers["Content-Type"] = content_type_of(route)
    return httpx2.Request(request.method, request.url, headers=headers, content=json.dumps(body).encode())
