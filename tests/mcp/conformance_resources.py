"""The SDK's server with the resources and prompts that the conformance suites ask for."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged
from mcp.shared.exceptions import MCPError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
BINARY = "test://static-binary"
TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched resource content",
    "test://example-resource": "Example resource content",
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
"""The prompts, and the names of their arguments."""


def text_field(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    found = [types.Resource(uri=uri, name=uri.partition("//")[2], mime_type="text/plain") for uri in TEXTS]
    return types.ListResourcesResult(resources=[*found, types.Resource(uri=BINARY, name="binary")])


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = params.uri
    if uri == BINARY:
        picture = types.BlobResourceContents(uri=uri, blob=PNG, mime_type="image/png")
        return types.ReadResourceResult(contents=[picture])
    said = TEXTS.get(uri)
    if said is None and uri.startswith("test://template/") and uri.endswith("/data"):
        said = json.dumps({"id": uri.split("/")[3], "templateTest": True, "data": f"Data for {uri}"})
    if said is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", data={"uri": uri})
    kind = "application/json" if "template" in uri else "text/plain"
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=said, mime_type=kind)])


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(
                name=name,
                description=name,
                arguments=[types.PromptArgument(name=one, description=one, required=True) for one in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get(context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult | types.InputRequiredResult:
    given, said = params.arguments or {}, "This is a simple prompt for testing."
    content: list[Any] = []
    match params.name:
        case "test_prompt_with_arguments":
            said = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
        case "test_prompt_with_embedded_resource":
            inside = types.TextResourceContents(uri=given["resourceUri"], text="Embedded", mime_type="text/plain")
            content, said = [types.EmbeddedResource(resource=inside)], "Please process the embedded resource above."
        case "test_prompt_with_image":
            content, said = [types.ImageContent(data=PNG, mime_type="image/png")], "Please analyze the image above."
        case "test_input_required_result_prompt":
            if not params.input_responses:
                message = "What context should the prompt use?"
                form = types.ElicitRequestFormParams(message=message, requested_schema=text_field("context"))
                return types.InputRequiredResult(input_requests={"user_context": types.ElicitRequest(params=form)})
            answer: Any = params.input_responses["user_context"]
            said = f"Use {answer.content['context']}"
        case _:
            pass
    messages = [types.PromptMessage(role="user", content=one) for one in (*content, types.TextContent(text=said))]
    return types.GetPromptResult(messages=messages)


async def complete(context: Any, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [one for one in ("paris", "park", "party") if one.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    change = types.Tool(name="change", description="Tells of a change.", input_schema={"type": "object"})
    return types.ListToolsResult(tools=[change])


def resource_server() -> Server[Any]:
    bus = InMemorySubscriptionBus()

    async def call(context: Any, params: Any) -> types.CallToolResult:
        await bus.publish(PromptsListChanged())
        return types.CallToolResult(content=[])

    return Server(
        "resources",
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_list_prompts=list_prompts,
        on_get_prompt=get,
        on_completion=complete,
        on_subscriptions_listen=ListenHandler(bus),
    )
