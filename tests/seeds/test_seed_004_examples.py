"""Every code example of the seed on tools as classes, run as it is written, with the result that it states.

The parts of the seed about XML, its generated instructions and its built-in tools are later work.
"""

from __future__ import annotations

from typing import Any, Optional, cast

import pytest

import toolwire
from toolwire import (
    AgentToolkit,
    BaseTool,
    DefinitionError,
    ToolCall,
    ToolParameter,
    ToolPermission,
    ToolRegistry,
    ToolResult,
)

PAGES = [{"title": f"page {number}"} for number in range(20)]


class WebSearchTool(BaseTool):
    def __init__(self):
        super().__init__(
            name="web_search",
            description="搜索互联网获取信息",
            permission=ToolPermission.AUTO,
        )

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter(
                name="query",
                type="string",
                description="搜索查询词",
                required=True,
            ),
            ToolParameter(
                name="max_results",
                type="integer",
                description="最大结果数量",
                required=False,
                default=10,
            ),
        ]

    async def execute(self, query: str, max_results: int = 10, **kwargs) -> ToolResult:
        try:
            results = await self._do_search(query, max_results)
            return ToolResult(success=True, data=results)
        except Exception as e:
            return ToolResult(success=False, error=str(e))

    async def _do_search(self, query: str, max_results: int) -> list:
        if query == "offline":
            raise ConnectionError("no route to host")
        return PAGES[:max_results]


class WebFetchTool(BaseTool):
    """A second tool for the seed's start-up; its body is not the seed's."""

    def __init__(self, permission: ToolPermission = ToolPermission.AUTO, **config: Any):
        super().__init__("web_fetch", "抓取网页", permission, **config)
        self.fetched: list[str] = []

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter(name="url", type="string", description="地址")]

    def validate_params(self, params: dict[str, Any]) -> Optional[str]:  # noqa: UP045 - as the seed writes it
        return None if params["url"].startswith("https://") else "url must begin with https://"

    async def execute(self, url: str) -> ToolResult:
        self.fetched.append(url)
        return ToolResult(success=True, data=f"page at {url}")


class CallSubagentTool(BaseTool):
    """A third tool for the seed's start-up; its body is not the seed's."""

    def __init__(self):
        super().__init__("call_subagent", "路由到 SubAgent")

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter("agent_name", "string", "名称")]

    async def execute(self, agent_name: str) -> ToolResult:
        return ToolResult(True, agent_name)


@pytest.mark.requirement(
    "base.permission.levels", "base.permission.auto", "base.permission.confirm", "base.tool.permission"
)
def test_a_permission_is_one_of_the_seeds_two_or_deny() -> None:
    assert {level.name: level.value for level in ToolPermission} == {
        "AUTO": "auto",
        "CONFIRM": "confirm",
        "DENY": "deny",
    }
    assert CallSubagentTool().permission is ToolPermission.AUTO


@pytest.mark.requirement("base.modules.names", "xml.modules.names")
def test_the_seeds_names_are_importable_from_the_root() -> None:
    names = ("BaseTool", "ToolPermission", "ToolParameter", "ToolResult", "ToolRegistry", "AgentToolkit")
    assert [getattr(toolwire, name).__name__ for name in names] == [*names[:-1], "Toolkit"]
    xml = ("XMLToolCallParser", "parse_tool_calls", "ToolPromptGenerator")
    assert [getattr(toolwire, name).__name__ for name in xml] == list(xml)


@pytest.mark.requirement(
    "base.parameter.name", "base.parameter.description", "base.parameter.required", "base.parameter.default"
)
def test_a_parameter_is_required_and_has_no_default_unless_said_otherwise() -> None:
    parameter = ToolParameter(name="query", type="string", description="搜索查询词")

    assert (parameter.name, parameter.type, parameter.description) == ("query", "string", "搜索查询词")
    assert (parameter.required, parameter.default) == (True, None)


@pytest.mark.requirement("base.parameter.default", "base.example.default")
async def test_a_tool_receives_the_default_of_a_parameter_that_is_left_out() -> None:
    received: list[dict[str, Any]] = []

    class Noting(WebSearchTool):
        async def execute(self, **params: Any) -> ToolResult:
            received.append(params)
            return ToolResult(True)

    assert (await Noting()(query="python")).success
    assert received == [{"query": "python", "max_results": 10}]


@pytest.mark.requirement("base.parameter.type")
@pytest.mark.parametrize("json_type", ["string", "integer", "number", "boolean", "array", "object"])
def test_a_parameters_type_is_its_type_in_the_schema(json_type: str) -> None:
    class Taking(CallSubagentTool):
        def get_parameters(self) -> list[ToolParameter]:
            return [ToolParameter("agent_name", json_type, "名称")]

    registry = ToolRegistry()
    registry.register(Taking())

    assert registry.to_toolspecs()["call_subagent"].params["agent_name"]["type"] == json_type


@pytest.mark.requirement("base.parameter.type")
def test_a_type_that_json_lacks_is_refused() -> None:
    class Taking(CallSubagentTool):
        def get_parameters(self) -> list[ToolParameter]:
            return [ToolParameter("agent_name", "text", "名称")]

    with pytest.raises(DefinitionError, match="'agent_name' has the unknown type 'text'"):
        ToolRegistry().register(Taking())


@pytest.mark.requirement("base.result.success", "base.result.data", "base.result.error", "base.result.metadata")
def test_a_result_is_empty_but_for_what_was_given() -> None:
    result = ToolResult(success=True)

    assert (result.success, result.data, result.error, dict(result.metadata)) == (True, None, None, {})
    assert ToolResult(success=False).error == "the tool failed without saying why"


@pytest.mark.requirement("base.result.metadata")
def test_metadata_of_one_result_does_not_show_in_others() -> None:
    one, other = ToolResult(success=True), ToolResult(success=True)
    cast("dict[str, Any]", one.metadata)["tries"] = 2

    assert (dict(other.metadata), dict(ToolResult(success=True).metadata)) == ({}, {})


@pytest.mark.requirement("base.result.to-dict")
def test_a_result_becomes_a_dict() -> None:
    result = ToolResult(success=False, data=[1], error="no route to host", metadata={"tries": 2})

    assert result.to_dict() == {
        "success": False,
        "data": [1],
        "error": "no route to host",
        "metadata": {"tries": 2},
    }


@pytest.mark.requirement("base.tool.abstract")
@pytest.mark.parametrize("method", ["get_parameters", "execute"])
def test_a_base_tool_needs_its_two_methods(method: str) -> None:
    whole = {"get_parameters": CallSubagentTool.get_parameters, "execute": CallSubagentTool.execute}
    assert type("Whole", (BaseTool,), whole)("whole", "has both").name == "whole"

    half = type("Half", (BaseTool,), {name: given for name, given in whole.items() if name != method})

    with pytest.raises(TypeError, match=method):
        half("half", "lacks one")


@pytest.mark.requirement("base.tool.name", "base.tool.description", "base.tool.config")
def test_the_constructor_keeps_what_it_is_given() -> None:
    tool = WebFetchTool(timeout=5, retries=2)

    assert (tool.name, tool.description) == ("web_fetch", "抓取网页")
    assert tool.config == {"timeout": 5, "retries": 2}


@pytest.mark.requirement("base.tool.call", "base.tool.execute", "base.example.web-search")
async def test_a_tool_is_called_with_keywords() -> None:
    result = await WebSearchTool()(query="python", max_results=3)

    assert (result.success, result.data) == (True, PAGES[:3])


@pytest.mark.requirement("base.example.default")
async def test_an_optional_parameter_that_is_left_out_has_its_default() -> None:
    result = await WebSearchTool()(query="python")

    assert result.data == PAGES[:10]


@pytest.mark.requirement("base.example.failure")
async def test_a_tool_reports_its_own_failure() -> None:
    result = await WebSearchTool()(query="offline")

    assert (result.success, result.data, result.error) == (False, None, "no route to host")


@pytest.mark.requirement("base.tool.validate-missing", "base.tool.validate-unknown")
@pytest.mark.parametrize(
    ("params", "path"),
    [
        pytest.param({}, "query", id="missing"),
        pytest.param({"query": "x", "max_result": 3}, "max_result", id="unknown"),
    ],
)
async def test_missing_and_unknown_parameters_are_refused(params: dict[str, Any], path: str) -> None:
    result = await WebSearchTool()(**params)

    assert result.failure is not None
    assert (result.success, result.failure.kind, result.failure.path) == (False, "invalid_arguments", path)


@pytest.mark.requirement("base.tool.validate-override")
async def test_a_tool_may_refuse_parameters_itself() -> None:
    tool = WebFetchTool()

    result = await tool(url="file:///etc/passwd")

    assert result.success is False
    assert "url must begin with https://" in (result.error or "")
    assert tool.fetched == []


@pytest.mark.requirement("base.tool.validate-override")
@pytest.mark.parametrize("url", ["file:///etc/passwd", 3])
async def test_a_tools_own_check_comes_after_the_schema_and_before_permission(url: Any) -> None:
    toolkit = AgentToolkit("crawl_agent")
    toolkit.add_tool(WebFetchTool(ToolPermission.CONFIRM))

    result = await toolkit.execute_tool("web_fetch", {"url": url})

    assert result.failure is not None
    assert result.failure.kind == "invalid_arguments"


@pytest.mark.requirement(
    "base.tool.get-parameters", "base.parameter.name", "base.parameter.description", "base.parameter.required"
)
def test_the_parameters_of_a_tool_are_its_schema() -> None:
    registry = ToolRegistry()
    registry.register_tool_to_library(WebSearchTool())

    spec = registry.to_toolspecs()["web_search"]

    assert (spec.name, spec.description) == ("web_search", "搜索互联网获取信息")
    assert spec.params == {
        "query": {"type": "string", "description": "搜索查询词"},
        "max_results": {"type": "integer", "description": "最大结果数量", "default": 10},
    }
    assert spec.input_schema["required"] == ["query"]


@pytest.mark.requirement("base.registry.tool-library", "base.registry.agent-toolkits", "base.registry.register")
def test_a_registry_is_a_library_of_tools() -> None:
    registry = ToolRegistry()
    assert (dict(registry.tool_library), dict(registry.agent_toolkits)) == ({}, {})

    tool = WebSearchTool()
    registry.register_tool_to_library(tool)

    assert list(registry.tool_library) == ["web_search"]
    assert registry.tool_library["web_search"] is tool
    assert registry.get_tool("web_search") is tool


@pytest.mark.requirement("base.registry.create-toolkit", "base.registry.get-toolkit", "base.registry.get-toolkit-none")
def test_an_agent_gets_the_tools_it_is_given() -> None:
    registry = ToolRegistry()
    search, fetch = WebSearchTool(), WebFetchTool()
    registry.register_tool_to_library(search)
    registry.register_tool_to_library(fetch)

    toolkit = registry.create_agent_toolkit("crawl_agent", tool_names=["web_fetch"])

    assert type(toolkit) is AgentToolkit
    assert toolkit.list_tools() == [fetch]
    assert registry.get_agent_toolkit("crawl_agent") is toolkit
    assert registry.get_agent_toolkit("lead_agent") is None


@pytest.mark.requirement("base.registry.tool-names-default")
def test_a_toolkit_without_names_is_empty() -> None:
    registry = ToolRegistry()
    registry.register_tool_to_library(WebSearchTool())

    assert registry.create_agent_toolkit("lead_agent").list_tools() == []


@pytest.mark.requirement("base.registry.unknown-names")
def test_names_that_the_library_lacks_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    registry = ToolRegistry()
    tool = WebSearchTool()
    registry.register_tool_to_library(tool)

    toolkit = registry.create_agent_toolkit("search_agent", ["web_search", "web_serch"])

    assert toolkit.list_tools() == [tool]
    assert [(record.levelname, record.args[:2]) for record in caplog.records if isinstance(record.args, tuple)] == [
        ("WARNING", ("search_agent", "web_serch"))
    ]
    assert "'web_search'" in caplog.text


@pytest.mark.requirement(
    "base.toolkit.agent-name",
    "base.toolkit.tools",
    "base.toolkit.add-tool",
    "base.toolkit.add-tools",
    "base.toolkit.get-tool",
    "base.toolkit.list-tools",
)
def test_a_toolkit_holds_the_tools_that_are_added() -> None:
    search, fetch, subagent = WebSearchTool(), WebFetchTool(), CallSubagentTool()
    toolkit = AgentToolkit("lead_agent")
    assert (toolkit.agent_name, dict(toolkit.tools)) == ("lead_agent", {})

    toolkit.add_tool(search)
    toolkit.add_tools([fetch, subagent])

    assert toolkit.list_tools() == [search, fetch, subagent]
    assert toolkit.get_tool("web_fetch") is fetch
    assert toolkit.get_tool("nothing") is None


@pytest.mark.requirement("base.toolkit.execute-tool", "base.permission.auto-runs")
async def test_a_toolkit_executes_its_tools() -> None:
    toolkit = AgentToolkit("search_agent")
    toolkit.add_tool(WebSearchTool())

    result = await toolkit.execute_tool("web_search", {"query": "python", "max_results": 1})

    assert (result.success, result.data) == (True, PAGES[:1])


@pytest.mark.requirement("base.toolkit.execute-unknown")
async def test_a_toolkit_fails_for_a_tool_it_lacks() -> None:
    toolkit = AgentToolkit("search_agent")

    result = await toolkit.execute_tool("web_fetch", {"url": "https://a.b"})

    assert result.failure is not None
    assert (result.success, result.failure.kind) == (False, "unknown_tool")
    assert result.error == "Tool 'web_fetch' not available in search_agent's toolkit"


@pytest.mark.requirement("base.toolkit.execute-permission", "base.permission.confirm-unasked")
async def test_a_tool_that_needs_a_person_does_not_run_while_there_is_none() -> None:
    tool = WebFetchTool(ToolPermission.CONFIRM)
    toolkit = AgentToolkit("crawl_agent")
    toolkit.add_tool(tool)

    result = await toolkit.execute_tool("web_fetch", {"url": "https://a.b"})

    assert result.failure is not None
    assert (result.success, result.failure.kind) == (False, "approval_required")
    assert tool.fetched == []


@pytest.mark.requirement("base.init.example", "base.registry.library", "base.system.interaction")
async def test_start_up_gives_each_agent_the_tools_it_requires() -> None:
    class Config:
        def __init__(self, name: str, required_tools: list[str]) -> None:
            self.name = name
            self.required_tools = required_tools

    class Agent:
        toolkit: AgentToolkit

        def __init__(self, name: str, required_tools: list[str]) -> None:
            self.config = Config(name, required_tools)

    lead, search, crawl = (
        Agent("lead_agent", ["call_subagent"]),
        Agent("search_agent", ["web_search"]),
        Agent("crawl_agent", ["web_fetch", "web_search"]),
    )
    registry = ToolRegistry()
    tools = [
        CallSubagentTool(),
        WebSearchTool(),
        WebFetchTool(),
    ]
    for tool in tools:
        registry.register_tool_to_library(tool)
    for agent in [lead, search, crawl]:
        if agent.config.required_tools:
            toolkit = registry.create_agent_toolkit(
                agent.config.name,
                tool_names=agent.config.required_tools,
            )
            agent.toolkit = toolkit

    assert [[tool.name for tool in agent.toolkit.list_tools()] for agent in (lead, search, crawl)] == [
        ["call_subagent"],
        ["web_search"],
        ["web_fetch", "web_search"],
    ]
    assert (await crawl.toolkit.execute_tool("web_fetch", {"url": "https://a.b"})).data == "page at https://a.b"


@pytest.mark.requirement("xml.call.name", "xml.call.params", "xml.call.raw-text")
def test_a_call_has_a_name_parameters_and_the_text_it_was_read_from() -> None:
    call = ToolCall(name="web_search", params={"query": "x"})

    assert (call.name, call.params, call.raw_text) == ("web_search", {"query": "x"}, "")
    assert ToolCall("web_search", {}, raw_text="<tool_call/>").raw_text == "<tool_call/>"
