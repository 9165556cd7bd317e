"""The SDK's server whose tools want what a client has, as the conformance suite asks: its model, roots and person.

It is named `test`, so that a gateway serves its tools by the suite's names.
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server import Server

from tests.mcp.conformance_resources import text_field

_QUESTION = types.SamplingMessage(role="user", content=types.TextContent(text="What is the capital of France?"))
SAMPLE = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[_QUESTION], max_tokens=100))
ROOTS = types.ListRootsRequest()
FORM = types.ElicitRequest(
    params=types.ElicitRequestFormParams(message="What is your name?", requested_schema=text_field("name"))
)
WANTS: dict[str, dict[str, Any]] = {
    "input_required_result_sampling": {"capital": SAMPLE},
    "input_required_result_list_roots": {"roots": ROOTS},
    "input_required_result_multiple_inputs": {"name": FORM, "greeting": SAMPLE, "roots": ROOTS},
    "input_required_result_capabilities": {"capital": SAMPLE},
}
"""What each tool wants, by the keys of its requests."""


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    # A check of the suite wants a description of each tool.
    asks = "Asks the client."
    tools = [types.Tool(name=name, description=asks, input_schema={"type": "object"}) for name in WANTS]
    return types.ListToolsResult(tools=tools)


async def call(context: Any, params: types.CallToolRequestParams) -> Any:
    if not params.input_responses:
        return types.InputRequiredResult(input_requests=WANTS[params.name])
    said = " ".join(str(answer) for answer in params.input_responses.values())
    return types.CallToolResult(content=[types.TextContent(text=said)])


def wanting_server() -> Server[Any]:
    return Server("wanting", on_list_tools=list_tools, on_call_tool=call)
