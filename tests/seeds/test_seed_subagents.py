"""Sub-agents as two seeds have them: `call_subagent` in a team, and a tool that is registered with its schema."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from tests.agent.worlds import calls
from toolwire import (
    Agent,
    AgentTeam,
    BaseTool,
    CallSubagentTool,
    ConfigurationError,
    RegistrationError,
    Rule,
    Store,
    Toolkit,
    ToolParameter,
    ToolPermission,
    ToolRegistry,
    ToolResult,
    make_subagent_tool,
)
from toolwire.testing import ScriptedModel


class WebSearchTool(BaseTool):
    def __init__(self) -> None:
        super().__init__("web_search", "搜索互联网获取信息")
        self.queries: list[str] = []

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter("query", "string", "搜索查询词")]

    async def execute(self, query: str) -> ToolResult:
        self.queries.append(query)
        return ToolResult(success=True, data=f"pages on {query}")


class WebFetchTool(WebSearchTool):
    def __init__(self) -> None:
        super().__init__()
        self.name = "web_fetch"


class Search(BaseModel):
    """Searches the web."""

    query: str

    @field_validator("query")
    @classmethod
    def check_query(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("the query is empty")
        return value


def team(lead_replies: list[Any]) -> tuple[Agent[Any], ScriptedModel, WebSearchTool]:
    """The lead of the seed's team, the model of its agent `search`, and that agent's tool."""
    search_model = ScriptedModel([calls("web_search", query="python"), "Found 3 pages."], protocol="xml")
    lead = Agent("lead", ScriptedModel(lead_replies, protocol="xml"), required_tools=["call_subagent"])
    search = Agent("search", search_model, required_tools=["web_search"])
    crawl = Agent("crawl", ScriptedModel(["Read."], protocol="xml"), required_tools=["web_fetch", "web_search"])
    AgentTeam([lead, search, crawl])
    registry = ToolRegistry()
    web_search = WebSearchTool()
    tools = [
        CallSubagentTool(),
        web_search,
        WebFetchTool(),
    ]
    for tool in tools:
        registry.register_tool_to_library(tool)
    for agent in [lead, search, crawl]:
        if agent.config.required_tools:
            toolkit = registry.create_agent_toolkit(agent.config.name, tool_names=agent.config.required_tools)
            agent.toolkit = toolkit
    return lead, search_model, web_search


def delegation(name: str = "search", **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    return calls("call_subagent", **({"agent_name": name, "instruction": "Find pages."} | arguments))


@pytest.mark.requirement("base.builtin.call-subagent", "base.init.example")
async def test_the_seeds_start_up_makes_agents_that_call_each_other() -> None:
    lead, search_model, web_search = team([delegation(), "There are 3 pages."])
    result = await lead.run("What is there on python?")
    assert (result.stop, result.text, web_search.queries) == ("answered", "There are 3 pages.", ["python"])
    assert search_model.requests[0].messages == [{"role": "user", "content": "Find pages."}]
    assert "Found 3 pages." in str(result.messages[2])


@pytest.mark.requirement("base.builtin.call-subagent")
def test_a_call_of_a_sub_agent_is_auto() -> None:
    assert CallSubagentTool().permission is ToolPermission.AUTO


@pytest.mark.requirement("base.builtin.call-subagent-validates")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"agent_name": "serch"}, "There is no agent 'serch' in the team."),
        ({"instruction": None}, "instruction"),
        ({"more": "x"}, "more"),
    ],
    ids=["no-such-agent", "wrong", "unknown"],
)
async def test_a_wrong_call_of_a_sub_agent_runs_nobody(arguments: dict[str, Any], words: str) -> None:
    lead, search_model, _ = team([delegation(**arguments), "Sorry."])
    result = await lead.run("What is there on python?")
    assert (result.text, search_model.requests) == ("Sorry.", [])
    assert words in str(result.messages[2])


async def test_a_call_of_a_sub_agent_without_a_team_says_so() -> None:
    result = await CallSubagentTool()(agent_name="search", instruction="Find.")
    assert (result.success, "There is no team here" in str(result.error)) == (False, True)


def searcher(*replies: Any, **options: Any) -> tuple[Agent[Any], WebSearchTool]:
    tool = WebSearchTool()
    model = ScriptedModel([*(replies or [calls("web_search", query="python"), "Found."])])
    return Agent("search", model, [tool], **options), tool


@pytest.mark.requirement("toolkit.register.subagent-schema")
@pytest.mark.parametrize("is_awaited", [False, True])
async def test_a_sub_agent_is_registered_with_its_schema(is_awaited: bool) -> None:
    agent, web_search = searcher()
    made = make_subagent_tool(agent, input_model=Search, tool_name="search_web")
    function, register_kwargs = (await made) if is_awaited else made
    assert list(register_kwargs) == ["json_schema"]
    toolkit = Toolkit()
    toolkit.register_tool_function(function, **register_kwargs)
    (schema,) = toolkit.get_json_schemas()
    assert schema["function"]["name"] == "search_web"
    assert schema["function"]["description"] == "Searches the web."
    assert schema["function"]["parameters"]["properties"] == {"query": {"type": "string"}}
    lead = Agent("lead", ScriptedModel([calls("search_web", query="python"), "Done."]), toolkit)
    result = await lead.run("Search.")
    assert (result.text, web_search.queries) == ("Done.", ["python"])


@pytest.mark.requirement("toolkit.register.subagent-schema")
@pytest.mark.parametrize("kind", [Toolkit, ToolRegistry])
def test_a_sub_agent_is_not_registered_without_its_schema(kind: type[Any]) -> None:
    function, _ = make_subagent_tool(searcher()[0], input_model=Search)
    holder = kind()
    register = holder.register_tool_function if kind is Toolkit else holder.register
    with pytest.raises(RegistrationError, match=r"without its schema: .*\*\*register_kwargs"):
        register(function)


@pytest.mark.requirement("toolkit.register.subagent-schema")
def test_the_function_of_a_sub_agent_has_no_parameters_of_the_task() -> None:
    function, _ = make_subagent_tool(searcher()[0], input_model=Search)
    assert "query" not in inspect.signature(function).parameters


async def test_a_registered_sub_agent_is_one_in_every_way(tmp_path: Any) -> None:
    agent, web_search = searcher()
    toolkit = Toolkit()
    function, register_kwargs = make_subagent_tool(agent, input_model=Search)
    toolkit.register_tool_function(function, **register_kwargs)
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        rules = [Rule(effect="confirm", tool="web_search")]
        model = ScriptedModel([calls("search", query=" "), calls("search", query="python"), "Done."])
        lead = Agent("lead", model, toolkit, policy=rules, store=store)
        result = await lead.run("Search.", conversation="c")
        assert [(one.tool, one.caller.agent) for one in result.pending] == [("web_search", "search")]
        assert "the query is empty" in str(model.requests[1].messages[-1])
        decisions = [{"request_id": one.id, "verdict": "approve"} for one in result.pending]
        result = await lead.run(conversation="c", decisions=decisions)
    assert (result.text, web_search.queries) == ("Done.", ["python"])


async def test_a_model_is_told_who_is_in_its_team_and_cannot_call_itself() -> None:
    model = ScriptedModel([calls("call_subagent", agent_name="lead", instruction="x"), "Done."])
    lead = Agent("lead", model, [CallSubagentTool()])
    AgentTeam([lead, Agent("search", None), Agent("crawl", None)])
    result = await lead.run("Go.")
    assert model.requests[0].system == "The agents of your team: search, crawl."
    assert "There is no agent 'lead' in the team." in result.messages[2]["content"]


def test_a_team_that_is_refused_takes_no_agent() -> None:
    first, second = Agent("first", None), Agent("second", None)
    AgentTeam([first])
    with pytest.raises(ConfigurationError, match="make one AgentTeam of all its members"):
        AgentTeam([second, first])
    AgentTeam([second])
    with pytest.raises(ConfigurationError, match="give a list of agents"):
        AgentTeam([5])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
