"""The requests of a caller to a server: a tool's call, a resource, a prompt, and completions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequest,
    CompleteRequestParams,
    CompleteResult,
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    Request,
)
from pydantic import Discriminator, Tag, TypeAdapter

from toolwire.mcp.values.task_values import TaskMade


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """One request, and the form of its answer."""

    request: Any
    """The SDK's request."""
    answer: TypeAdapter[Any]
    """Reads the answer."""


def tool_call(tool: str, arguments: dict[str, Any]) -> ServerRequest:
    """Returns the call of a tool."""
    return ServerRequest(CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments)), _CALL)


def resource_read(uri: str) -> ServerRequest:
    """Returns the request for a resource."""
    return ServerRequest(ReadResourceRequest(params=ReadResourceRequestParams(uri=uri)), _READ)


def prompt_get(name: str, arguments: dict[str, str] | None) -> ServerRequest:
    """Returns the request for a prompt."""
    return ServerRequest(GetPromptRequest(params=GetPromptRequestParams(name=name, arguments=arguments)), _PROMPT)


def completion(asked: Mapping[str, Any]) -> ServerRequest:
    """Returns the request for completions; `asked` has its parameters in the form of the protocol."""
    return ServerRequest(CompleteRequest(params=CompleteRequestParams.model_validate(asked)), _COMPLETION)


def task_request(method: str, task_id: str, **more: Any) -> ServerRequest:
    """Returns a request about a task of the server. The answer is what the server wrote."""
    return ServerRequest(_AboutTask(method=method, params={"taskId": task_id, **more}), _ANYTHING)


class _AboutTask(Request[dict[str, Any], str]):
    name_param = "taskId"


def _kind(answer: Any) -> str:
    kinds = {"input_required": "input", "task": "task"}
    return kinds.get(str(answer.get("resultType")), "result")


# The mark decides alone, so that only one of the two forms is tried.
_KIND = Discriminator(_kind)
_INPUT = Annotated[InputRequiredResult, Tag("input")]
_TASK = Annotated[TaskMade, Tag("task")]
_CALL: TypeAdapter[Any] = TypeAdapter(Annotated[Annotated[CallToolResult, Tag("result")] | _INPUT | _TASK, _KIND])
_READ: TypeAdapter[Any] = TypeAdapter(Annotated[Annotated[ReadResourceResult, Tag("result")] | _INPUT, _KIND])
_PROMPT: TypeAdapter[Any] = TypeAdapter(Annotated[Annotated[GetPromptResult, Tag("result")] | _INPUT, _KIND])
_ANYTHING: TypeAdapter[Any] = TypeAdapter(dict[str, Any])
_COMPLETION: TypeAdapter[Any] = TypeAdapter(CompleteResult)
