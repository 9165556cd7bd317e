"""Hidden characters are removed from all that a server behind a gateway says, and refused in names and URIs."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.gateway.conftest import Era
from toolwire import MCPClient, ToolRegistry, ToolServer
from toolwire.vocabulary.texts.invisible import remove_hidden

HIDDEN = "\U000e0041\u202e\u200b\x07\x85\u2066\ufeff"
KEPT = "a\tb\r\nc \u2764\ufe0f \U0001f469\u200d\U0001f4bb \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \ue000"
"""Line ends, emojis of several characters, a joiner that Persian needs, and a private character."""


def hiding_server() -> Server[Any]:
    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        shown = types.Tool(
            name="say",
            title=f"T{HIDDEN}",
            description=f"D{HIDDEN}",
            input_schema={"type": "object", "properties": {}, "title": f"S{HIDDEN}"},
            annotations=types.ToolAnnotations(title=f"A{HIDDEN}"),
            icons=[types.Icon(src=f"https://a/{HIDDEN}"), types.Icon(src="https://a/b")],
            _meta={"key": f"M{HIDDEN}"},
        )
        named = [types.Tool(name=name, input_schema={"type": "object"}) for name in (f"x{HIDDEN}", "fail", "refuse")]
        return types.ListToolsResult(tools=[shown, *named])

    async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "refuse":
            raise MCPError(-32000, f"no{HIDDEN}")
        if params.name == "fail":
            return types.CallToolResult(is_error=True, content=[types.TextContent(text=f"E{HIDDEN}")])
        await context.session.report_progress(1, 2, f"P{HIDDEN}")
        inside = types.TextResourceContents(uri="x://b", text=f"I{HIDDEN}")
        content: list[Any] = [
            types.TextContent(text=f"R{HIDDEN}{KEPT}"),
            types.ResourceLink(uri=f"x://a{HIDDEN}", name="n"),
            types.ResourceLink(uri="x://a", name=f"n{HIDDEN}"),
            types.EmbeddedResource(resource=inside),
        ]
        return types.CallToolResult(content=content, structured_content={f"k{HIDDEN}": [f"s{HIDDEN}"]})

    async def resources(context: Any, params: Any) -> types.ListResourcesResult:
        found = [("x://a", "r"), ("x://b", f"r{HIDDEN}"), (f"x://c{HIDDEN}", "r")]
        return types.ListResourcesResult(
            resources=[types.Resource(name=name, description=f"D{HIDDEN}", uri=uri) for uri, name in found]
        )

    async def read(context: Any, params: Any) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=f"C{HIDDEN}")])

    async def prompts(context: Any, params: Any) -> types.ListPromptsResult:
        bad = types.PromptArgument(name=f"a{HIDDEN}")
        return types.ListPromptsResult(
            prompts=[types.Prompt(name="p", title=f"T{HIDDEN}"), types.Prompt(name="q", arguments=[bad])]
        )

    async def get(context: Any, params: Any) -> types.GetPromptResult:
        said = types.PromptMessage(role="user", content=types.TextContent(text=f"M{HIDDEN}"))
        return types.GetPromptResult(description=f"D{HIDDEN}", messages=[said])

    async def complete(context: Any, params: Any) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=[f"v{HIDDEN}"]))

    return Server(
        f"hiding{HIDDEN}",
        on_list_tools=list_tools,
        on_call_tool=call,
        on_list_resources=resources,
        on_read_resource=read,
        on_list_prompts=prompts,
        on_get_prompt=get,
        on_completion=complete,
    )


@asynccontextmanager
async def gateway(era: Era) -> AsyncGenerator[Client]:
    registry = ToolRegistry(rules=[{"tool": "*", "effect": "auto"}])
    registry.register_mcp_client(MCPClient.in_memory("w", InMemoryTransport(hiding_server())))
    async with Client(ToolServer(registry, "gateway").in_memory(), mode=era) as client:
        yield client
    registry.close()


def as_seen(answer: Any) -> Any:
    """Returns an answer as JSON, and checks that nothing in it is hidden."""
    text = answer.model_dump_json(by_alias=True, exclude_none=True)
    assert not [one for one in HIDDEN if one in text or f"\\u{ord(one):04x}" in text], text
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


async def test_results_have_no_hidden_characters_and_a_warning_says_so(
    era: Era, caplog: pytest.LogCaptureFixture
) -> None:
    heard = list[str | None]()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with gateway(era) as client:
        found = as_seen(await client.call_tool("w_say", {}, progress_callback=note))
        failed = [as_seen(await client.call_tool(name, {}))["content"][0]["text"] for name in ("w_fail", "w_refuse")]
    assert [block.get("text", block.get("name")) for block in found["content"][:3]] == [
        f"R{KEPT}",
        "A resource_link was left out: its URI has hidden characters.",
        "n",
    ]
    assert found["content"][3]["resource"]["text"] == "I"
    assert (found["structuredContent"], heard) == ({"k": ["s"]}, ["P"])
    assert [text.partition("\n")[0] for text in failed] == ["E", "the server refused the call: no (-32000)"]
    assert "the result of 'w/say': hidden characters were removed" in caplog.messages


async def test_definitions_have_none_and_names_with_some_are_off(era: Era, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with gateway(era) as client:
        tools = as_seen(await client.list_tools())["tools"]
        resources = as_seen(await client.list_resources())["resources"]
        prompts = as_seen(await client.list_prompts())["prompts"]
    assert [tool["name"] for tool in tools] == ["w_say", "w_fail", "w_refuse"]
    assert (tools[0]["annotations"]["title"], tools[0]["_meta"]["key"]) == ("A", "M")
    assert tools[0]["icons"] == [{"src": "https://a/b"}]
    assert [resource["uri"] for resource in resources] == ["w+x://a"]
    assert [prompt["name"] for prompt in prompts] == ["w_p"]
    assert "'r' of the MCP server 'w': invisible characters were removed" in caplog.messages


async def test_resources_prompts_and_completions_have_none(era: Era) -> None:
    async with gateway(era) as client:
        assert as_seen(await client.read_resource("w+x://a"))["contents"][0]["text"] == "C"
        assert as_seen(await client.get_prompt("w_p"))["messages"][0]["content"]["text"] == "M"
        asked = types.PromptReference(name="w_p")
        completed = as_seen(await client.complete(asked, {"name": "a", "value": ""}))
    assert completed["completion"]["values"] == ["v"]


async def test_our_own_tools_words_are_left_alone(era: Era) -> None:
    def own() -> str:
        return HIDDEN

    async with Client(ToolServer([own], "own").in_memory(), mode=era) as client:
        assert (await client.call_tool("own", {})).content == [types.TextContent(text=HIDDEN)]


def test_visible_words_stay() -> None:
    assert remove_hidden(KEPT) == KEPT
    assert remove_hidden(f"{HIDDEN}a{HIDDEN}") == "a"


async def test_a_result_names_the_gateway_as_its_server() -> None:
    async with gateway("auto") as client:
        meta = (await client.call_tool("w_fail", {})).meta or {}
    assert meta["io.modelcontextprotocol/serverInfo"]["name"] == "gateway"
