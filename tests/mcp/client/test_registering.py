"""The tools of servers in registries and toolkits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server

from tests.mcp.client.tool_server import OBJECT, text, tool_server
from toolwire import (
    BindingError,
    ConfigurationError,
    MCPClient,
    RegistrationError,
    ServerUnavailable,
    Session,
    Toolkit,
    ToolRegistry,
    ToolResponse,
)
from toolwire.seeds import MCPClientBase, MCPToolFunction

Make = Callable[..., MCPClient]


def server_of(*tools: types.Tool) -> Server[Any]:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools))

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return text(f"{params.name} ran")

    return Server("test-server", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


def plain(*names: str) -> Server[Any]:
    return server_of(*(types.Tool(name=name, input_schema=OBJECT) for name in names))


@pytest.fixture
def client() -> Generator[Make]:
    made: list[MCPClient] = []

    def make(server: Server[Any] | None = None, name: str = "mem", **limits: Any) -> MCPClient:
        made.append(MCPClient.in_memory(name, server or tool_server(), **limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


def registered(client: MCPClientBase, **options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_mcp_client(client, **options)
    return registry


def test_without_a_permission_a_person_confirms_each_call(client: Make) -> None:
    result = registered(client()).invoke("mem/add", {"a": 1, "b": 2})
    assert result.failure is not None
    assert result.failure.kind == "approval_required"


def test_a_rule_names_the_tools_of_a_server(client: Make) -> None:
    registry = ToolRegistry(rules=[{"tool": "mem/*", "effect": "auto"}])
    registry.register_mcp_client(client())
    assert registry.invoke("mem/add", {"a": 1, "b": 2}).success


@pytest.mark.parametrize(
    ("effect", "permission", "kind", "does"),
    [
        ("deny", "auto", "denied", "holds back every call"),
        ("confirm", "auto", "approval_required", "holds back every call"),
        ("auto", "confirm", "approval_required", "lets no call run"),
    ],
)
def test_a_rule_that_cannot_decide_on_the_tools_of_a_server_warns_and_lets_none_run(
    client: Make, caplog: pytest.LogCaptureFixture, effect: str, permission: Any, kind: str, does: str
) -> None:
    condition = {"path": "/arguments/amount", "op": ">", "value": 100}
    registry = ToolRegistry(rules=[{"tool": "mem/pay", "effect": effect, "when": [condition]}])
    schema = {"type": "object", "properties": {"amount": {"type": "string"}}}
    with caplog.at_level(logging.WARNING, "toolwire.permission"):
        registry.register_mcp_client(
            client(server_of(types.Tool(name="pay", input_schema=schema))), permission=permission
        )
    found = "amount > 100 looks at a number, and '/arguments/amount' is a string in its schema"
    [warning] = [record.getMessage() for record in caplog.records if record.name == "toolwire.permission"]
    assert warning == f"rule 1: it can never hit 'mem/pay': {found}; the rule {does}"
    for amount in ("50", "150"):
        result = registry.invoke("mem/pay", {"amount": amount})
        assert result.failure is not None
        assert result.failure.kind == kind
    Session(registry, protocol="attp")
    with pytest.raises(ConfigurationError, match="can never hit"):
        Session(registry, protocol="attp", policy=registry.policy)


@pytest.mark.requirement("toolkit.mcp.enable-funcs", "toolkit.mcp.disable-funcs")
def test_only_the_enabled_tools_are_added_and_not_the_disabled_ones(client: Make) -> None:
    server = client()
    registry = registered(server, enable_funcs=["add", "fail"], disable_funcs=["fail"])
    assert list(registry.tool_library) == ["mem/add"]


@pytest.mark.parametrize("option", ["enable_funcs", "disable_funcs"])
def test_an_unknown_tool_to_choose_is_refused(client: Make, option: str) -> None:
    server, registry = client(), ToolRegistry()
    with pytest.raises(ConfigurationError) as refused:
        registry.register_mcp_client(server, **{option: ["ad"]})
    assert str(refused.value) == f"{option}: the MCP server 'mem' has no tool 'ad'; did you mean 'add'?"
    assert len(registry) == 0


@pytest.mark.requirement("toolkit.mcp.preset-mapping")
def test_presets_are_passed_and_hidden(client: Make) -> None:
    registry = registered(client(), permission="auto", preset_kwargs_mapping={"add": {"b": 40}})
    assert registry.invoke("mem/add", {"a": 2}).data == {"sum": 42}
    refused = registry.invoke("mem/add", {"a": 2, "b": 1})
    assert refused.failure is not None
    assert refused.failure.kind == "invalid_arguments"


def test_a_preset_that_does_not_fit_is_refused(client: Make) -> None:
    with pytest.raises(BindingError):
        registered(client(), preset_kwargs_mapping={"add": {"b": "many"}})


@pytest.mark.requirement("toolkit.mcp.register-client", "toolkit.mcp.group-name", "toolkit.mcp.postprocess")
async def test_a_toolkit_takes_all_parameters_of_its_document(client: Make) -> None:
    def shout(block: Any, response: ToolResponse) -> ToolResponse:
        return ToolResponse([{"type": "text", "text": response.text + "!"}])

    toolkit = Toolkit()
    toolkit.create_tool_group("numbers", "Sums.", active=True)
    toolkit.register_mcp_client(
        client(),
        group_name="numbers",
        enable_funcs=["add", "fail"],
        disable_funcs=["fail"],
        preset_kwargs_mapping={"add": {"b": 1}},
        postprocess_func=shout,
        wrap_tool_result=True,
        permission="auto",
    )
    assert [tool.group for tool in toolkit.tools.values()] == ["numbers"]
    chunks = [chunk async for chunk in toolkit.call_tool_function({"name": "mem/add", "input": {"a": 1}})]
    assert chunks[-1].text == "2!"


@pytest.mark.requirement("toolkit.design.uniform")
async def test_tools_of_all_kinds_are_called_alike_and_answer_with_tool_responses(client: Make) -> None:
    def sync(a: int, b: int) -> int:
        return a + b

    async def later(a: int, b: int) -> int:
        return a + b

    def parts(a: int, b: int) -> Generator[str]:
        yield f"{a} + {b} is "
        yield str(a + b)

    toolkit = Toolkit()
    for function in (sync, later, parts):
        toolkit.register_tool_function(function)
    toolkit.register_mcp_client(client(), enable_funcs=["add"], permission="auto")
    said: dict[str, str] = {}
    for name in ("sync", "later", "parts", "mem/add"):
        use = {"type": "tool_use", "id": "1", "name": name, "input": {"a": 2, "b": 3}}
        chunks = [chunk async for chunk in toolkit.call_tool_function(use)]
        assert {type(chunk) for chunk in chunks} == {ToolResponse}
        assert [chunk.is_last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
        said[name] = chunks[-1].text
    assert said == {"sync": "5", "later": "5", "parts": "2 + 3 is 5", "mem/add": "5"}


def test_an_unknown_group_is_refused(client: Make) -> None:
    with pytest.raises(RegistrationError):
        Toolkit().register_mcp_client(client(), group_name="numbers")
    with pytest.raises(RegistrationError) as refused:
        ToolRegistry().register_mcp_client(client(), group_name="numbers")
    assert str(refused.value) == "group_name='numbers': only a toolkit has groups"


@pytest.mark.requirement("toolkit.mcp.wrap-result")
def test_the_raw_result_is_the_data_of_an_unwrapped_call(client: Make) -> None:
    registry = registered(client(), permission="auto", wrap_tool_result=False)
    log = registry.enable_logging()
    result = registry.invoke("mem/add", {"a": 1, "b": 2})
    assert (type(result.data).__name__, result.data.structured_content, result.text) == (
        *("CallToolResult", {"sum": 3}),
        "3",
    )
    assert len(log) == 1


def test_an_unwrapped_call_needs_the_same_permission(client: Make) -> None:
    result = registered(client(), wrap_tool_result=False).invoke("mem/add", {"a": 1, "b": 2})
    assert result.failure is not None
    assert result.failure.kind == "approval_required"


def test_two_servers_of_one_name_are_refused(client: Make) -> None:
    registry = registered(client())
    with pytest.raises(RegistrationError):
        registry.register_mcp_client(client())
    registry.register_mcp_client(client(name="other"))
    assert {name.partition("/")[0] for name in registry.tool_library} == {"mem", "other"}


@pytest.mark.requirement("toolkit.mcp.remove-servers")
def test_a_removed_server_takes_its_tools_along_and_its_name_is_free(client: Make) -> None:
    server = client()
    registry = registered(server)
    registry.register_mcp_client(client(name="other"), enable_funcs=["add"])
    registry.remove_mcp_servers(["mem"])
    assert list(registry.tool_library) == ["other/add"]
    assert not server.is_connected
    registry.register_mcp_client(client(), enable_funcs=["fail"])
    assert list(registry.tool_library) == ["other/add", "mem/fail"]


def test_an_unknown_server_to_remove_is_refused_and_none_is_removed(client: Make) -> None:
    registry = registered(client(), enable_funcs=["add"])
    with pytest.raises(RegistrationError) as refused:
        registry.remove_mcp_servers(["mem", "meme"])
    assert str(refused.value) == "no MCP server is named 'meme'; did you mean 'mem'?"
    assert list(registry.tool_library) == ["mem/add"]


def test_a_server_that_cannot_start_is_an_error_at_once() -> None:
    missing = MCPClient.stdio("gone", "/no/such/command")
    with pytest.raises(ServerUnavailable) as refused:
        registered(missing)
    missing.close()
    assert str(refused.value) == (
        "the MCP server 'gone' cannot be used: No such file or directory: '/no/such/command'. "
        "Give a command and a folder that exist"
    )


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (["read_it", "read-it"], ["mem/read_it"]),
        (["twice", "twice"], ["mem/twice"]),
        (["n" * 124, "n" * 125], ["mem/" + "n" * 124]),
        (["plain", "tag\U000e0041"], ["mem/plain"]),
    ],
)
def test_a_tool_whose_name_cannot_be_used_is_off_with_a_warning(
    client: Make, caplog: pytest.LogCaptureFixture, names: list[str], kept: list[str]
) -> None:
    with caplog.at_level(logging.WARNING, "toolwire.registry"):
        registry = registered(client(plain(*names)), permission="auto")
    assert list(registry.tool_library) == kept
    assert len([one for one in caplog.records if "is off" in one.getMessage()]) == 1
    assert registry.invoke(kept[0]).success


def test_a_server_never_takes_the_name_of_a_tool_that_is_here(client: Make) -> None:
    registry = ToolRegistry()

    @registry.register
    def mem_add(a: int, b: int) -> int:
        """The host's own."""
        return a * b

    registry.register_mcp_client(client(), permission="auto")
    assert "mem/add" not in registry.tool_library
    assert registry.invoke("mem_add", {"a": 2, "b": 3}).data == 6


@pytest.mark.parametrize("name", ["", "a b", "a/b", "1a", "é", "n" * 33])
def test_a_name_that_cannot_stand_before_a_tool_s_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError):
        MCPClient.stdio(name, "server")
    MCPClient.stdio("n" * 32, "server")


def test_any_client_with_two_methods_can_be_registered(client: Make) -> None:
    class Renamed(MCPClientBase):
        inner = client()

        def list_tools(self) -> list[Any]:
            return self.inner.list_tools()[:1]

        def get_callable_function(self, name: str, wrap_tool_result: bool = True) -> MCPToolFunction:
            return self.inner.get_callable_function(name, wrap_tool_result)

    assert list(registered(Renamed("renamed")).tool_library) == ["mem/add"]


def pages(*sizes: int, is_endless: bool = False) -> Server[Any]:
    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        page = int((params and params.cursor) or 0)
        here: Iterable[int] = range(sizes[min(page, len(sizes) - 1)])
        tools = [types.Tool(name=f"tool_{page}_{number}", input_schema=OBJECT) for number in here]
        is_last = page + 1 >= len(sizes) and not is_endless
        return types.ListToolsResult(tools=tools, next_cursor=None if is_last else str(page + 1))

    return Server("pages", version="1", on_list_tools=list_tools)


def test_all_pages_of_tools_are_read(client: Make) -> None:
    assert len(client(pages(2, 2, 1)).list_tools()) == 5


@pytest.mark.parametrize(("limit", "warnings"), [(5, 0), (4, 1)])
def test_tools_beyond_the_limit_are_off_with_a_warning(
    client: Make, caplog: pytest.LogCaptureFixture, limit: int, warnings: int
) -> None:
    assert len(client(pages(2, 3), tools=limit).list_tools()) == limit
    assert sum(record.name == "toolwire.mcp.mem" for record in caplog.records) == warnings


@pytest.mark.parametrize(("limit", "warnings"), [(3, 0), (2, 1)])
def test_pages_beyond_the_limit_are_off_with_a_warning(
    client: Make, caplog: pytest.LogCaptureFixture, limit: int, warnings: int
) -> None:
    assert len(client(pages(1, 1, 1), pages=limit).list_tools()) == limit
    assert sum(record.name == "toolwire.mcp.mem" for record in caplog.records) == warnings


def test_a_list_without_an_end_is_cut_off(client: Make) -> None:
    assert len(client(pages(1, is_endless=True)).list_tools()) == 100
