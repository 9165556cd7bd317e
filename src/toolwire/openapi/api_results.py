"""The result of a call, made of the answer to its request."""

from __future__ import annotations

import base64
import json
from typing import Any, NoReturn

from toolwire.openapi.api_server import HttpAnswer
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of
from toolwire.vocabulary.texts.cuts import cut_text

_OWN_HEADERS = ("connection", "keep-alive", "set-cookie", "transfer-encoding")
"""Headers that are for the client, not for the reader of an answer."""
_TEXT_TYPES = (
    "application/xml",
    "application/javascript",
    "application/yaml",
    "application/x-www-form-urlencoded",
    "application/x-ndjson",
    "application/jsonl",
)


def result_of(answer: HttpAnswer, title: str, *, is_read: bool, error_limit_bytes: int) -> ToolResult:
    """Returns the result. `title` is the operation, `error_limit_bytes` the maximum of an error's body."""
    if not 200 <= answer.status < 300:
        return _failure(answer, title, is_read=is_read, limit_bytes=error_limit_bytes)
    if title.startswith("HEAD "):
        headers = {name: value for name, value in answer.headers.items() if name.lower() not in _OWN_HEADERS}
        return ToolResult(True, {"status": answer.status, "headers": headers})
    kind = _content_type(answer)
    if not answer.body:
        return ToolResult(True, f"{answer.status} {answer.reason}".strip())
    if kind.startswith("image/") and kind != "image/svg+xml":
        data = base64.b64encode(answer.body).decode("ascii")
        source: Any = {"type": "base64", "media_type": kind, "data": data}
        block: Any = {"type": "image", "source": source}
        return ToolResult(True, [block], content=[block])
    return ToolResult(True, _data(answer, kind))


def _content_type(answer: HttpAnswer) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def _data(answer: HttpAnswer, kind: str) -> Any:
    """Returns JSON as data, a text as it is, and a line for other bytes."""
    if kind in ("application/json", "text/json", "") or kind.endswith("+json"):
        try:
            return json.loads(answer.body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return _text(answer) if kind else _line(answer, "bytes")
    if kind.startswith("text/") or kind.endswith("+xml") or kind in _TEXT_TYPES:
        return _text(answer)
    return _line(answer, kind)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _line(answer: HttpAnswer, kind: str) -> str:
    return f"[{kind[:100]}, {count_of(len(answer.body), 'byte')}]"


def _text(answer: HttpAnswer) -> str:
    charset = answer.headers.get("content-type", "").lower().partition("charset=")[2].partition(";")[0].strip("\"' ")
    try:
        return answer.body.decode(charset or "utf-8", "replace")
    except LookupError:
        return answer.body.decode("utf-8", "replace")


def _failure(answer: HttpAnswer, title: str, *, is_read: bool, limit_bytes: int) -> ToolResult:
    """Returns the failure for a status. A text follows it, with the whole answer or its beginning."""
    kind = _content_type(answer)
    told = _text(answer) if kind.startswith("text/") or "json" in kind or "xml" in kind else ""
    body = cut_text(told or (_line(answer, kind or "bytes") if answer.body else ""), limit_bytes)
    status = f"{answer.status} {answer.reason}".strip()
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "")[:500]
        body = f"it redirects to {where!r}, and no redirect is followed" if where else body
    data: dict[str, Any] = {"status": answer.status}
    if answer.retry_after_s is not None:
        data["retry_after_s"] = answer.retry_after_s
    return ToolResult.failed(
        _kind_of_failure(answer.status, is_read=is_read),
        f"{title} answered {status}{f': {body}' if body else '.'}",
        data=data,
    )


def _kind_of_failure(status: int, *, is_read: bool) -> FailureKind:
    """Returns the kind. A gateway that lost its server does not know whether a write took effect."""
    if status == 429:
        return "overloaded"
    if status in (502, 504) and not is_read:
        return "unknown_outcome"
    return "unavailable" if status in (502, 503, 504) else "tool_error"
