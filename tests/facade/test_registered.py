"""`RegisteredToolFunction`: the description of each tool in a toolkit's `tools`, and a call through one of them."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolwire import BaseTool, Rule, Toolkit, ToolParameter, ToolRegistry, ToolResult, ToolSpec
from toolwire.seeds import RegisteredToolFunction, ToolPermission


def search(query: str, connection: object, limit: int = 3, tags: list[str] | None = None) -> list[str]:
    """Searches the index.

    Args:
        query: Words to look for
        limit: How many at most
    """
    return [f"{query} {number} in {connection}" for number in range(limit)]


class Point(BaseModel):
    x: int


class WebSearch(BaseTool):
    def __init__(self) -> None:
        super().__init__("web_search", "Searches the web.", ToolPermission.CONFIRM)

    def get_parameters(self) -> list[ToolParameter]:
        return [
            ToolParameter("count", "integer", "How many", required=False, default=10),
            ToolParameter("query", "string", "Words"),
        ]

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True, data=params)


def registered(tool: Any, **options: Any) -> RegisteredToolFunction:
    toolkit = Toolkit("agent")
    toolkit.register_tool_function(tool, **options)
    (found,) = toolkit.tools.values()
    return found


def test_it_says_what_models_are_told_of_the_tool() -> None:
    assert registered(search, preset_kwargs={"connection": 1}).description == "Searches the index."
    told = registered(search, preset_kwargs={"connection": 1}, func_description="Finds books.")
    assert told.description == "Finds books."
    assert registered(WebSearch()).description == "Searches the web."


def test_its_parameters_are_those_that_a_model_can_give() -> None:
    assert registered(search, preset_kwargs={"connection": 1}).get_parameters() == [
        ToolParameter("query", "string", "Words to look for"),
        ToolParameter("limit", "integer", "How many at most", required=False, default=3),
        ToolParameter("tags", "array", "", required=False, default=None),
    ]


def test_the_parameters_of_a_base_tool_are_those_it_lists() -> None:
    assert registered(WebSearch()).get_parameters() == WebSearch().get_parameters()


def types(
    word: Literal["a", "b"],
    either: int | str,
    number: float,
    is_set: bool,
    point: Point,
    anything: Any,
    maybe: Point | None = None,
) -> None: ...


def test_the_type_of_a_parameter_is_one_word_and_alternatives_stand_beside_each_other() -> None:
    assert [(one.name, one.type) for one in registered(types).get_parameters()] == [
        ("word", "string"),
        ("either", "integer or string"),
        ("number", "number"),
        ("is_set", "boolean"),
        ("point", "object"),
        ("anything", "any"),
        ("maybe", "object"),
    ]


def test_the_types_of_a_schema_are_told_in_the_same_words() -> None:
    schema = {
        "type": "object",
        "properties": {
            "listed": {"type": ["array", "null"]},
            "chosen": {"enum": [1, 2.5, None, True, "x"]},
            "only": {"const": {"a": 1}},
            "nothing": {"type": "null"},
            "whole": {"allOf": [{"type": "string"}, {"minLength": 1}]},
            "always": True,
        },
    }
    spec = ToolSpec.from_jsonschema(name="f", input_schema=schema, function=lambda **_values: None)
    assert [(one.name, one.type) for one in registered(spec).get_parameters()] == [
        ("listed", "array"),
        ("chosen", "integer or number or boolean or string"),
        ("only", "object"),
        ("nothing", "null"),
        ("whole", "string"),
        ("always", "any"),
    ]


def test_its_permission_is_the_registrations_or_else_the_tools_own() -> None:
    registry = ToolRegistry()
    registry.register(search_all, permission="confirm")
    registry.register(WebSearch())
    toolkit = registry.create_agent_toolkit("agent", ["search_all", "web_search"])
    tools = {name: tool.permission for name, tool in toolkit.tools.items()}
    assert tools == {"search_all": ToolPermission.CONFIRM, "web_search": ToolPermission.CONFIRM}
    assert registered(search_all).permission is ToolPermission.AUTO


def search_all(query: str) -> str:
    """Searches all."""
    return f"all of {query}"


async def test_execute_gives_the_result_of_a_call() -> None:
    toolkit = Toolkit("agent")
    toolkit.register_tool_function(search, preset_kwargs={"connection": "books"})
    result = await toolkit.tools["search"].execute(query="dune", limit=1)
    assert (result.success, result.data) == (True, ["dune 0 in books"])
    wrong = await toolkit.tools["search"].execute(query="dune", connection="mine")
    assert wrong.failure is not None
    assert wrong.failure.kind == "invalid_arguments"


@pytest.mark.parametrize("is_denied", [True, False])
def test_execute_takes_the_whole_path_so_that_rules_and_log_count(is_denied: bool) -> None:
    registry = ToolRegistry(rules=[Rule(effect="deny", tool="search_all")] if is_denied else [])
    registry.register(search_all)
    log = registry.enable_logging()
    toolkit = registry.create_agent_toolkit("agent", ["search_all"])
    result = asyncio.run(toolkit.tools["search_all"].execute(query="dune"))
    kind = "success" if result.failure is None else result.failure.kind
    assert kind == ("denied" if is_denied else "success")
    assert [(entry.tool_name, entry.status) for entry in log.get_entries()] == [("search_all", kind)]


async def test_a_parameter_may_have_the_name_of_its_own_one() -> None:
    def named(self: str, name: str) -> str:
        return f"{self} {name}"

    toolkit = Toolkit("agent")
    toolkit.register_tool_function(named)
    assert (await toolkit.tools["named"].execute(self="a", name="b")).data == "a b"
