"""Results of servers behind a gateway, without characters that a person does not see and a model reads."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from toolwire.mcp.convert import FAILED_DATA
from toolwire.vocabulary.blocks import ContentBlock
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.invisible import remove_hidden

_LOG = logging.getLogger("toolwire.gateway")


def remove_hidden_in_result(name: str, result: ToolResult) -> ToolResult:
    """Returns the result of an outside tool without hidden characters. A warning says so if it had any.

    A block whose URI has some becomes a text, because another URI would lead elsewhere.
    """
    blocks = [_remove_hidden_in_block(block) for block in result.blocks]
    data, error = remove_hidden_in_value(result.data), remove_hidden_in_value(result.error)
    of_server = {key: result.metadata[key] for key in ("mcp", FAILED_DATA) if key in result.metadata}
    clean = remove_hidden_in_value(of_server)
    if (blocks, data, error, clean) == ([*result.blocks], result.data, result.error, of_server):
        return result
    _LOG.warning("the result of %r: hidden characters were removed", name)
    metadata = {**result.metadata, **clean}
    return ToolResult(result.success, data, error, metadata, content=blocks, failure=result.failure, call=result.call)


def own_words(result: ToolResult) -> ToolResult:
    """Returns a failed result with the error of its server alone, without a hint for models that toolwire prompts."""
    failure = result.failure
    if failure is None or failure.kind != "tool_error":
        return result
    return replace(result, failure=replace(failure, hint=""))


def remove_hidden_in_value(value: Any) -> Any:
    """Returns a value of JSON whose texts have no hidden characters."""
    if isinstance(value, str):
        return remove_hidden(value)
    if type(value) is dict:
        return {
            remove_hidden_in_value(key): remove_hidden_in_value(item)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    return [remove_hidden_in_value(item) for item in cast("list[Any]", value)] if type(value) is list else value


def _remove_hidden_in_block(block: ContentBlock) -> ContentBlock:
    if any(remove_hidden(uri) != uri for uri in _uris(cast("Mapping[str, Any]", block))):
        return {"type": "text", "text": f"A {block['type']} was left out: its URI has hidden characters."}
    return remove_hidden_in_value(block)


def _uris(block: Mapping[str, Any]) -> list[str]:
    parts = [block, *(cast("Mapping[str, Any]", block.get(key) or {}) for key in ("resource", "source"))]
    found: list[Any] = [part.get(key) for part in parts for key in ("uri", "url")]
    return [uri for uri in found if isinstance(uri, str)]
