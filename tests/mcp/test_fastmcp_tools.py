"""Tools given to FastMCP, and tools of FastMCP taken over, with the real library."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import date
from typing import Any

import mcp_types
import pytest
from fastmcp import Client, FastMCP
from fastmcp.server.transforms import Namespace
from fastmcp.tools import Tool as FastmcpTool
from fastmcp.tools import ToolResult as FastmcpResult

from tests.patience import PATIENCE_S
from toolwire import Decision, Rule, Toolkit, ToolRegistry, ToolResult, ToolSpec
from toolwire.approvals import Decider
from toolwire.mcp.values.call_results import FAILURE_META
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError


def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


def paying(paid: list[int]) -> ToolSpec:
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return f"paid {amount}"

    return ToolSpec.from_function(pay, permission="confirm")


def server_with(*tools: FastmcpTool) -> FastMCP:
    server = FastMCP("library")
    for tool in tools:
        server.add_tool(tool)
    return server


def text_of(result: FastmcpResult) -> str:
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


def kind_of(result: FastmcpResult) -> str:
    assert result.is_error
    return (result.meta or {})[FAILURE_META]["kind"]


# -- to FastMCP -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("spec.export.fastmcp")
async def test_a_client_of_fastmcp_sees_the_tool_and_gets_its_value() -> None:
    spec = ToolSpec.from_function(add, title="Plus", tags=["sums"], version="3", annotations={"readOnlyHint": True})
    async with Client(server_with(spec.to_fastmcp())) as client:
        (listed,) = await client.list_tools()
        result = await client.call_tool("add", {"a": 2})
    assert (listed.name, listed.title, listed.description) == ("add", "Plus", "Adds.")
    assert listed.input_schema == spec.input_schema
    assert listed.annotations is not None
    assert listed.annotations.read_only_hint is True
    assert listed.meta == {"fastmcp": {"versions": ["3"], "version": "3", "tags": ["sums"]}}
    assert (result.data, result.structured_content, result.is_error) == (3, {"result": 3}, False)


@pytest.mark.requirement("spec.export.fastmcp")
async def test_wrong_arguments_are_told_as_on_every_path() -> None:
    spec = ToolSpec.from_function(add).bind("b", default=5)
    tool = spec.to_fastmcp()
    assert list(tool.parameters["properties"]) == ["a"]
    wrong = await server_with(tool).call_tool("add", {"a": "x", "b": 2})
    registry = ToolRegistry()
    registry.register(spec)
    assert (kind_of(wrong), text_of(wrong)) == ("invalid_arguments", registry.invoke("add", {"a": "x", "b": 2}).text)
    spec.state = {"b": 40}
    assert (await tool.run({"a": 2})).structured_content == {"result": 42}


@pytest.mark.requirement("spec.export.fastmcp-copy")
def test_changing_the_tool_of_fastmcp_leaves_the_spec_as_it_was() -> None:
    spec = ToolSpec.from_function(add, meta={"shelf": ["a"]})
    before = (spec.to_jsonschema(), spec.output_schema, spec.meta, spec.description)
    tool = spec.to_fastmcp()
    tool.parameters["properties"].clear()
    assert tool.output_schema is not None
    tool.output_schema["properties"].clear()
    assert tool.meta is not None
    tool.meta["shelf"].clear()
    tool.description = "Subtracts."
    assert (spec.to_jsonschema(), spec.output_schema, spec.meta, spec.description) == before
    assert spec.to_fastmcp() is not tool


async def test_a_tool_that_a_person_confirms_does_not_run_unasked() -> None:
    paid: list[int] = []
    refused = await server_with(paying(paid).to_fastmcp()).call_tool("pay", {"amount": 5})
    assert (kind_of(refused), paid) == ("approval_required", [])
    # Taken away, the protection is gone: FastMCP runs the same function.
    free = await server_with(FastmcpTool.from_function(paying(paid).__tool__().function, name="pay")).call_tool(
        "pay", {"amount": 5}
    )
    assert (free.is_error, paid) == (False, [5])


async def test_a_registry_decides_on_the_calls_of_its_tools_and_records_them() -> None:
    paid: list[int] = []
    spec = paying(paid)
    registry = ToolRegistry(approver=lambda request: Decision(verdict="approve", by=Decider(principal="owner")))
    registry.register(spec, name="settle")
    log = registry.enable_logging()
    server = server_with(spec.to_fastmcp(registry))
    assert text_of(await server.call_tool("settle", {"amount": 5})) == "paid 5"
    too_much = {"path": "/arguments/amount", "op": ">", "value": 100}
    registry.configure(rules=[Rule(effect="deny", tool="settle", when=[too_much])])
    assert kind_of(await server.call_tool("settle", {"amount": 500})) == "denied"
    statuses = sorted(entry.status for entry in log.get_entries() if entry.tool_name == "settle")
    assert (paid, statuses) == ([5], ["denied", "success"])


async def test_a_toolkit_decides_on_the_calls_of_its_tools() -> None:
    spec = ToolSpec.from_function(add)
    toolkit = Toolkit("clerk")
    toolkit.add_tool(spec)
    assert (await spec.to_fastmcp(toolkit).run({"a": 1})).structured_content == {"result": 2}


def test_a_registry_without_the_tool_is_refused() -> None:
    registry = ToolRegistry()
    registry.register(ToolSpec.from_function(add))
    with pytest.raises(ConfigurationError) as refused:
        ToolSpec.from_function(add).to_fastmcp(registry)
    assert str(refused.value) == (
        "to_fastmcp(registry=...): the registry does not have this tool 'add': register it first"
    )


async def later(fails: bool = False) -> dict[str, int]:
    """Answers later."""
    await asyncio.sleep(0)
    if fails:
        raise KeyError("gone")
    return {"at": 7}


def names() -> list[str]:
    """Lists names that are not UTF-8."""
    return ["caf\udce9"]


def picture() -> ToolResult:
    """Draws."""
    block: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    return ToolResult(True, content=[block])


async def test_values_blocks_and_errors_take_the_forms_of_fastmcp() -> None:
    listing = {"type": "array", "items": {"type": "integer"}}
    outside = {"name": "rows", "inputSchema": {"type": "object"}, "outputSchema": listing}
    rows = ToolSpec.from_mcp(outside, lambda: [1, 2], permission="auto")
    server = server_with(*(spec.to_fastmcp() for spec in (*map(ToolSpec.from_function, (later, picture)), rows)))
    assert (await server.call_tool("later", {})).structured_content == {"at": 7}
    failed = await server.call_tool("later", {"fails": True})
    assert (kind_of(failed), text_of(failed).splitlines()[0]) == ("tool_error", "KeyError: 'gone'")
    half = await server_with(ToolSpec.from_function(names).to_fastmcp()).call_tool("names", {})
    assert half.structured_content == {"result": ["caf\ufffd"]}
    drawn = await server.call_tool("picture", {})
    assert drawn.content == [mcp_types.ImageContent(data="iVBORw0KGgo=", mime_type="image/png")]
    (listed,) = [tool for tool in await server.list_tools() if tool.name == "rows"]
    found = await server.call_tool("rows", {})
    assert (listed.output_schema, found.structured_content, text_of(found)) == (None, None, "[1, 2]")


async def test_a_cancelled_call_of_fastmcp_cancels_the_tool() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        """Waits."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    call = asyncio.ensure_future(server_with(ToolSpec.from_function(wait).to_fastmcp()).call_tool("wait", {}))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
        call.cancel()
        await ended.wait()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_copies_that_fastmcp_makes_call_the_same_tool() -> None:
    paid: list[int] = []
    server = server_with(paying(paid).to_fastmcp(), ToolSpec.from_function(add).to_fastmcp())
    outer = FastMCP("outer")
    outer.mount(server, namespace="shop")
    server.add_transform(Namespace("in"))
    assert (await outer.call_tool("shop_in_add", {"a": 1})).structured_content == {"result": 2}
    assert kind_of(await outer.call_tool("shop_in_pay", {"amount": 5})) == "approval_required"
    renamed = FastmcpTool.from_tool(paying(paid).to_fastmcp(), name="give")
    assert kind_of(await server_with(renamed).call_tool("give", {"amount": 5})) == "approval_required"
    assert paid == []


# -- from FastMCP ---------------------------------------------------------------------------------------------------


def taken(function: Callable[..., Any], **options: Any) -> ToolSpec:
    return ToolSpec.from_fastmcp(FastmcpTool.from_function(function, **options), permission="auto")


def test_all_that_a_tool_of_fastmcp_says_is_taken_over() -> None:
    tool = FastmcpTool.from_function(
        add,
        name="plus",
        title="Plus",
        description="Adds two.",
        tags={"sums"},
        version="4",
        icons=[mcp_types.Icon(src="https://example.com/plus.png")],
        annotations=mcp_types.ToolAnnotations(read_only_hint=True),
        meta={"shelf": "a", "fastmcp": {"_internal": {"visibility": True}}},
    )
    spec = ToolSpec.from_fastmcp(tool)
    assert (spec.name, spec.title, spec.description, spec.version) == ("plus", "Plus", "Adds two.", "4")
    assert (spec.input_schema, spec.output_schema) == (tool.parameters, tool.output_schema)
    assert (spec.tags, spec.icons, spec.meta) == (
        frozenset({"sums"}),
        [{"src": "https://example.com/plus.png"}],
        {"shelf": "a"},
    )
    assert (spec.annotations["readOnlyHint"], spec.permission) == (True, "confirm")
    assert ToolSpec.from_fastmcp(tool, tags=["own"], permission="auto").tags == {"own"}
    again = spec.to_fastmcp()
    assert (again.parameters, again.output_schema, again.version) == (tool.parameters, tool.output_schema, "4")


@pytest.mark.requirement("spec.from-mcp.fastmcp")
async def test_a_tool_of_fastmcp_runs_by_its_owner_a_model_and_a_program() -> None:
    for spec in (taken(add), ToolSpec.from_fastmcp(ToolSpec.from_function(add).to_fastmcp(), permission="auto")):
        assert (spec(a=1, b=2), await spec.acall(a=1), spec.exec(a=1).data) == (3, 2, {"result": 2})
    registry = ToolRegistry()
    registry.register(taken(add))
    registry.register(taken(later))
    assert registry.invoke("add", {"a": 1}).data == {"result": 2}
    assert (await registry.ainvoke("later", {})).data == {"at": 7}
    program = await asyncio.to_thread(registry.run_program, "print(add(a=3)['result'] + later()['at'])")
    assert program.stdout == "11\n"


def test_a_tool_of_fastmcp_takes_our_path() -> None:
    ran: list[int] = []

    def touch(n: int, owner: str) -> int:
        """Touches."""
        ran.append(n)
        return len(owner)

    registry = ToolRegistry()
    registry.register(ToolSpec.from_fastmcp(FastmcpTool.from_function(touch)).bind("owner", default="me"))
    asked = registry.invoke("touch", {"n": 1})
    wrong = registry.invoke("touch", {"n": "x", "owner": "you"})
    kinds = [result.failure and result.failure.kind for result in (asked, wrong)]
    assert (kinds, ran) == (["approval_required", "invalid_arguments"], [])
    registry.configure(rules=[Rule(effect="auto", tool="touch")])
    assert (registry.invoke("touch", {"n": 1}).data, ran) == ({"result": 2}, [1])


async def test_errors_of_a_tool_of_fastmcp_say_what_was_wrong() -> None:
    def born(day: date) -> str:
        """Reads a date."""
        return day.isoformat()

    def broken() -> FastmcpResult:
        return FastmcpResult(content="The shelf is empty.", is_error=True)

    def asks() -> mcp_types.InputRequiredResult:
        return mcp_types.InputRequiredResult(input_requests={}, request_state="s")

    def misfit() -> Any:
        return {"rows": "none"}

    registry = ToolRegistry()
    rows = {"type": "object", "properties": {"rows": {"type": "array"}}}
    for spec in (taken(born), taken(later), taken(broken), taken(asks), taken(misfit, output_schema=rows)):
        registry.register(spec)
    called = [("born", {"day": "x"}), ("later", {"fails": True}), ("broken", {}), ("asks", {}), ("misfit", {})]
    results = [await registry.ainvoke(name, arguments) for name, arguments in called]
    assert [result.failure and result.failure.kind for result in results] == [
        "invalid_arguments",
        "tool_error",
        "tool_error",
        "unavailable",
        "invalid_result",
    ]
    assert [result.error for result in results][:4] == [
        "The arguments of 'born' are wrong:\n- 'day': Input should be a valid date or datetime, input is too short.",
        "KeyError: 'gone'",
        "The shelf is empty.",
        (
            "'asks' did not finish: it asks the client of its server for input, and was called without one. "
            "Its owner connects to that server by MCPClient."
        ),
    ]
    assert registry.invoke("born", {"day": "2026-07-28"}).data == {"result": "2026-07-28"}
    with pytest.raises(KeyError):
        await taken(later).acall(fails=True)


@pytest.mark.parametrize("value", [add, FastMCP("library"), {"name": "add"}])
def test_only_a_tool_of_fastmcp_is_taken(value: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        ToolSpec.from_fastmcp(value)
    assert str(refused.value) == (
        f"{value!r:.80} is not a tool of FastMCP: give a fastmcp.tools.Tool, such as Tool.from_function(f) or "
        "await server.get_tool('name')"
    )


@pytest.mark.parametrize("package", ["fastmcp", "mcp_types"])
def test_without_the_package_the_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, loaded, None)
    for loaded in [name for name in sys.modules if name.startswith("toolwire.mcp.values")]:
        monkeypatch.delitem(sys.modules, loaded)
    for call in (ToolSpec.from_function(add).to_fastmcp, lambda: ToolSpec.from_fastmcp(object())):
        with pytest.raises(ConfigurationError) as failed:
            call()
        assert str(failed.value) == (
            f"a tool of FastMCP needs the package {package!r}, which is not here: pip install 'toolwire[fastmcp]'"
        )
