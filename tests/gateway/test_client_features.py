"""Sampling and roots of a gateway's client reach the servers whose entries allow it, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from mcp import Client
from tests.gateway.conftest import ERAS, Era
from toolwire import ClientProfiles, MCPClient, ToolRegistry, ToolServer
from toolwire.mcp.config import read_servers
from toolwire.mcp.values.features import Feature
from toolwire.vocabulary.calls import Caller

HIDDEN = "\U000e0041\u200b"
SAMPLE = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(text=f"2 + 2?{HIDDEN}"))],
        max_tokens=5,
    )
)
FORM = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="Whose?", requested_schema={"type": "object", "properties": {"who": {"type": "string"}}}
    )
)
RULES = [{"tool": "*", "effect": "auto"}]


def answer_text(key: str, given: Any) -> str:
    if key.startswith("sample"):
        return f"{given.model}: {given.content.text}"
    return ",".join(str(root.uri) for root in given.roots)


def wanting_server(asked: list[str]) -> Server[Any]:
    """A server whose one tool wants what its argument names: samples, roots and forms. A number may follow a name."""
    wanted: dict[str, Any] = {"sample": SAMPLE, "roots": types.ListRootsRequest(), "form": FORM}
    types_of: dict[str, Any] = {"sample": types.CreateMessageResult, "roots": types.ListRootsResult}

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        names = {"type": "array", "items": {"type": "string"}}
        schema = {"type": "object", "properties": {"names": names}, "required": ["names"]}
        return types.ListToolsResult(tools=[types.Tool(name="want", input_schema=schema)])

    async def call(
        context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        names = cast("list[str]", (params.arguments or {})["names"])
        asked.append(",".join(names))
        if context.protocol_version == "2026-07-28":
            if not params.input_responses:
                return types.InputRequiredResult(
                    input_requests={name: wanted[name.rstrip("0123456789")] for name in names}
                )
            given: dict[str, Any] = dict(params.input_responses)
        else:
            related = ServerMessageMetadata(related_request_id=context.request_id)
            try:
                given = {
                    name: await context.session.send_request(wanted[name], types_of[name], metadata=related)
                    for name in names
                }
            except MCPError as error:
                return types.CallToolResult(
                    is_error=True, content=[types.TextContent(text=f"{error.error.code} {error.error.message}")]
                )
        texts = [answer_text(name, given[name]) for name in names if not name.startswith("form")]
        return types.CallToolResult(content=[types.TextContent(text=text) for text in texts])

    return Server("wanting", on_list_tools=list_tools, on_call_tool=call)


class Gateway:
    """A gateway before one such server."""

    def __init__(self, era: Era, allowed: list[Feature], rules: Any = None) -> None:
        self.asked = list[str]()
        self.registry = ToolRegistry(rules=RULES if rules is None else rules)
        self.behind = MCPClient.in_memory("w", InMemoryTransport(wanting_server(self.asked)))
        self.behind.protocol = "2025-11-25" if era == "legacy" else None
        self.behind.offers.allow(allowed)
        self.registry.register_mcp_client(self.behind)
        self.log = self.registry.enable_logging()
        self.server = ToolServer(self.registry, "gateway")

    def calls(self) -> list[tuple[str, str]]:
        return [(one.tool_name, one.status) for one in reversed(self.log.get_entries())]


@pytest.fixture(params=ERAS)
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    made = Gateway(request.param, ["sampling", "roots"])
    yield made
    made.registry.close()


class Person:
    """A client's model and its roots."""

    def __init__(self, name: str = "ada") -> None:
        self.name = name
        self.prompts = list[Any]()

    @property
    def callbacks(self) -> dict[str, Any]:
        return {"sampling_callback": self.sample, "list_roots_callback": self.roots}

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.prompts += params.messages
        return types.CreateMessageResult(role="assistant", model=self.name, content=types.TextContent(text="four"))

    async def roots(self, context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=cast("Any", f"file:///home/{self.name}"))])


def text_of(result: Any) -> str:
    return " | ".join(block.text for block in result.content)


async def test_a_sample_and_roots_of_the_client_reach_the_server_and_are_on_record(gateway: Gateway) -> None:
    person = Person()
    async with Client(gateway.server.in_memory(), mode="legacy", **person.callbacks) as client:
        assert text_of(await client.call_tool("w_want", {"names": ["sample"]})) == "ada: four"
        assert text_of(await client.call_tool("w_want", {"names": ["roots"]})) == "file:///home/ada"
    # Hidden characters of the server are removed.
    assert [message.content.text for message in person.prompts] == ["2 + 2?"]
    assert gateway.calls() == [
        ("w/sampling:create", "success"),
        ("w/want", "success"),
        ("w/roots:list", "success"),
        ("w/want", "success"),
    ]


async def test_a_client_of_the_later_protocol_answers_with_its_next_request(gateway: Gateway) -> None:
    person = Person()
    async with Client(gateway.server.in_memory(), **person.callbacks) as client:
        assert (
            text_of(await client.call_tool("w_want", {"names": ["roots", "sample"]})) == "file:///home/ada | ada: four"
        )
        assert text_of(await client.call_tool("w_want", {"names": ["sample"]})) == "ada: four"
    # A server of the later protocol is called again with the answers; a handshake server waited for them.
    times = 2 if gateway.behind.protocol is None else 1
    assert gateway.asked == ["roots,sample"] * times + ["sample"] * times


async def test_a_call_of_a_program_reaches_the_client_too(gateway: Gateway) -> None:
    server, person = ToolServer(gateway.registry, "gateway", mode="code"), Person()
    async with Client(server.in_memory(), mode="legacy", **person.callbacks) as client:
        code = "print(w_want(names=['sample']), w_want(names=['roots']))"
        assert text_of(await client.call_tool("run_program", {"code": code})) == "ada: four file:///home/ada\n"


async def test_a_server_that_comes_later_may_ask_in_its_first_call() -> None:
    with ToolRegistry(rules=[{**RULES[0], "optional": True}]) as registry:
        server, person = ToolServer(registry, "gateway"), Person()
        async with Client(server.in_memory(), mode="legacy", **person.callbacks) as client:
            assert (await client.list_tools()).tools == []
            behind = MCPClient.in_memory("w", InMemoryTransport(wanting_server([])))
            behind.offers.allow(["sampling", "roots"])
            await asyncio.to_thread(registry.register_mcp_client, behind)
            assert text_of(await client.call_tool("w_want", {"names": ["sample"]})) == "ada: four"


async def test_each_client_is_asked_for_its_own(gateway: Gateway) -> None:
    ada, bob = Person("ada"), Person("bob")
    server = gateway.server.in_memory()
    found = dict[str, str]()

    async def want(person: Person) -> None:
        async with Client(server, mode="legacy", **person.callbacks) as client:
            for _ in range(3):
                found[person.name] = text_of(await client.call_tool("w_want", {"names": ["roots"]}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(want, ada)
        tasks.start_soon(want, bob)
    # A handshake server in this process names no call, so that a second call makes its request ambiguous.
    refused = {"-32600 roots/list: no call of one client is under way"} if gateway.behind.protocol else set[str]()
    assert all(found[name] in {f"file:///home/{name}", *refused} for name in ("ada", "bob")), found


async def test_a_server_that_is_not_allowed_gets_neither(era: Era) -> None:
    gateway = Gateway(era, [])
    async with Client(gateway.server.in_memory(), mode="legacy", **Person().callbacks) as client:
        said = text_of(await client.call_tool("w_want", {"names": ["sample"]}))
        rooted = text_of(await client.call_tool("w_want", {"names": ["roots"]}))
    assert "ada" not in said + rooted
    told = {
        "legacy": ("-32600 Sampling not supported", "-32600 List roots not supported"),
        "auto": ("the server needs sampling/createMessage", "the server needs roots/list"),
    }[era]
    assert (told[0] in said, told[1] in rooted) == (True, True), (said, rooted)
    assert [name for name, _ in gateway.calls()] == ["w/want", "w/want"]
    gateway.registry.close()


async def test_one_feature_does_not_allow_the_other(era: Era) -> None:
    gateway = Gateway(era, ["sampling"])
    async with Client(gateway.server.in_memory(), mode="legacy", **Person().callbacks) as client:
        assert text_of(await client.call_tool("w_want", {"names": ["sample"]})) == "ada: four"
        assert "file:///" not in text_of(await client.call_tool("w_want", {"names": ["roots"]}))
    gateway.registry.close()


async def test_a_client_without_the_feature_refuses_by_the_protocols_error(gateway: Gateway) -> None:
    async with Client(gateway.server.in_memory(), mode="legacy") as client:
        said = text_of(await client.call_tool("w_want", {"names": ["sample"]}))
    assert "the client does not offer sampling" in said


async def test_a_rule_may_deny_it(era: Era) -> None:
    rules = [{"tool": "w/sampling:create", "effect": "deny", "optional": True}, *RULES]
    gateway, person = Gateway(era, ["sampling"], rules=rules), Person()
    async with Client(gateway.server.in_memory(), mode="legacy", **person.callbacks) as client:
        result = await client.call_tool("w_want", {"names": ["sample"]})
    assert ("ada" in text_of(result), person.prompts) == (False, [])
    assert ("w/sampling:create", "denied") in gateway.calls()
    gateway.registry.close()


async def test_a_server_asks_ten_times_in_a_call_and_no_more(gateway: Gateway) -> None:
    names = ["roots", "sample"] * 6
    async with Client(gateway.server.in_memory(), mode="legacy", **Person().callbacks) as client:
        said = text_of(await client.call_tool("w_want", {"names": names}))
    modern = gateway.behind.protocol is None
    # By the later protocol the keys of one answer are distinct, so that it asks twice.
    assert said.count("four") == 6 if modern else "asked 10 times" in said


async def test_it_counts_against_the_limits_of_the_client(era: Era, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA", "a-long-random-token")
    limits = {"rate": "2/h", "concurrency": 1}
    profiles = ClientProfiles({"ada": {"token": "${ADA}", "tools": ["*"], "limits": limits}})
    gateway = Gateway(era, ["sampling"])
    server = ToolServer(
        gateway.registry, "gateway", token_verifier=profiles, caller=Caller(principal="ada")
    ).in_memory()
    async with Client(server, mode="legacy", **Person().callbacks) as client:
        # The call and its sample are two of the hour, and the call's place is not waited for.
        assert text_of(await client.call_tool("w_want", {"names": ["sample"]})) == "ada: four"
        over = await client.call_tool("w_want", {"names": ["sample"]})
    assert (over.meta or {})["toolwire/failure"]["kind"] == "overloaded"
    gateway.registry.close()


def test_the_entry_of_a_server_allows_them() -> None:
    entry = {"command": "w", "allow": ["sampling", "roots"]}
    (server,), problems, _ = read_servers({"mcpServers": {"w": entry}})
    assert (sorted(server.client.offers.allowed), problems) == (["roots", "sampling"], [])
    (closed,), _, _ = read_servers({"mcpServers": {"w": {"command": "w"}}})
    assert closed.client.offers.allowed == frozenset()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["elicitation"], "config: mcpServers.w.allow[0]: 'elicitation' is not known: write sampling or roots"),
        ("sampling", "config: mcpServers.w.allow: 'sampling' is not a list of texts"),
        ([True], "config: mcpServers.w.allow[0]: write a text"),
    ],
)
def test_an_entry_that_allows_something_else_is_off(given: Any, told: str) -> None:
    servers, (problem,), _ = read_servers({"mcpServers": {"w": {"command": "w", "allow": given}}})
    assert (servers, str(problem)) == ([], f"{told}. The MCP server 'w' is off")


async def test_a_sample_is_kept_while_a_form_of_the_same_answer_waits(tmp_path: Any) -> None:
    gateway = Gateway("auto", ["sampling"])

    async def fill(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"who": "mine"})

    person = Person()
    server = ToolServer(gateway.registry, "gateway", store=f"sqlite:///{tmp_path}/runs.db").in_memory()
    async with Client(server, mode="legacy", elicitation_callback=fill, **person.callbacks) as client:
        assert text_of(await client.call_tool("w_want", {"names": ["sample", "form"]})) == "ada: four"
    assert (len(person.prompts), gateway.asked) == (1, ["sample,form", "sample,form"])
    gateway.registry.close()
