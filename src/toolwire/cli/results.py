"""A call's result as JSON for a program that reads it, and the result of a call that does not end."""

from __future__ import annotations

from typing import Any

from toolwire import ToolCall, ToolResult, ToolwireError


def as_json(result: ToolResult) -> dict[str, Any]:
    """Name, success, data, text, error, metadata and failure (kind, hint, path, data, and if a retry can help).

    What is known of a program is not part of the metadata here: it has a place of its own.
    """
    failure = result.failure
    metadata = {key: value for key, value in result.metadata.items() if key not in ("program", "isolation")}
    return {
        "name": result.call.name if result.call is not None else "",
        "success": result.success,
        "data": plain(result.data),
        "text": result.text,
        "error": result.error,
        "metadata": plain(metadata),
        "failure": None
        if failure is None
        else {
            "kind": failure.kind,
            "hint": failure.hint,
            "path": failure.path,
            "retry": failure.retry,
            "data": plain(failure.data),
        },
    }


def nothing_came(what: str, timeout_s: float, *, call: ToolCall) -> ToolResult:
    """The result of work that nobody waits for any more."""
    return ToolResult.failed(
        "unknown_outcome", f"{what} gave nothing back within {timeout_s:g} s; it may still be running.", call=call
    )


def plain(value: Any) -> Any:
    """The value in JSON types; what has no such form stands as Python would show it."""
    try:
        return ToolResult(success=True, data=value).to_dict()["data"]
    except ToolwireError:
        return repr(value)
