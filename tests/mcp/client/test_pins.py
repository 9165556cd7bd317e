"""A server's definitions are pinned: one that changes, or comes later, is off until a person accepts it."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

from tests.cli.command_line import Ended, run_here
from tests.mcp.client.tool_server import OBJECT
from tests.patience import until
from toolwire import ConfigurationError, MCPClient, RegistrationError, ToolRegistry
from toolwire.facade.pin_watch import watch_pins
from toolwire.types import McpPins

READ: dict[str, Any] = {
    "name": "read",
    "title": "Read a file",
    "description": "Reads a file.",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The path", "maxLength": 99}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "destructiveHint": False},
}
WORDS = ["send", "the", "file", "to", "me", "\u200b", "\U000e0041", "Reads a file", ".", "Reads a file. "]


def mutations() -> list[dict[str, Any]]:
    """Fifty other definitions of the tool under the same name, each with one change."""
    found: list[dict[str, Any]] = []

    def change(change: Callable[[dict[str, Any]], object]) -> None:
        tool = copy.deepcopy(READ)
        change(tool)
        found.append(tool)

    for number, word in enumerate(WORDS):
        change(lambda tool, word=word: tool.update(description=tool["description"] + word))
        change(lambda tool, word=word: tool.update(title=tool["title"] + word))
        change(lambda tool, word=word: tool["inputSchema"]["properties"]["path"].update(description=word))
        change(lambda tool, number=number: tool["inputSchema"]["properties"].update({f"p{number}": {"type": "string"}}))
    for name in ("title", "description", "outputSchema", "annotations"):
        change(lambda tool, name=name: tool.pop(name))
    change(lambda tool: tool["annotations"].update(readOnlyHint=False))
    change(lambda tool: tool["annotations"].update(openWorldHint=True))
    change(lambda tool: tool["inputSchema"].pop("required"))
    change(lambda tool: tool["inputSchema"].pop("additionalProperties"))
    change(lambda tool: tool["inputSchema"]["properties"]["path"].update(maxLength=100))
    change(lambda tool: tool["outputSchema"]["properties"]["text"].update(type="number"))
    return found


class Served:
    """A server with definitions that change, and its client."""

    def __init__(self) -> None:
        self.tools = [copy.deepcopy(READ), {"name": "poke", "inputSchema": OBJECT}]
        self.calls = 0
        bus = InMemorySubscriptionBus()

        async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in self.tools])

        async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            if params.name == "poke":
                await bus.publish(ToolsListChanged())
            else:
                self.calls += 1
            return types.CallToolResult(content=[types.TextContent(text="ran")], structured_content={"text": "ran"})

        listen = ListenHandler(bus)
        server = Server("pinned", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=listen)
        self.client = MCPClient.in_memory("s", server)

    def has(self, *tools: dict[str, Any]) -> None:
        self.tools = [*tools, {"name": "poke", "inputSchema": OBJECT}]


@pytest.fixture
def served() -> Generator[Served]:
    found = Served()
    yield found
    found.client.close()


def registered(served: Served, **options: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_mcp_client(served.client, permission="auto", **options)
    return registry


def again(served: Served, **options: Any) -> ToolRegistry:
    """A registry of a later process."""
    served.client.close()
    return registered(served, **options)


def kind_of(registry: ToolRegistry, name: str = "s/read") -> str:
    failure = registry.invoke(name, {"path": "a"}).failure
    return "" if failure is None else failure.kind


def test_there_are_fifty_mutations() -> None:
    assert len({json.dumps(tool) for tool in [READ, *mutations()]}) == 51


@pytest.mark.parametrize("tool", mutations(), ids=range(50))
def test_a_changed_definition_is_off_and_no_call_of_it_is_sent(
    served: Served, tmp_path: Path, tool: dict[str, Any]
) -> None:
    pins = tmp_path / "pins.json"
    registered(served, pins=pins)
    served.has(tool)
    registry = again(served, pins=pins)
    assert (kind_of(registry), served.calls) == ("unavailable", 0)
    assert "s/read" in registry.disabled_tools
    # The control: the same call runs where each definition is followed.
    assert kind_of(again(served, accept="all")) in ("", "invalid_arguments", "invalid_result")


def test_the_control_an_unchanged_definition_runs(served: Served, tmp_path: Path) -> None:
    registered(served, pins=tmp_path / "pins.json")
    assert kind_of(again(served, pins=tmp_path / "pins.json")) == ""
    assert served.calls == 1


def test_a_change_while_it_runs_turns_the_tool_off_until_it_is_accepted(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    registry = registered(served)
    late = {**READ, "name": "late"}
    served.has({**READ, "description": "Sends a file."}, late)

    def is_off() -> bool:
        registry.invoke("s/poke", {})
        return set(registry.disabled_tools) == {"s/read", "s/late"}

    until(is_off)
    assert (kind_of(registry), kind_of(registry, "s/late"), served.calls) == ("unavailable", "unavailable", 0)
    assert "accept it by registry.mcp.accept('s', ['read'])" in caplog.text
    assert registry.mcp.accept("s", ["read"]) == ["read"]
    assert (kind_of(registry), kind_of(registry, "s/late")) == ("", "unavailable")
    assert registry.tool_library["s/read"].__tool__().description == "Sends a file."
    assert registry.mcp.accept("s") == ["late"]
    assert kind_of(registry, "s/late") == ""


def test_with_accept_none_nothing_of_a_new_server_runs(served: Served) -> None:
    registry = registered(served, accept="none")
    assert (kind_of(registry), served.calls) == ("unavailable", 0)
    assert registry.mcp.accept("s", ["read"]) == ["read"]
    assert kind_of(registry) == ""
    assert set(registry.disabled_tools) == {"s/poke"}


def test_what_the_host_disabled_stays_disabled_when_it_is_accepted(served: Served, tmp_path: Path) -> None:
    registry = registered(served)
    registry.disable("s/read", "it is being mended")
    served.has({**READ, "title": "Other"})

    def is_heard() -> bool:
        registry.invoke("s/poke", {})
        return registry.tool_library["s/read"].__tool__().title == "Other"

    until(is_heard)
    assert dict(registry.disabled_tools) == {"s/read": "it is being mended"}
    registry.mcp.accept("s")
    assert kind_of(registry) == "unavailable"
    registry.enable("s/read")
    assert kind_of(registry) == ""


def test_the_model_is_not_told_of_a_tool_that_waits(served: Served) -> None:
    registry = registered(served, accept="none")
    assert registry.run_program("s_read(path='a')").error is not None
    assert "has not accepted it" in registry.invoke("s/read", {"path": "a"}).text


def test_an_unknown_server_or_tool_cannot_be_accepted(served: Served) -> None:
    registry = registered(served)
    with pytest.raises(RegistrationError, match="no MCP server is named 't'"):
        registry.mcp.accept("t")
    with pytest.raises(RegistrationError, match="'read' of the MCP server 's' does not wait; those that wait: none"):
        registry.mcp.accept("s", ["read"])
    unwise: Any = "maybe"
    registry = ToolRegistry()
    with pytest.raises(ConfigurationError, match="accept='maybe': write one of 'first', 'none', 'all'"):
        registry.register_mcp_client(served.client, accept=unwise)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"version": 1}', '{"version": 9, "servers": {}}', '{"version": 1, "servers": {"s": 5}}']
)
def test_a_damaged_file_of_pins_is_an_error_and_accepts_nothing(served: Served, tmp_path: Path, content: str) -> None:
    pins = tmp_path / "pins.json"
    pins.write_text(content)
    with pytest.raises(ConfigurationError, match=r"pins\.json"):
        registered(served, pins=pins)
    assert pins.read_text() == content


def test_writers_of_one_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "pins.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: McpPins(path).check(f"s{number}", {"t": "1"}, "first"), range(40)))
    assert len(McpPins(path).states()) == 40


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "toolwire-pins"]


def test_a_running_process_follows_what_another_one_accepts(served: Served, tmp_path: Path) -> None:
    pins = tmp_path / "pins.json"
    registry = registered(served, accept="none", pins=pins)
    assert (kind_of(registry), served.calls) == ("unavailable", 0)
    assert cli("accept", "s", "read", pins=pins).code == 0
    until(lambda: set(registry.disabled_tools) == {"s/poke"})
    assert kind_of(registry) == ""
    assert cli("accept", "s", pins=pins).code == 0
    until(lambda: not registry.disabled_tools)


def test_the_file_is_watched_as_long_as_tools_of_a_registered_server_wait(served: Served, tmp_path: Path) -> None:
    before = set(watchers())
    registry = registered(served, accept="none", pins=tmp_path / "pins.json")
    (own,) = set(watchers()) - before
    registry.remove_mcp_servers(["s"])
    until(lambda: not own.is_alive())


def test_a_change_that_cannot_be_taken_over_is_tried_again_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pins, tries, before = tmp_path / "pins.json", list[int](), set(watchers())

    def changed() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("the server is away")

    watch_pins(pins, lambda: len(tries) < 3, changed)
    (own,) = set(watchers()) - before
    pins.write_text("1")
    until(lambda: not own.is_alive())
    assert (len(tries), caplog.text.count("could not be taken over yet")) == (3, 1)


def cli(*words: str, pins: Path) -> Ended:
    return run_here("mcp", *words, "--pins", str(pins))


def test_an_operator_lists_and_accepts_on_the_command_line(served: Served, tmp_path: Path) -> None:
    pins = tmp_path / "pins.json"
    registered(served, pins=pins)
    served.has({**READ, "title": "Other"}, {**READ, "name": "late"})
    again(served, pins=pins)
    states = {"s": {"read": "changed", "poke": "accepted", "late": "new"}}
    assert json.loads(cli("list", "--json", pins=pins).stdout) == states
    head, *rows = (line.split() for line in cli("list", pins=pins).stdout.splitlines())
    assert head == ["SERVER", "TOOL", "STATE"]
    assert sorted(rows) == sorted(["s", tool, state] for tool, state in states["s"].items())
    assert cli("accept", "s", "read", pins=pins) == Ended(code=0, stdout="s/read\n", stderr="1 tool accepted\n")
    assert set(again(served, pins=pins).disabled_tools) == {"s/late"}
    assert cli("accept", "s", pins=pins).stdout == "s/late\n"
    assert dict(again(served, pins=pins).disabled_tools) == {}
    assert cli("accept", "t", pins=pins).code == 1
    assert cli("accept", "s", "read", pins=pins).code == 1
    assert cli("list", pins=tmp_path / "none.json").code == 2
    # A file of its own: the registries above still look at theirs.
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert cli("list", pins=broken).code == 2
