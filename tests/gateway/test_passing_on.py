"""Resources, templates, prompts and completion of the servers behind a gateway, in both eras on both sides."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import anyio
import mcp_types as types
import pytest
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.gateway.conftest import ERAS, Era
from tests.gateway.upstream_server import BINARY, GREETING, NOTE, Upstream
from tests.patience import PATIENCE_S
from toolwire import ToolRegistry, ToolServer
from toolwire.gateway.tool_server import Mode
from toolwire.mcp import connection as connections

FAILURE = "toolwire/failure"
RULES = [{"tool": "*/change", "effect": "auto", "optional": True}]


class Gateway:
    """A `ToolServer` in front of servers."""

    def __init__(self, rules: Any = RULES, store: Any = None, **options: Any) -> None:
        self.registry = ToolRegistry(rules=rules, **options)
        self.store = store

    def add(self, name: str, upstream: Upstream, **options: Any) -> Upstream:
        self.registry.register_mcp_client(upstream.client(name), **options)
        return upstream

    @asynccontextmanager
    async def connected(self, era: Era = "auto", **options: Any) -> AsyncGenerator[Client]:
        server = ToolServer(self.registry, "gateway", store=self.store).in_memory()
        async with Client(server, mode=era, cache=None, **options) as client:
            yield client


@pytest.fixture
def gateway() -> Generator[Gateway]:
    made = Gateway()
    yield made
    made.registry.close()


@pytest.fixture(params=ERAS)
def upstream_era(request: pytest.FixtureRequest) -> Era:
    return request.param


async def test_resources_templates_and_prompts_are_listed_and_read(
    gateway: Gateway, era: Era, upstream_era: Era
) -> None:
    upstream = gateway.add("notes", Upstream(upstream_era))
    async with gateway.connected(era) as client:
        resources = (await client.list_resources()).resources
        assert [(one.uri, one.description) for one in resources] == [(f"notes+{NOTE}", "The note of today.")]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == [f"notes+{GREETING}"]
        assert [one.name for one in (await client.list_prompts()).prompts] == ["notes_review", "notes_ask"]
        read = await client.read_resource(resources[0].uri)
        assert read.contents == [types.TextResourceContents(uri=f"notes+{NOTE}", text="milk")]
        picture = await client.read_resource(f"notes+{BINARY}")
        assert picture.contents == [types.BlobResourceContents(uri=f"notes+{BINARY}", blob="AAEC")]
        prompt = await client.get_prompt("notes_review", {"text": "it"})
        assert prompt.messages == [types.PromptMessage(role="user", content=types.TextContent(text="Review it"))]
        asked = types.ResourceTemplateReference(uri=f"notes+{GREETING}")
        assert (await client.complete(asked, {"name": "day", "value": "mo"})).completion.values == ["mo!"]
        named = types.PromptReference(name="notes_review")
        assert (await client.complete(named, {"name": "text", "value": "a"})).completion.values == ["a!"]
    assert upstream.asked == [NOTE, BINARY, ("review", {"text": "it"}), (GREETING, "mo"), ("review", "a")]


@pytest.mark.parametrize("mode", get_args(Mode))
async def test_they_are_served_in_every_mode(gateway: Gateway, mode: Mode) -> None:
    gateway.add("notes", Upstream())
    denied = ToolRegistry(rules=[{"tool": "notes/resources:read", "effect": "deny"}, *RULES])
    denied.register_mcp_client(Upstream().client("notes"))
    for registry, expected in ((gateway.registry, True), (denied, False)):
        async with Client(ToolServer(registry, "gateway", mode=mode).in_memory(), cache=None) as client:
            assert bool((await client.list_resources()).resources) == expected
            assert [one.name for one in (await client.list_prompts()).prompts] == ["notes_review", "notes_ask"]
            if expected:
                assert (await client.read_resource(f"notes+{NOTE}")).contents
                continue
            with pytest.raises(MCPError):
                await client.read_resource(f"notes+{NOTE}")
    denied.close()


async def test_a_result_is_not_for_the_caches_of_others(gateway: Gateway) -> None:
    gateway.add("notes", Upstream())
    async with gateway.connected() as client:
        read = await client.read_resource(f"notes+{NOTE}")
        assert (read.cache_scope, read.ttl_ms) == ("private", 0)


async def test_the_servers_own_names_are_accepted_as_long_as_one_server_alone_has_them(gateway: Gateway) -> None:
    gateway.add("notes", Upstream())
    async with gateway.connected() as client:
        read = await client.read_resource(NOTE)
        assert read.contents == [types.TextResourceContents(uri=NOTE, text="milk")]
        assert (await client.get_prompt("review", {"text": "it"})).messages
        other = Upstream(said="tea")
        gateway.add("My_Other", other)
        with pytest.raises(MCPError) as error:
            await client.read_resource(NOTE)
        told = f"Several servers have the resource '{NOTE}': write one of notes+{NOTE}, my.other+{NOTE}"
        assert (error.value.code, error.value.message, error.value.data) == (-32602, told, {"uri": NOTE})
        with pytest.raises(MCPError) as error:
            await client.get_prompt("review", {"text": "it"})
        told = "Several servers have the prompt 'review': write one of notes_review, My_Other_review"
        assert error.value.message == told
        assert [one.uri for one in (await client.list_resources()).resources] == [f"notes+{NOTE}", f"my.other+{NOTE}"]
        read = await client.read_resource(f"my.other+{NOTE}")
        assert read.contents == [types.TextResourceContents(uri=f"my.other+{NOTE}", text="tea")]
        # Only one of them has a template that begins so.
        other.templates = []
        gateway.registry.remove_mcp_servers(["My_Other"])
        gateway.add("My_Other", other)
        await client.read_resource("note://friday")
    assert other.asked == [NOTE]


@pytest.mark.parametrize("name", ["note://nowhere", "other+note://today", "", "x" * 5_000])
async def test_an_unknown_resource_is_an_error_of_the_protocol(gateway: Gateway, era: Era, name: str) -> None:
    gateway.add("notes", Upstream(era))
    gateway.add("tea", Upstream())
    name = f"notes+{name}" if "nowhere" in name else name
    async with gateway.connected(era) as client:
        with pytest.raises(MCPError) as error:
            await client.read_resource(name)
        assert error.value.code == (-32002 if era == "legacy" and "nowhere" in name else -32602)
        assert len(error.value.message) < 500
        assert error.value.data["uri"] == name
        with pytest.raises(MCPError) as error:
            await client.get_prompt("nope")
        assert (error.value.code, error.value.message) == (-32602, "Unknown prompt: 'nope'")


async def test_rules_and_profiles_apply_to_them(era: Era, caplog: pytest.LogCaptureFixture) -> None:
    rules = [
        {
            "tool": "notes/resources:read",
            "effect": "deny",
            "when": [{"path": "/arguments/uri", "op": "==", "value": NOTE}],
        },
        {"tool": "notes/prompts:get", "effect": "deny"},
    ]
    seen = {"notes/resources:read", "notes/prompts:get", "tea/prompts:get"}
    gateway = Gateway(rules, visible=lambda tool, _: tool in seen)
    log = gateway.registry.enable_logging()
    notes, tea = gateway.add("notes", Upstream()), gateway.add("tea", Upstream())
    async with gateway.connected(era) as client:
        # The rule is about one resource, so that the others are served.
        assert [one.uri for one in (await client.list_resources()).resources] == [f"notes+{NOTE}"]
        with pytest.raises(MCPError) as error:
            await client.read_resource(f"notes+{NOTE}")
        assert error.value.data[FAILURE]["kind"] == "denied"
        assert (await client.read_resource(f"notes+{BINARY}")).contents
        # All of its prompts are denied, and none of the resources of the other is seen.
        assert [one.name for one in (await client.list_prompts()).prompts] == ["tea_review", "tea_ask"]
        with pytest.raises(MCPError) as error:
            await client.read_resource(f"tea+{NOTE}")
        assert (error.value.code, error.value.message) == (-32602, f"Unknown resource: 'tea+{NOTE}'")
        with pytest.raises(MCPError) as error:
            await client.get_prompt("notes_review", {"text": ""})
        assert (error.value.code, error.value.message) == (-32602, "Unknown prompt: 'notes_review'")
    assert (notes.asked, tea.asked) == ([BINARY], [])
    assert [(one.tool_name, one.status) for one in log.get_entries()] == [
        ("notes/resources:read", "success"),
        ("notes/resources:read", "denied"),
    ]
    gateway.registry.close()


async def test_a_request_waits_for_a_person_where_a_rule_says_so(era: Era, tmp_path: Path) -> None:
    gateway = Gateway([{"tool": "notes/resources:read", "effect": "confirm"}], store=f"sqlite:///{tmp_path}/runs.db")
    upstream = gateway.add("notes", Upstream())
    asked: list[str] = []

    async def person(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "once"})

    async with gateway.connected(era, elicitation_callback=person) as client:
        assert (await client.read_resource(f"notes+{NOTE}")).contents
    assert (len(asked), NOTE in asked[0], upstream.asked) == (1, True, [NOTE])
    async with gateway.connected(era) as client:
        with pytest.raises(MCPError) as error:
            await client.read_resource(f"notes+{BINARY}")
    assert error.value.data[FAILURE]["kind"] == "approval_required"
    assert error.value.data[FAILURE]["requestId"]
    assert upstream.asked == [NOTE]
    gateway.registry.close()


async def test_a_server_that_asks_before_it_gives_a_prompt_reaches_the_clients_person(era: Era, tmp_path: Path) -> None:
    gateway = Gateway(store=f"sqlite:///{tmp_path}/runs.db")
    gateway.add("notes", Upstream())

    async def person(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"topic": "tea"})

    async with gateway.connected(era, elicitation_callback=person) as client:
        if era == "auto":
            asked = await client.session.get_prompt("notes_ask", allow_input_required=True)
            assert isinstance(asked, types.InputRequiredResult)
            # The key is the server's own.
            assert list(asked.input_requests or {}) == ["topic_form"]
        prompt = await client.get_prompt("notes_ask")
    assert prompt.messages == [types.PromptMessage(role="user", content=types.TextContent(text="Review tea"))]
    gateway.registry.close()


async def test_a_server_that_needs_what_this_client_does_not_offer_fails_the_call(
    gateway: Gateway, era: Era, upstream_era: Era
) -> None:
    gateway.add("notes", Upstream(upstream_era))
    async with gateway.connected(era) as client:
        result = await client.call_tool("notes_change", {"what": "sample"})
        with pytest.raises(MCPError) as error:
            await client.get_prompt("notes_review", {"text": "sample"})
    assert isinstance(result, types.CallToolResult)
    told = "the server refused the call: it needs sampling (-32021)"
    assert (result.is_error, (result.meta or {})[FAILURE]["kind"]) == (True, "tool_error")
    assert told in str(result.content)
    assert (error.value.code, error.value.message) == (types.INTERNAL_ERROR, told)


@asynccontextmanager
async def hearing(gateway: Gateway, era: Era) -> AsyncGenerator[Client]:
    """A client for `listening`."""
    connected: list[Client] = []

    async def message(received: Any) -> None:
        if era == "legacy" and (told := _told(received)):
            connected[0].told(told)  # type: ignore[attr-defined]

    async with gateway.connected(era, message_handler=message) as client:
        connected.append(client)
        yield client


@asynccontextmanager
async def listening(client: Client, era: Era, uris: list[str]) -> AsyncGenerator[Callable[[], Any]]:
    """Listens for all changes, and yields a function that gives the next one."""
    send, heard = anyio.create_memory_object_stream[str](100)
    async with send, heard, anyio.create_task_group() as tasks:
        if era == "auto":
            is_open = anyio.Event()

            async def listen() -> None:
                async with client.listen(
                    resources_list_changed=True, prompts_list_changed=True, resource_subscriptions=uris
                ) as events:
                    is_open.set()
                    async for event in events:
                        send.send_nowait(_told(event))

            tasks.start_soon(listen)
            await is_open.wait()
        else:
            client.told = send.send_nowait  # type: ignore[attr-defined]
            for uri in uris:
                await client.session.send_request(
                    types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri)), types.EmptyResult
                )

        async def next_() -> str:
            with anyio.fail_after(PATIENCE_S):
                return await heard.receive()

        yield next_
        tasks.cancel_scope.cancel()


def _told(event: Any) -> str:
    if isinstance(event, types.ResourceUpdatedNotification):
        return event.params.uri
    if isinstance(event, ResourceUpdated):
        return event.uri
    is_resources = isinstance(event, ResourcesListChanged | types.ResourceListChangedNotification)
    if is_resources or isinstance(event, PromptsListChanged | types.PromptListChangedNotification):
        return "resources" if is_resources else "prompts"
    return ""


async def test_changes_are_heard_through_the_gateway(
    gateway: Gateway, era: Era, upstream_era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.mcp.offered.list_changes.RELIST_S", 0.01)
    monkeypatch.setattr("toolwire.gateway.sdk_server.LIST_POLL_S", 0.01)
    upstream = gateway.add("notes", Upstream(upstream_era))
    async with hearing(gateway, era) as client:
        assert client.server_capabilities.resources == types.ResourcesCapability(subscribe=True, list_changed=True)
        assert client.server_capabilities.prompts == types.PromptsCapability(list_changed=True)
        assert client.server_capabilities.completions is not None
        assert len((await client.list_resources()).resources) == 1
        assert len((await client.list_prompts()).prompts) == 2
        async with listening(client, era, [f"notes+{NOTE}"]) as heard:
            for what, told in (("resources", "resources"), ("prompts", "prompts"), (NOTE, f"notes+{NOTE}")):
                await client.call_tool("notes_change", {"what": what})
                assert await heard() == told
            await client.call_tool("notes_change", {"what": "note://other"})
            # A server of the handshake era may name a part of the resource.
            await client.call_tool("notes_change", {"what": NOTE if upstream_era == "auto" else f"{NOTE}#1"})
            assert await heard() == f"notes+{NOTE}"
        assert len((await client.list_resources()).resources) == 2
        assert len((await client.list_prompts()).prompts) == 3
    assert upstream.subscribed in ([NOTE], [])


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - a server in another thread fulfils it
            await anyio.sleep(0.01)


@pytest.mark.parametrize("uri", [NOTE, "note://nowhere"])
async def test_a_subscription_outlives_the_replacement_of_its_server_unless_the_new_one_refuses_it(
    gateway: Gateway, era: Era, uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolwire.gateway.sdk_server.LIST_POLL_S", 0.01)
    gateway.add("notes", Upstream())
    async with hearing(gateway, era) as client:
        async with listening(client, era, [f"notes+{uri}"]) as heard:
            gateway.registry.remove_mcp_servers(["notes"])
            replacement = gateway.add("notes", Upstream("legacy"))
            # It may have changed in between.
            while await heard() != f"notes+{uri}":
                pass
            if uri == NOTE:
                await until(lambda: replacement.subscribed == [NOTE])
                await client.call_tool("notes_change", {"what": NOTE})
                while await heard() != f"notes+{NOTE}":
                    pass
            else:
                told = "the resource 'notes+note://nowhere' ended: its server was replaced, and says: there is no such"
                await until(lambda: told in caplog.text)
                if era == "legacy":
                    again = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=f"notes+{uri}"))
                    with pytest.raises(MCPError, match="there is no such note"):
                        await client.session.send_request(again, types.EmptyResult)
        if uri == NOTE:
            if era == "legacy":
                request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=f"notes+{NOTE}"))
                await client.session.send_request(request, types.EmptyResult)
            await until(lambda: replacement.subscribed == [])


async def test_of_a_resource_that_is_hidden_later_a_subscribed_client_hears_only_that_it_changed(
    era: Era, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolwire.gateway.sdk_server.LIST_POLL_S", 0.01)
    hidden = set[str]()
    gateway = Gateway(visible=lambda tool, _: tool not in hidden)
    gateway.add("notes", Upstream())
    async with hearing(gateway, era) as client, listening(client, era, [f"notes+{NOTE}"]) as heard:
        await client.read_resource(f"notes+{NOTE}")
        hidden.add("notes/resources:read")
        await client.call_tool("notes_change", {"what": NOTE})
        while await heard() != f"notes+{NOTE}":
            pass
        with pytest.raises(MCPError):
            await client.read_resource(f"notes+{NOTE}")
    gateway.registry.close()


async def test_a_client_hears_nothing_of_a_resource_that_it_does_not_see() -> None:
    gateway = Gateway([], visible=lambda tool, _: not tool.startswith("notes/resources"))
    upstream = gateway.add("notes", Upstream())
    gateway.add("tea", Upstream())
    async with gateway.connected("legacy") as client:
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=f"notes+{NOTE}"))
        with pytest.raises(MCPError) as error:
            await client.session.send_request(request, types.EmptyResult)
        assert error.value.code == -32602
    async with gateway.connected() as client, client.listen(resource_subscriptions=[f"notes+{NOTE}"]) as events:
        assert events.honored.resource_subscriptions is None
    assert upstream.subscribed == []
    gateway.registry.close()


async def test_a_server_that_refuses_a_subscription_is_heard(gateway: Gateway) -> None:
    gateway.add("notes", Upstream("legacy"))
    async with gateway.connected("legacy") as client:
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="notes+note://nowhere"))
        with pytest.raises(MCPError) as error:
            await client.session.send_request(request, types.EmptyResult)
    assert (error.value.code, error.value.message) == (-32002, "there is no such note")


async def test_a_list_that_hangs_is_the_last_one_and_a_server_that_is_gone_is_unavailable(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "OFFERS_S", 0.05)
    monkeypatch.setattr("toolwire.mcp.offered.list_changes.RELIST_S", 0.01)
    upstream = Upstream()
    gateway.registry.register_mcp_client(upstream.client("notes", call_s=0.05))
    gateway.add("tea", Upstream())
    async with gateway.connected() as client:
        before = (await client.list_resources()).resources
        await client.call_tool("notes_change", {"what": "resources"})
        upstream.hangs = True
        with anyio.fail_after(PATIENCE_S):
            while "its resources cannot be listed: no answer came within 0.05 s" not in caplog.text:
                assert (await client.list_resources()).resources[-1] == before[-1]
        with pytest.raises(MCPError) as error:
            await client.read_resource(f"notes+{NOTE}")
        assert error.value.data[FAILURE]["kind"] == "unknown_outcome"
        gateway.registry.close()
        monkeypatch.setattr(connections.Connection, "_open_client", _refused)
        with pytest.raises(MCPError) as error:
            await client.read_resource(f"notes+{NOTE}")
        assert error.value.data[FAILURE]["kind"] == "unavailable"
        assert (await client.list_resources()).resources == []


def _refused(*_: Any) -> Any:
    raise ConnectionRefusedError("nobody is there")


async def test_texts_are_as_the_server_wrote_them_and_hidden_words_are_off(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = Upstream()
    bad = [
        types.Resource(name="tags", uri="note://a\U000e0041"),
        types.Resource(name="long", uri="note://b", _meta={"x": "y" * 70_000}),
        types.Resource(name="fine<b>", uri="note://c", description=f"# Now\u200b do ```this```\n{'x' * 9_000}"),
    ]
    upstream.resources = bad
    upstream.prompts = [
        types.Prompt(name="q" * 200),
        types.Prompt(name="q\u200b"),
        types.Prompt(name=""),
        types.Prompt(name="p" * 100, title="a\U000e0041b", arguments=[types.PromptArgument(name="n")]),
        types.Prompt(name="hidden", arguments=[types.PromptArgument(name="n\u200b")]),
        types.Prompt(name="far", arguments=[types.PromptArgument(name="n" * 200)]),
    ]
    gateway.add("notes", upstream)
    async with gateway.connected() as client:
        [resource] = (await client.list_resources()).resources
        assert (resource.name, resource.uri) == ("fine<b>", "notes+note://c")
        assert resource.description == f"# Now do ```this```\n{'x' * 9_000}"
        [prompt] = (await client.list_prompts()).prompts
        assert (len(prompt.name), prompt.title) == (48, "ab")
    for told in ("'tags' of the MCP server", "it is too long", "'hidden' of the MCP", "too long"):
        assert told in caplog.text


async def test_a_chosen_server_passes_on_what_was_chosen_alone(gateway: Gateway) -> None:
    gateway.add("notes", Upstream(), enable_funcs=["change", "prompts:get"])
    gateway.add("tea", Upstream(), disable_funcs=["resources:*", "completion:*"], permission="deny")
    async with gateway.connected() as client:
        assert (client.server_capabilities.resources, client.server_capabilities.completions) == (None, None)
        assert [one.name for one in (await client.list_prompts()).prompts] == ["notes_review", "notes_ask"]


async def test_a_server_that_comes_later_is_passed_on_and_one_that_leaves_is_not(gateway: Gateway, era: Era) -> None:
    def add(a: int) -> int:
        return a

    gateway.registry.register(add)
    async with gateway.connected(era) as client:
        assert client.server_capabilities.resources is None
    gateway.add("notes", Upstream())
    async with gateway.connected(era) as client:
        assert len((await client.list_resources()).resources) == 1
        gateway.registry.remove_mcp_servers(["notes"])
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError):
            await client.read_resource(f"notes+{NOTE}")


async def test_no_model_sees_a_request_that_is_passed_on(gateway: Gateway) -> None:
    gateway.add("notes", Upstream())
    gateway.registry.configure(tool_search=True)
    async with gateway.connected() as client:
        found = await client.call_tool("search_tools", {"query": "read a resource of the server, get a prompt"})
        assert ("notes_change" in str(found.content), "prompts" in str(found.content)) == (True, False)
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert sorted(names) == ["notes_change", "search_tools"]
        with pytest.raises(MCPError):
            await client.call_tool("notes_resources:read", {"uri": NOTE})
    assert gateway.registry.invoke("notes/resources:read", {"uri": NOTE}).success is False


async def test_what_a_resource_says_counts_as_read_for_later_calls() -> None:
    def send(to: str) -> str:
        """Sends."""
        return to

    from toolwire import ToolSpec

    gateway = Gateway([])
    gateway.registry.register(ToolSpec.from_function(lambda: "secret", name="vault", labels=["private"]))
    gateway.registry.register(ToolSpec.from_function(send, effects=["send"]))
    gateway.add("notes", Upstream())
    async with gateway.connected() as client:
        await client.call_tool("vault", {})
        assert not (await client.call_tool("send", {"to": "me"})).is_error
        await client.read_resource(f"notes+{NOTE}")
        refused = await client.call_tool("send", {"to": "me"})
    assert refused.is_error
    assert (refused.meta or {})[FAILURE]["kind"] == "approval_required"
    gateway.registry.close()


def test_a_rule_may_name_a_request_and_a_misspelt_one_is_refused() -> None:
    from toolwire import ConfigurationError

    registry = ToolRegistry()
    registry.register_mcp_client(Upstream().client("notes"))
    registry.configure(rules=[{"tool": "notes/resources:read", "effect": "confirm"}])
    registry.configure(
        rules=[{"tool": "notes/*", "effect": "confirm", "when": [{"path": "/arguments/what", "op": "exists"}]}]
    )
    with pytest.raises(ConfigurationError):
        registry.configure(rules=[{"tool": "notes/resources:reed", "effect": "confirm"}])
    registry.close()
