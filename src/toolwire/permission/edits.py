"""Arguments edited by a person: parsed strictly and checked against the schema of the request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from toolwire.definition.arguments.problems import complaint
from toolwire.definition.json_schema.validator import Validator, check_schema
from toolwire.permission.approval import ApprovalRequest, DecisionRefused
from toolwire.vocabulary.errors import DefinitionError, Unrepresentable
from toolwire.vocabulary.values import plain

EDIT_LIMIT_CHARACTERS = 1_048_576
"""Maximum characters of an edit: more than any person writes."""


def read_edit(text: str, request: ApprovalRequest) -> dict[str, Any]:
    """Parses JSON arguments and checks them as `check_edit` does.

    Raises:
        DecisionRefused: `invalid_edit`, with all problems.
    """
    if len(text) > EDIT_LIMIT_CHARACTERS:
        raise _refused(request, f"it is longer than {EDIT_LIMIT_CHARACTERS:,} characters")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise _refused(request, f"it is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise _refused(request, "it is nested too deeply") from error
    except ValueError as error:
        raise _refused(request, f"it is not JSON: {error}") from error
    return check_edit(request, value)


def check_edit(request: ApprovalRequest, arguments: object) -> dict[str, Any]:
    """Checks arguments against the request's schema and returns them. The call's own validation and rules come later.

    Raises:
        DecisionRefused: `invalid_edit`, with all problems.
    """
    if not isinstance(arguments, Mapping):
        raise _refused(request, 'it is not a JSON object: write the arguments by name, {"amount": 4}')
    try:
        found = cast("dict[str, Any]", plain(dict(cast("Mapping[str, Any]", arguments))))
    except Unrepresentable as error:
        raise _refused(request, str(error)) from error
    try:
        problems = _problems(request.arguments_schema, found)
    except DefinitionError as error:
        raise _refused(request, str(error)) from error
    if problems:
        raise _refused(request, " ".join(problems))
    return found


def _problems(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    if not schema:
        return []
    # A schema that refers to another document is refused; nothing is fetched.
    patterns = check_schema(schema, "its schema")
    wrong = complaint(Validator(schema, patterns, "its schema").problems(arguments))
    return [] if wrong is None else list(wrong.lines)


def _refused(request: ApprovalRequest, why: str) -> DecisionRefused:
    return DecisionRefused("invalid_edit", f"the edit of {request.tool!r} is not valid: {why}", request_id=request.id)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")
