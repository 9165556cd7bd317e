"""Requests to a person, as forms of MCP, and the decisions that the filled forms hold.

A form is flat: its fields are texts, numbers, booleans and choices.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from toolwire.gateway.asking.request_end import request_end
from toolwire.mcp.convert import field_of
from toolwire.permission.approval import ApprovalRequest, Decider, Decision
from toolwire.permission.deciding import rule_for
from toolwire.permission.rendering import render
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.questions import Question, QuestionDeclined
from toolwire.vocabulary.texts.invisible import visible_text
from toolwire.vocabulary.texts.lone_surrogates import encodable, encodable_text
from toolwire.vocabulary.values import plain_value

_LOG = logging.getLogger("toolwire.gateway")

SendToClient = Callable[[Any, type[Any]], Awaitable[Any]]
"""Sends a request to the client of a call. Returns its answer in that type; None if none comes."""

ONCE, ALL, NO = "once", "all calls of this tool in this run", "no"
"""The choices of a form that asks for approval."""

_DECISION, _ANSWER = "decision", "answer"
_CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {_DECISION: {"type": "string", "title": "Run this call?", "enum": [ONCE, ALL, NO]}},
    "required": [_DECISION],
}
KEY_CHARACTERS = 128
"""Maximum characters of a form's key, as of a tool's name. A question with a longer name has its id as the key."""

_COMMON_KEYS = {"type", "title", "description", "default"}
_FIELD_KEYS = {
    "string": _COMMON_KEYS | {"minLength", "maxLength", "format", "enum", "enumNames", "oneOf"},
    "number": _COMMON_KEYS | {"minimum", "maximum"},
    "integer": _COMMON_KEYS | {"minimum", "maximum"},
    "boolean": _COMMON_KEYS,
    "array": _COMMON_KEYS | {"minItems", "maxItems", "items"},
}
"""The keywords that a form knows. The answer is checked against the whole schema here."""

_FORMATS = {"date", "date-time", "email", "uri"}


def can_be_asked(context: ServerRequestContext[Any, Any]) -> bool:
    """True if the client shows forms. An empty capability means forms alone."""
    capabilities = context.session.client_capabilities
    asking = None if capabilities is None else capabilities.elicitation
    return asking is not None and (asking.form is not None or asking.url is None)


async def ask_for_server(send: SendToClient, server: str, question: Question) -> Any:
    """Returns the answer of the client's person to a server behind this one, which waits for it.

    None if no answer can come; a `QuestionDeclined` if the person declines. The form names the server.
    """
    message = f"The MCP server {server!r} asks:\n{visible_text(question.message)}"
    schema = encodable(plain_value(_answer_form(question.schema)))
    form = types.ElicitRequestFormParams(message=encodable_text(message), requested_schema=schema)
    try:
        said = await send(types.ElicitRequest(params=form), types.ElicitResult)
    except MCPError as error:
        _LOG.warning("an MCP client did not answer a question of the server %r: %s", server, error)
        return None
    if not isinstance(said, types.ElicitResult):
        return None
    if said.action == "decline":
        return QuestionDeclined(question.message)
    return _read_form_content(question.schema, said.content or {}) if said.action == "accept" else None


async def ask_person(context: ServerRequestContext[Any, Any], request: ApprovalRequest) -> types.ElicitResult | None:
    """Returns the filled form. None if no answer can come: the client is gone or refuses, or the request expired."""
    form = shown_form(request)
    if form is None:
        return None
    said: types.ElicitResult | None = None
    async with anyio.create_task_group() as tasks:
        end = request_end(context.request)
        if end is not None:
            tasks.start_soon(_cancel_after, end, tasks.cancel_scope)
        left_s = max(0.0, request.expires_at - time.time()) if request.expires_at else math.inf
        with anyio.move_on_after(left_s):
            try:
                said = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
            except MCPError as error:
                _LOG.warning("an MCP client did not answer request %s: %s", request.id, error)
        tasks.cancel_scope.cancel()
    return said


def shown_form(request: ApprovalRequest) -> types.ElicitRequestFormParams | None:
    """Returns the form of a request; None if a form cannot show its arguments."""
    try:
        return form_of(request)
    except Unrepresentable:
        _LOG.exception("request %s cannot be shown to a person", request.id)
        return None


def form_of(request: ApprovalRequest) -> types.ElicitRequestFormParams:
    """Returns the form for a request, in characters that UTF-8 can encode.

    Raises:
        Unrepresentable: The arguments cannot be shown.
    """
    schema = _CHOICES if request.kind == "approval" else _answer_form(request.answer_schema)
    return types.ElicitRequestFormParams(
        message=encodable_text(render(request)), requested_schema=encodable(plain_value(schema))
    )


async def _cancel_after(end: anyio.Event, scope: anyio.CancelScope) -> None:
    await end.wait()
    scope.cancel()


def form_keys(pending: Iterable[ApprovalRequest]) -> dict[str, str]:
    """Returns the keys of forms in one answer, by request: the name that the tool gave its question, or else the id."""
    requests = list(pending)
    times = Counter(request.name for request in requests)
    return {
        request.id: request.name if 0 < len(request.name) <= KEY_CHARACTERS and times[request.name] == 1 else request.id
        for request in requests
    }


def decision_of(request: ApprovalRequest, said: types.ElicitResult, by: Decider) -> Decision | None:
    """Returns the decision that a filled form holds. None if the person made no choice, or the form is not valid."""
    common: dict[str, Any] = {
        "request_id": request.id,
        "by": by,
        "seen_arguments_digest": request.arguments_digest,
    }
    if said.action == "decline":
        return Decision(verdict="deny", reason="the person declined", **common)
    if said.action != "accept":
        return None
    content: Mapping[str, Any] = said.content or {}
    if request.kind == "question":
        answer = _read_form_content(request.answer_schema, content)
        return None if answer is None else Decision(verdict="answer", answer=answer, **common)
    match content.get(_DECISION):
        case "once":
            return Decision(verdict="approve", **common)
        case "no":
            return Decision(verdict="deny", reason="the person said no", **common)
        case choice if choice == ALL:
            return Decision(verdict="approve", remember=rule_for(request, same_arguments=False), **common)
        case _:
            return None


def _answer_form(schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = _flat_fields(schema)
    if fields is not None:
        return {"type": "object", "properties": fields, "required": list(schema.get("required", ()))}
    field = _form_field(schema) if schema else {"type": "string"}
    if field is None:
        field = {"type": "string", "title": "JSON", "description": f"JSON that fits {json.dumps(dict(schema))}"}
    return {"type": "object", "properties": {_ANSWER: field}, "required": [_ANSWER]}


def _flat_fields(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the fields of an object with simple fields alone; None for any other schema."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        return None
    fields = {str(name): _form_field(field) for name, field in cast("Mapping[str, Any]", properties).items()}
    return cast("dict[str, Any]", fields) if None not in fields.values() else None


def _form_field(schema: Any) -> dict[str, Any] | None:
    """Returns the schema of one field, with the keywords that a form knows; None if a form cannot have it."""
    if not isinstance(schema, Mapping):
        return None
    given = cast("Mapping[str, Any]", schema)
    kind = given.get("type")
    keys = _FIELD_KEYS.get(kind) if isinstance(kind, str) else None
    if keys is None or not _has_simple_choices(given if kind != "array" else given.get("items"), kind):
        return None
    field = {key: value for key, value in given.items() if key in keys}
    if field.get("format") not in _FORMATS:
        field.pop("format", None)
    return field


def _has_simple_choices(schema: Any, kind: Any) -> bool:
    """True if the choices are texts, with or without titles. A field for several choices has nothing but choices."""
    if not isinstance(schema, Mapping):
        return False
    given = cast("Mapping[str, Any]", schema)
    titled = given.get("anyOf" if kind == "array" else "oneOf", ())
    plain = given.get("enum", ())
    if kind == "array" and not (titled or plain):
        return False
    choices: list[Any] = [*plain, *(field_of(one, "const") for one in titled)]
    return all(isinstance(choice, str) for choice in choices)


def _read_form_content(schema: Mapping[str, Any], content: Mapping[str, Any]) -> Any:
    """Returns the answer; None if the form is not valid."""
    if _flat_fields(schema) is not None:
        return {name: value for name, value in content.items() if value is not None}
    answer = content.get(_ANSWER)
    if not schema or _form_field(schema) is not None:
        return answer
    try:
        return json.loads(answer) if isinstance(answer, str) else None
    except (ValueError, RecursionError):
        return None
