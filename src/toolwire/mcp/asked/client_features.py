"""Sampling and roots: what a server may want of the client in front of a gateway, as calls and as values of MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ErrorData,
    ListRootsRequest,
    ListRootsResult,
)
from pydantic import ValidationError

from toolwire.definition.texts.outside_texts import visible_value
from toolwire.mcp.client_limits import QUESTIONS
from toolwire.mcp.sending import Listener
from toolwire.mcp.values.features import ROOTS, SAMPLE
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

CLIENT_ERROR = "mcp_client_error"
"""The key in a failure's metadata under which it has the code of the client's own error."""

Wanted = CreateMessageRequest | ListRootsRequest
Given = CreateMessageResult | ListRootsResult


def read_wanted(method: str, arguments: Mapping[str, Any]) -> Wanted:
    """Returns the request for the client."""
    if method == ROOTS:
        return ListRootsRequest()
    return CreateMessageRequest(params=CreateMessageRequestParams.model_validate(dict(arguments)))


def call_of(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """Returns the method and the arguments of the call by which a request goes to the client."""
    if isinstance(wanted, ListRootsRequest):
        return ROOTS, {}
    return SAMPLE, wanted.params.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"meta", "task"})


def method_of(given: Given) -> str:
    """Returns the method of the call that an answer belongs to."""
    return ROOTS if isinstance(given, ListRootsResult) else SAMPLE


def answer_type_of(method: str) -> type[Given]:
    """Returns the type of the client's answer."""
    return ListRootsResult if method == ROOTS else CreateMessageResult


def read_given(method: str, result: ToolResult) -> Given | ErrorData:
    """Returns the answer of the client as the server reads it, or the error of the protocol."""
    if not result.success:
        code = result.metadata.get(CLIENT_ERROR, INVALID_REQUEST)
        return ErrorData(code=code, message=result.error or "")
    try:
        return answer_type_of(method).model_validate(result.data)
    except ValidationError:
        return ErrorData(code=INVALID_PARAMS, message="the client's answer does not fit the protocol")


async def pass_on(listener: Listener, server: str, wanted: Wanted) -> Given | ErrorData:
    """Returns the client's answer to a request of a server. One that was begun goes on.

    A client without the feature, a rule and a limit refuse it by an error of the protocol.
    """
    result = await asyncio.wrap_future(listener.pass_on(_call_to(server, wanted)))
    return read_given(call_of(wanted)[0], result)


async def begin(listener: Listener, server: str, wanted: Mapping[str, Wanted]) -> dict[str, Given | ErrorData | None]:
    """Begins to ask the client together. Returns the answers that need no waiting; None is one that waits."""
    results = await asyncio.wrap_future(listener.begin([_call_to(server, one) for one in wanted.values()]))
    return {
        key: None if result is None else read_given(call_of(one)[0], result)
        for (key, one), result in zip(wanted.items(), results, strict=False)
    }


def too_many(number: int) -> ErrorData | None:
    """Returns the error for a request that is one too many: `number` is that among the questions of its call."""
    if number <= QUESTIONS:
        return None
    return ErrorData(code=INVALID_REQUEST, message=f"the server asked {QUESTIONS} times in this call already")


def _call_to(server: str, wanted: Wanted) -> ToolCall:
    method, arguments = call_of(wanted)
    return ToolCall(f"{server}/{method}", visible_value(arguments))
