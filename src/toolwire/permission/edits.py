"""Arguments and answers that a person wrote: parsed strictly and checked against the schema of the request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from toolwire.definition.arguments.problems import complaint
from toolwire.definition.hostile.schema_limits import check_limits
from toolwire.definition.json_schema.validator import Validator, check_schema
from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.values import plain_value

EDIT_LIMIT_CHARACTERS = 1_048_576
"""Maximum characters of an edit or an answer: more than any person writes."""


def read_edit(text: str, request: ApprovalRequest) -> dict[str, Any]:
    """Parses JSON arguments and checks them as `check_edit` does.

    Raises:
        DecisionRefused: `invalid_edit`, with all problems.
    """
    return check_edit(request, _parse_json(text, request))


def read_answer(text: str, request: ApprovalRequest) -> Any:
    """Parses a JSON answer and checks it as `check_answer` does.

    Raises:
        DecisionRefused: `invalid_answer`, with all problems.
    """
    return check_answer(request, _parse_json(text, request))


def check_edit(request: ApprovalRequest, arguments: object) -> dict[str, Any]:
    """Checks arguments against the request's schema and returns them. The call's own validation and rules come later.

    Raises:
        DecisionRefused: `invalid_edit`, with all problems.
    """
    if not isinstance(arguments, Mapping):
        raise _refusal_of_edit(request, 'it is not a JSON object: write the arguments by name, {"amount": 4}')
    return _check_value(request, request.arguments_schema, dict(cast("Mapping[str, Any]", arguments)), "arguments")


def check_answer(request: ApprovalRequest, answer: object) -> Any:
    """Checks an answer against the schema of the question and returns it as plain JSON.

    Raises:
        DecisionRefused: `invalid_answer`, with all problems.
    """
    return _check_value(request, request.answer_schema, answer, "answer")


def check_answer_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Checks the schema of an answer and returns it as plain JSON.

    Raises:
        DefinitionError: It is not a JSON schema, or exceeds a limit.
        Unrepresentable: It has no JSON form.
    """
    found = cast("dict[str, Any]", plain_value(dict(schema)))
    check_limits(found, "the schema of the answer")
    check_schema(found, "the schema of the answer")
    return found


def _parse_json(text: str, request: ApprovalRequest) -> Any:
    if len(text) > EDIT_LIMIT_CHARACTERS:
        raise _refusal_of_edit(request, f"it is longer than {EDIT_LIMIT_CHARACTERS:,} characters")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _refusal_of_edit(
            request, f"it is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError as error:
        raise _refusal_of_edit(request, "it is nested too deeply") from error
    except ValueError as error:
        raise _refusal_of_edit(request, f"it is not JSON: {error}") from error


def _check_value(request: ApprovalRequest, schema: Mapping[str, Any], value: object, whole: str) -> Any:
    try:
        found = plain_value(value)
        problems = _problems(schema, found, whole)
    except (Unrepresentable, DefinitionError) as error:
        raise _refusal_of_edit(request, str(error)) from error
    if problems:
        raise _refusal_of_edit(request, " ".join(problems))
    return found


def _problems(schema: Mapping[str, Any], value: Any, whole: str) -> list[str]:
    if not schema:
        return []
    # A schema that refers to another document is refused; nothing is fetched.
    patterns = check_schema(schema, "its schema")
    wrong = complaint(Validator(schema, patterns, "its schema", whole=whole).problems(value))
    return [] if wrong is None else list(wrong.lines)


def _refusal_of_edit(request: ApprovalRequest, why: str) -> DecisionRefused:
    if request.kind == "question":
        message = f"the answer to the question of {request.tool!r} is not valid: {why}"
        return DecisionRefused("invalid_answer", message, request_id=request.id)
    return DecisionRefused("invalid_edit", f"the edit of {request.tool!r} is not valid: {why}", request_id=request.id)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
