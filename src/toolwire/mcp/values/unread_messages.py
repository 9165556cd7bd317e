"""Messages of JSON-RPC that the SDK refuses. No side has to wait: a request gets an error, an answer becomes one.

The SDK's readers refuse a lone surrogate, deep nesting, and integers of more than 4,300 digits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from toolwire.vocabulary.texts.lone_surrogates import encodable

_SIGN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}:,"]|[^][\s{}:,"]+', re.DOTALL)
_INTEGER = re.compile(r"-?\d{1,18}")
_ID_CHARACTERS = 1_024

NO_MESSAGE = "it gave no message"
"""The message of an error that has none."""


def members_of(text: str) -> dict[str, str]:
    """Returns the members of the object that the JSON text holds: their keys, and their values as they are written.

    An object, a list, and the value of a repeated key are "". The text may be wrong or cut anywhere; then these are the
    members before that place.
    """
    found: dict[str, str] = {}
    depth, key, is_value = 0, "", False
    for match in _SIGN.finditer(text):
        sign = match[0]
        if sign == '"' or (depth == 0 and (found or sign != "{")):
            break
        if sign in "[{":
            if depth == 1:
                found[key] = ""
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif depth == 1:
            if sign == ",":
                is_value = False
            elif sign == ":":
                is_value = True
            elif is_value:
                found[key] = "" if key in found else sign
            else:
                key = sign[1:-1]
    return found


def id_of(members: Mapping[str, str]) -> RequestId | None:
    """Returns the id of a message; None if it has none that an answer can have."""
    text = members.get("id", "")
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.startswith('"') and len(text) <= _ID_CHARACTERS:
        with suppress(ValueError):
            found = json.loads(text)
            return found if encodable(found) == found else None
    return None


def is_answer(members: Mapping[str, str]) -> bool:
    """Returns True if the message answers a request."""
    return "method" not in members and ("result" in members or "error" in members)


def fault_of(text: str) -> ErrorData | None:
    """Returns the reason why the SDK does not read a message of a client; None if it does."""
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as refused:
        return ErrorData(code=PARSE_ERROR if _is_no_json(refused) else INVALID_REQUEST, message=_reason(refused))
    return None


def meant_message(refused: ValidationError) -> JSONRPCMessage | None:
    """Returns the message of a server that the SDK refused to read; None if it is no message.

    Lone surrogates become U+FFFD. An answer that cannot be read is an error with its id.
    """
    given = _input_of_fault(refused)
    value = _load_object(given) if isinstance(given, str) else given
    message = None if value is None else _parse_message(value)
    if message is not None:
        return message
    members = members_of(given) if isinstance(given, str) else {name: json.dumps(one) for name, one in given.items()}
    found = id_of(members)
    if found is None or not is_answer(members):
        return None
    return JSONRPCError(jsonrpc="2.0", id=found, error=ErrorData(code=PARSE_ERROR, message=_reason(refused)))


def mend_text(text: bytes) -> bytes:
    """Returns the JSON of a message in a form that the SDK reads; the text itself if it does, or if none is found."""
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError:
        value = _load_object(text.decode("utf-8", "replace"))
        message = None if value is None else _parse_message(value)
        if message is not None:
            return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    return text


def _is_no_json(refused: ValidationError) -> bool:
    return refused.errors(include_url=False, include_input=False, include_context=False)[0]["type"] == "json_invalid"


def _reason(refused: ValidationError) -> str:
    """Returns the first fault. If it is JSON, that is the fault of the form with the fewest faults."""
    faults = refused.errors(include_url=False, include_input=False, include_context=False)
    if faults[0]["type"] == "json_invalid":
        return faults[0]["msg"]
    counts: dict[Any, int] = {}
    for fault in faults:
        form = fault["loc"][0] if fault["loc"] else ""
        # A message without a method is no request, and one without a result is no answer.
        is_other = fault["type"] == "missing" and fault["loc"][-1] in ("method", "result", "error")
        counts[form] = counts.get(form, 0) + (100 if is_other else 1)
    best = min(counts, key=lambda form: counts[form])
    fault = next(fault for fault in faults if (fault["loc"][0] if fault["loc"] else "") == best)
    place = ".".join(map(str, fault["loc"][1:]))
    return f"It is not a message of JSON-RPC 2.0: {place}: {fault['msg']}"


def _input_of_fault(refused: ValidationError) -> str | dict[str, Any]:
    """Returns what the SDK read: the text if it is not JSON, else the object."""
    for fault in refused.errors(include_url=False, include_context=False):
        given: Any = fault["input"]
        if fault["type"] == "json_invalid":
            return given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)
        # A whole message is the input of the fault that one of its members is missing.
        if fault["type"] == "missing" and len(fault["loc"]) == 2 and isinstance(given, dict):
            return cast("dict[str, Any]", given)
    return ""


def _load_object(text: str) -> dict[str, Any] | None:
    try:
        value = encodable(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _parse_message(value: dict[str, Any]) -> JSONRPCMessage | None:
    with suppress(ValueError, RecursionError):
        message = jsonrpc_message_adapter.validate_python(_mend_message(value), by_name=False)
        # The SDK fails later at a value that is deeper than pydantic writes.
        message.model_dump_json()
        return message
    return None


def _mend_message(message: dict[str, Any]) -> dict[str, Any]:
    """Returns the message with the parts that a careless server leaves out."""
    found = {"jsonrpc": "2.0", **message}
    number = found.get("id")
    if isinstance(number, float) and number.is_integer():
        found["id"] = int(number)
    if "method" in found:
        return found
    error = found.get("error")
    if error is not None:
        found.pop("result", None)
        told = dict(cast("Mapping[str, Any]", error)) if isinstance(error, Mapping) else {"message": error}
        message_text, code = told.get("message"), told.get("code")
        told["message"] = NO_MESSAGE if message_text is None else str(message_text)
        told["code"] = code if type(code) is int else 0
        found["error"] = told
    # An empty array is how PHP writes an empty object.
    elif "result" in found and found["result"] in (None, []):
        found["result"] = {}
    return found
