"""Rendering for the JSON protocol: calls as a model writes them, and the text that a model reads after them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from toolwire.protocols.right_call import RightCall, json_form
from toolwire.vocabulary.calls import CODE_EXECUTION, ToolCall
from toolwire.vocabulary.model_text import model_value
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain_value

_FENCE_LINE = re.compile(r"^ {0,3}(`{3,}+)", re.MULTILINE)
_NOT_IN_A_FENCE = re.compile("[\r\ufeff]")


def render_json_text(calls: Sequence[ToolCall]) -> str:
    """Returns the reply with which a model would make these calls. A single program becomes Python in a fence.

    Raises:
        Unrepresentable: JSON cannot hold one of the arguments.
    """
    if len(calls) == 1 and calls[0].name == CODE_EXECUTION and set(calls[0].arguments) == {"code"}:
        code = calls[0].arguments["code"]
        if isinstance(code, str) and code.strip() and code.endswith("\n") and not _NOT_IN_A_FENCE.search(code):
            return _fence_code(code)
    return render_calls(calls) if calls else ""


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Returns the calls as one list between tags. A small model that is shown a list makes several calls in one reply.

    Raises:
        Unrepresentable: JSON cannot hold one of the arguments.
    """
    return _between_tags(_json({"name": call.name, "arguments": plain_value(dict(call.arguments))}) for call in calls)


def json_right_form(calls: Sequence[RightCall]) -> str:
    """Returns the right form of calls as one list between tags."""
    return _between_tags(json_form({"name": call.tool.name, "arguments": call.arguments}) for call in calls)


def format_json_text(results: Sequence[ToolResult]) -> str:
    """Returns each result between tags, as one JSON object with its data or error, and the call's name as `result_of`.

    A result has no key of a call, because a model copies what it reads: with `name` it wrote results as its answer.

    `</` is escaped, so that no result can close its tag early. `parse` takes no call from inside these tags.
    """
    written = (_json(_result_object(result)).replace("</", "<\\/") for result in results)
    return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in written)


def _result_object(result: ToolResult) -> dict[str, Any]:
    said: dict[str, Any] = {} if result.call is None else {"result_of": result.call.name}
    if result.failure is not None:
        return {**said, "error": result.text}
    return {**said, "content": result.text if result.blocks else model_value(result.data)}


def _between_tags(written: Iterable[str]) -> str:
    return "<tool_call>\n[{}]\n</tool_call>".format(",\n".join(written))


def _fence_code(code: str) -> str:
    longest = max((len(mark) for mark in _FENCE_LINE.findall(code)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}python\n{code}{mark}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
