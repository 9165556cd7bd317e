"""Questions of a server to a person, and the answers as the server reads them.

A form is a stranger's schema. It must be flat and small, or it is declined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    InputResponse,
)
from pydantic import ValidationError

from toolwire.definition.hostile.schema_limits import check_limits
from toolwire.definition.json_schema.validator import check_schema
from toolwire.mcp.asked.client_features import Given, Wanted, answer_type_of, call_of, method_of, read_wanted
from toolwire.mcp.client_limits import FORM_CHARACTERS, FORM_FIELDS, QUESTIONS, ROUND_TRIPS, STATE_CHARACTERS
from toolwire.mcp.server_log import ServerLog
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError
from toolwire.vocabulary.questions import A_PERSON, InputRequired, Question, QuestionDeclined
from toolwire.vocabulary.results import ToolResult

DECLINED_BY = "toolwire/declinedBy"
"""The key in the `_meta` of a declined question that says by what it was declined, unless it was a person."""


def declined_by(what: str) -> ElicitResult:
    """Returns the answer to a question that no person declined, with what did so in their place."""
    return ElicitResult(action="decline", _meta={DECLINED_BY: what})


DECLINED, BY_TOOLWIRE = ElicitResult(action="decline"), declined_by("toolwire, without a person")

_ROOT_KEYS = {"$schema", "type", "title", "description", "properties", "required", "additionalProperties"}
_FIELD_KEYS = {
    *("type", "title", "description", "default", "format", "enum", "enumNames", "oneOf", "pattern", "items"),
    *("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "uniqueItems"),
}
_SECRET = re.compile(
    r"pass[\s_-]?(?:word|phrase|code)|passwd|secret|api[\s_-]?key|private[\s_-]?key|access[\s_-]?key|credential"
    r"|(?:access|auth|bearer|refresh|api|session)[\s_-]?token|\b(?:otp|cvv|cvc|pin)\b",
    re.IGNORECASE,
)
"""Names of secrets, as forms write them."""
_CHOICE_KEYS = {"const", "title", "description"}
_TYPES = {"string", "number", "integer", "boolean", "array"}


def question_of(params: ElicitRequestParams, log: ServerLog, *, number: int) -> Question | None:
    """Returns the request of a server as a question. None if it cannot be asked; the log then has the reason.

    `number` is its number among the questions of its call, from 1.
    """
    if number > QUESTIONS:
        log.warning(f"its question was declined: it asked {QUESTIONS} times in this call already")
        return None
    try:
        return _page(params) if isinstance(params, ElicitRequestURLParams) else _form(params)
    except (ConfigurationError, DefinitionError) as error:
        log.warning(f"its question was declined: {error}")
        return None


def _form(params: ElicitRequestFormParams) -> Question:
    schema, message = params.requested_schema, params.message
    check_limits(schema, "the form")
    if len(json.dumps(schema)) > FORM_CHARACTERS:
        raise DefinitionError(f"its form has more than {FORM_CHARACTERS:,} characters")
    fields = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(fields, dict) or not schema.keys() <= _ROOT_KEYS:
        raise DefinitionError("its form is not an object with simple fields")
    if len(cast("dict[str, Any]", fields)) > FORM_FIELDS:
        raise DefinitionError(f"its form has more than {FORM_FIELDS} fields")
    for name, field in cast("dict[str, Any]", fields).items():
        if not _is_simple(field):
            raise DefinitionError(f"the field {name!r:.80} of its form is not simple")
        if _asks_for_secret(name, field):
            raise DefinitionError(f"the field {name!r:.80} of its form asks for a secret, which no form may do")
    check_schema(schema, "the form")
    return Question(message if message.strip() else "The server asks for these values.", schema)


def _asks_for_secret(name: str, field: Any) -> bool:
    """True if the name or a text of a field looks as if a secret belongs into it. MCP forbids such forms."""
    texts = [name, *(field[key] for key in ("title", "description") if isinstance(field.get(key), str))]
    return any(_SECRET.search(text) for text in texts)


def _is_simple(field: Any) -> bool:
    if not isinstance(field, dict):
        return False
    found = cast("dict[str, Any]", field)
    items = found.get("items", {})
    if found.get("type") not in _TYPES or not found.keys() <= _FIELD_KEYS or not isinstance(items, dict):
        return False
    given = cast("dict[str, Any]", items)
    is_text = given.keys() <= {"type", "enum", "anyOf"} and given.get("type", "string") == "string"
    return _are_choices(found.get("oneOf", ())) and _are_choices(given.get("anyOf", ())) and is_text


def _are_choices(choices: Any) -> bool:
    return all(isinstance(one, dict) and cast("dict[str, Any]", one).keys() <= _CHOICE_KEYS for one in choices)


def _page(params: ElicitRequestURLParams) -> Question:
    """Asks whether the person has opened a page. toolwire opens none."""
    try:
        parts = urlsplit(params.url)
    except ValueError as error:
        raise DefinitionError(f"it named a page that is not a URL: {error}") from error
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise DefinitionError("it named a page that is not at http:// or https://")
    lines = [f"The server asks you to open a page of {parts.hostname} in your browser:", params.url, params.message]
    return Question("\n".join(lines), {"type": "boolean", "title": "Have you opened it?"})


def answer_of(answer: Any) -> ElicitResult:
    """Returns an answer, or a `QuestionDeclined`, as the server reads it."""
    if isinstance(answer, QuestionDeclined):
        return DECLINED if answer.by == A_PERSON else declined_by(answer.by.rstrip(","))
    if answer is False:
        return DECLINED
    if answer is True:
        return ElicitResult(action="accept")
    try:
        return ElicitResult(action="accept", content=answer)
    except ValidationError:
        # An answer with fields that the form does not have.
        return BY_TOOLWIRE


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """One request of a call. A server that needs input answers with questions, and gets the answers with the next."""

    number: int = 1
    responses: Mapping[str, InputResponse] | None = None
    """The answers to the questions of the round trip before; None without questions."""
    state: str | None = None
    """The server's own state, unchanged."""
    questions: int = 0
    """How many questions the server has asked in the round trips before."""
    wanted: Mapping[str, Wanted] | None = None
    """Requests of the round trip before that still wait for the client's answers, by their keys."""

    def request(self, first: Any) -> Any:
        """Returns the SDK's request of this round trip; `first` is that of the first one."""
        if self.number == 1:
            return first
        responses = None if self.responses is None else dict(self.responses)
        more = {"input_responses": responses, "request_state": self.state}
        return first.model_copy(update={"params": first.params.model_copy(update=more)})


def round_trip_of(context: CallContext | None, log: ServerLog) -> RoundTrip:
    """Returns the round trip that this pass of the tool sends."""
    if context is None or context.state is None:
        return RoundTrip()
    kept: Mapping[str, Any] = context.state
    for answer in context.answers.values():
        if isinstance(answer, QuestionDeclined):
            log.warning(f"its question was declined: {answer}")
    answers = {name: answer_of(answer) for name, answer in context.answers.items()}
    declined = dict.fromkeys(kept["declined"], BY_TOOLWIRE)
    # An older version of toolwire kept no number.
    asked = kept.get("questions", len(declined) + len(answers))
    given = {key: answer_type_of(method).model_validate(one) for key, (method, one) in kept.get("given", {}).items()}
    wanted = {key: read_wanted(method, one) for key, (method, one) in kept.get("wanted", {}).items()}
    responses = {**declined, **answers, **given}
    return RoundTrip(number=kept["leg"], responses=responses, state=kept["state"], questions=asked, wanted=wanted)


def next_round_trip(
    result: InputRequiredResult,
    round_trip: RoundTrip,
    log: ServerLog,
    *,
    can_ask: bool,
    given: Mapping[str, Given | None],
) -> RoundTrip | InputRequired | ToolResult:
    """Returns the next round trip, or the questions that come before it, or the failure of the call.

    `given` has the client's answers to the requests that are no questions; None is one that it was asked for.
    """
    if round_trip.number >= ROUND_TRIPS:
        return ToolResult.failed("limit", f"The call was given up: its server asked for input {ROUND_TRIPS} times.")
    state = result.request_state
    if state is not None and len(state) > STATE_CHARACTERS:
        message = f"The call was given up: its server gave a state of more than {STATE_CHARACTERS:,} characters."
        return ToolResult.failed("limit", message)
    questions: dict[str, Question] = {}
    declined: list[str] = []
    requests = result.input_requests or {}
    wanted: dict[str, Wanted] = {}
    for number, (name, request) in enumerate(requests.items(), round_trip.questions + 1):
        if not isinstance(request, ElicitRequest):
            wanted.update({name: request} if given.get(name) is None else {})
            continue
        if not can_ask:
            log.warning("its question was declined: this call has no person")
        question = question_of(request.params, log, number=number) if can_ask else None
        if question is None:
            declined.append(name)
        else:
            questions[name] = question
    asked = round_trip.questions + len(requests)
    answered = {key: one for key, one in given.items() if one is not None}
    if questions:
        kept: dict[str, Any] = {"leg": round_trip.number + 1, "declined": declined, "state": state, "questions": asked}
        if wanted:
            kept["wanted"] = {key: list(call_of(one)) for key, one in wanted.items()}
        if answered:
            kept["given"] = {
                key: [method_of(one), one.model_dump(by_alias=True, mode="json", exclude_none=True)]
                for key, one in answered.items()
            }
        return InputRequired(questions, kept)
    responses = {**dict.fromkeys(declined, BY_TOOLWIRE), **answered} or None
    number = round_trip.number + 1
    return RoundTrip(number=number, responses=responses, state=state, questions=asked, wanted=wanted)
