"""Results of calls, as JSON for a program or as text for a person."""

from __future__ import annotations

from typing import Any

import toolwire
import toolwire.types


def as_json(result: toolwire.ToolResult) -> dict[str, Any]:
    """Returns a result as JSON types: name, success, data, text, error, metadata and failure.

    `failure` holds kind, hint, path, data and whether a retry can help. Facts about a program are left out of the
    metadata, because they are reported separately.
    """
    failure = result.failure
    metadata = {key: value for key, value in result.metadata.items() if key not in ("program", "isolation")}
    return {
        "name": result.call.name if result.call is not None else "",
        "success": result.success,
        "data": json_or_repr(result.data),
        "text": result.text,
        "error": result.error,
        "metadata": json_or_repr(metadata),
        "failure": None
        if failure is None
        else {
            "kind": failure.kind,
            "hint": failure.hint,
            "path": failure.path,
            "retry": failure.retry,
            "data": json_or_repr(failure.data),
        },
    }


_FOR_A_PERSON: dict[str, str] = {
    "approval_required": "It did not run: a person has to allow it, and no one could be asked. Call it at a terminal.",
    "denied": "It did not run. `toolwire policy explain` shows which rule or permission stopped it.",
    "tool_error": "--traceback shows where the tool raised it.",
    "internal": "It is a fault of the host, or of a middleware. The log has its traceback.",
}
"""Hints for a person by kind of failure, where the model's hint would mislead."""


def person_text(result: toolwire.ToolResult) -> str:
    """Returns the result as text for a person, with a hint for a person instead of one for the model."""
    if result.failure is None:
        return result.text
    said = result.text.removesuffix(result.failure.hint).rstrip("\n")
    return f"{said}\n{person_hint(result.failure)}".rstrip("\n")


def person_hint(failure: toolwire.types.Failure) -> str:
    """Returns a sentence that tells a person at the command line what to do. Empty if the error already says it."""
    for_owner = failure.data.get("for_owner")
    if isinstance(for_owner, str):
        return for_owner[:1].upper() + for_owner[1:]
    if failure.kind == "tool_error" and failure.exception is None:
        return ""
    return _FOR_A_PERSON.get(failure.kind, failure.hint)


def nothing_came(what: str, timeout_s: float, *, call: toolwire.ToolCall) -> toolwire.ToolResult:
    """Returns the result of work that did not end within the time limit."""
    return toolwire.ToolResult.failed(
        "unknown_outcome", f"{what} returned nothing within {timeout_s:g} s; it may still be running.", call=call
    )


def json_or_repr(value: Any) -> Any:
    """Returns the value as JSON types, or its `repr` if JSON cannot hold it."""
    try:
        return toolwire.ToolResult(success=True, data=value).to_dict()["data"]
    except toolwire.ToolwireError:
        return repr(value)
