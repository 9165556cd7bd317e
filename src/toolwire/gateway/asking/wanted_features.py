"""Requests to a client for a server behind: its model (sampling) and its roots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, ClientCapabilities
from pydantic import ValidationError

from toolwire.gateway.asking.elicitation import SendToClient
from toolwire.mcp.asked.client_features import CLIENT_ERROR, answer_type_of, read_wanted
from toolwire.mcp.values.features import ROOTS
from toolwire.vocabulary.results import ToolResult


async def send_wanted(
    capabilities: ClientCapabilities | None, send: SendToClient, method: str, arguments: Mapping[str, Any]
) -> ToolResult:
    """Sends a request for a sample or for roots to the client, while its call waits. Returns the answer as JSON."""
    feature = "roots" if method == ROOTS else "sampling"
    if capabilities is None or getattr(capabilities, feature) is None:
        return _failure(INVALID_REQUEST, f"the client does not offer {feature}")
    if "tools" in arguments:
        return _failure(INVALID_PARAMS, "sampling with tools is not passed on")
    try:
        wanted = read_wanted(method, arguments)
    except ValidationError:
        return _failure(INVALID_PARAMS, f"the request for {feature} does not fit the protocol")
    try:
        given = await send(wanted, answer_type_of(method))
    except MCPError as error:
        return _failure(error.error.code, f"the client refused: {error.error.message}")
    except ValidationError:
        given = None
    if not isinstance(given, answer_type_of(method)):
        return _failure(INVALID_REQUEST, "the client's answer does not fit the protocol")
    return ToolResult(True, given.model_dump(by_alias=True, mode="json", exclude_none=True))


def _failure(code: int, message: str) -> ToolResult:
    return ToolResult(False, error=message, metadata={CLIENT_ERROR: code})
