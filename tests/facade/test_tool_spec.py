"""`ToolSpec`: an owner's view of one tool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import pytest

from toolwire import BindingError, CallFailed, DefinitionError, ToolRegistry, ToolSpec, tool


def search_database(query: str, limit: int = 10) -> list[str]:
    """Searches the records.

    Args:
        query: What to look for
        limit: How many at most
    """
    return [query] * limit


class Page(TypedDict):
    results: list[str]


@dataclass
class Point:
    x: int
    y: int


def pages(word: str) -> Page:
    """Finds pages."""
    return {"results": [word]}


def origin() -> Point:
    """The origin."""
    return Point(0, 0)


async def later(n: int) -> int:
    """Gives n back, later."""
    await asyncio.sleep(0)
    return n


def broken(n: int) -> int:
    """Fails."""
    raise KeyError(n)


def test_call_gives_the_plain_value_of_a_function() -> None:
    assert ToolSpec.from_function(search_database).call(query="x", limit=2) == ["x", "x"]


def test_call_gives_the_one_property_of_an_object() -> None:
    assert ToolSpec.from_function(pages)(word="a") == ["a"]


def test_call_gives_the_structured_content_of_an_object_with_several_properties() -> None:
    assert ToolSpec.from_function(origin)() == {"x": 0, "y": 0}


def test_exec_gives_the_whole_result() -> None:
    result = ToolSpec.from_function(pages).exec(word="a")
    assert (result.success, result.data, result.structured_content) == (True, {"results": ["a"]}, {"results": ["a"]})


def test_exec_of_a_plain_value_puts_it_under_result() -> None:
    assert ToolSpec.from_function(search_database).exec(query="x", limit=1).structured_content == {"result": ["x"]}


def test_call_raises_the_tools_own_exception() -> None:
    with pytest.raises(KeyError, match="7"):
        ToolSpec.from_function(broken)(n=7)


def test_exec_never_raises() -> None:
    result = ToolSpec.from_function(broken).exec(n=7)
    assert (result.success, result.error) == (False, "KeyError: 7")


def test_call_with_wrong_arguments_raises_call_failed_with_the_result() -> None:
    with pytest.raises(CallFailed) as failed:
        ToolSpec.from_function(search_database)(quary="x")
    assert failed.value.result.failure is not None
    assert failed.value.result.failure.kind == "invalid_arguments"


@pytest.mark.requirement("spec.from-mcp.no-function")
def test_a_spec_without_a_callable_says_so_when_called() -> None:
    spec = ToolSpec.from_jsonschema(name="far", description="Far away", input_schema={"type": "object"})
    with pytest.raises(CallFailed, match="'far' cannot be run: it is known by its schema alone"):
        spec()


async def test_a_sync_call_of_an_async_tool_works_inside_a_running_loop() -> None:
    assert ToolSpec.from_function(later)(n=3) == 3


async def test_acall_and_aexec_await() -> None:
    spec = ToolSpec.from_function(later)
    assert await spec.acall(n=3) == 3
    assert (await spec.aexec(n=4)).data == 4
    assert await ToolSpec.from_function(search_database).acall(query="x", limit=1) == ["x"]


def test_run_takes_the_arguments_in_one_mapping() -> None:
    assert ToolSpec.from_function(search_database).run({"query": "x", "limit": 1}).data == ["x"]


def test_bind_hides_a_parameter_and_reads_it_live() -> None:
    spec = ToolSpec.from_function(search_database)
    assert spec.bind("limit", default=1) is spec
    assert spec(query="x") == ["x"]
    spec.state["limit"] = 2
    assert spec(query="x") == ["x", "x"]
    assert list(spec.params) == ["query"]
    assert spec.binds == {"limit": "limit"}
    assert spec.unbind("limit")(query="x", limit=3) == ["x", "x", "x"]


def test_state_may_be_replaced_and_keys_may_be_nested() -> None:
    spec = ToolSpec.from_function(search_database).bind("query", state_key="config.api.key")
    spec.state = {"config": {"api": {"key": "secret"}}}
    assert spec(limit=1) == ["secret"]


def test_a_bound_parameter_without_a_value_names_its_key() -> None:
    spec = ToolSpec.from_function(search_database).bind("query", state_key="config.key")
    result = spec.exec()
    assert result.failure is not None
    assert result.failure.kind == "unavailable"
    assert "'config.key'" in str(result.error)


def test_binding_an_unknown_parameter_fails_at_once() -> None:
    with pytest.raises(BindingError, match="limit"):
        ToolSpec.from_function(search_database).bind("limits")


@pytest.mark.requirement("spec.clone.bindings")
def test_a_clone_shares_nothing() -> None:
    first = ToolSpec.from_function(search_database).bind("limit", default=1)
    first.state["limit"] = 2
    second = first.clone()
    second.state["limit"] = 3
    second.bind("query", default="y")
    assert first(query="x") == ["x", "x"]
    assert second() == ["y", "y", "y"]


def test_signature_is_a_call_as_text() -> None:
    spec = ToolSpec.from_function(search_database)
    assert spec.signature(query="example", limit=10) == "search_database(query='example', limit=10)"


def test_jsonschema_is_flat_and_takes_fields() -> None:
    schema = ToolSpec.from_function(search_database).to_jsonschema(custom_field="value", strict=False)
    assert {key: schema[key] for key in ("type", "name", "description", "strict", "custom_field")} == {
        "type": "function",
        "name": "search_database",
        "description": "Searches the records.",
        "strict": False,
        "custom_field": "value",
    }


def test_the_decorator_takes_options_or_none() -> None:
    @tool
    def one() -> int:
        """One."""
        return 1

    @tool(name="zwei", permission="confirm")
    def two() -> int:
        """Two."""
        return 2

    assert (one.name, one(), two.name, two.permission) == ("one", 1, "zwei", "confirm")


def test_an_unknown_option_is_a_type_error_that_lists_the_known() -> None:
    with pytest.raises(TypeError, match="parse_docstring") as raised:
        ToolSpec.from_function(origin, descriptoin="x")
    assert isinstance(raised.value, DefinitionError)


def test_code_of_the_owner_becomes_a_tool() -> None:
    spec = ToolSpec.from_code("def twice(n: int) -> int:\n    '''Doubles.'''\n    return 2 * n\n")
    assert (spec.name, spec(n=4)) == ("twice", 8)


class Greeter:
    def greet(self, name: str) -> str:
        """Greets."""
        return f"hello {name}"

    def __call__(self, name: str) -> str:
        """Greets."""
        return self.greet(name)


def greet(name: str, word: str = "hello") -> str:
    """Greets."""
    return f"{word} {name}"


GREETINGS = {
    "function": lambda: ToolSpec.from_function(greet),
    "method": lambda: ToolSpec.from_function(Greeter().greet),
    "partial": lambda: ToolSpec.from_function(partial(greet, word="hello"), name="greet"),
    "callable object": lambda: ToolSpec.from_function(Greeter(), name="greet"),
    "code": lambda: ToolSpec.from_code("def greet(name: str) -> str:\n    '''Greets.'''\n    return 'hello ' + name\n"),
    "schema": lambda: ToolSpec.from_jsonschema(
        name="greet",
        description="Greets.",
        input_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        function=greet,
    ),
    "mcp value": lambda: ToolSpec.from_mcp(
        {
            "name": "greet",
            "description": "Greets.",
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
        function=greet,
    ),
}


@pytest.mark.requirement("spec.why.flexible", "spec.core.creators", "spec.advanced.every-origin")
@pytest.mark.parametrize("make", GREETINGS.values(), ids=GREETINGS)
def test_a_tool_of_every_origin_is_called_cloned_and_described(make: Callable[[], ToolSpec]) -> None:
    spec = make()
    copy = spec.clone().bind("name", default="you")
    spec._clear_cache()
    assert (spec.name, spec.description, spec(name="there"), copy()) == ("greet", "Greets.", "hello there", "hello you")
    assert "name" in spec.binded.input_schema["properties"]
    assert "name" not in copy.binded.input_schema["properties"]


@pytest.mark.requirement(
    "spec.tool.one-object",
    "spec.tool.format-independent",
    "spec.tool.interoperates",
    "spec.why.single-source",
    "spec.core.exports",
)
def test_every_export_says_the_same_and_changes_nothing() -> None:
    spec = ToolSpec.from_function(search_database)
    registry = ToolRegistry()
    registry.register(spec)
    flat, mcp = spec.to_jsonschema(), spec.to_mcp()
    assert (flat["name"], flat["description"]) == (mcp.name, mcp.description) == (spec.name, spec.description)
    assert flat["parameters"] == mcp.input_schema == spec.input_schema
    flat["parameters"].clear()
    assert list(spec.input_schema["properties"]) == ["query", "limit"]
    for text in (spec.to_prompt(), spec.code):
        said = (spec.name, spec.description, "query", "What to look for", "limit", "How many at most")
        assert [word for word in said if word not in text] == []
    assert spec.to_jsonschema()["parameters"] == spec.input_schema
    assert registry.invoke("search_database", {"query": "x", "limit": 1}).data == ["x"]


@pytest.mark.requirement("spec.tool.documents-itself")
def test_the_texts_of_every_export_come_from_the_docstring() -> None:
    spec = ToolSpec.from_function(search_database)
    flat, mcp = spec.to_jsonschema(), spec.to_mcp()
    for description, schema in ((flat["description"], flat["parameters"]), (mcp.description, mcp.input_schema)):
        assert description == "Searches the records."
        assert {name: node["description"] for name, node in schema["properties"].items()} == {
            "query": "What to look for",
            "limit": "How many at most",
        }
    for text in (spec.docstring, spec.code, spec.to_prompt()):
        assert [said for said in ("Searches the records.", "What to look for", "How many") if said not in text] == []


@pytest.mark.requirement("spec.export.bound-form", "spec.docs.bound-form")
def test_a_bound_parameter_is_in_no_export() -> None:
    spec = ToolSpec.from_function(search_database).bind("limit", default=1)
    texts = [
        spec.docstring,
        spec.code,
        spec.to_prompt(),
        str(spec.to_jsonschema()),
        str(spec.to_mcp()),
        str(spec.params),
    ]
    assert [text for text in texts if "limit" in text] == []


@pytest.mark.requirement("spec.tool.runs-both-kinds")
async def test_sync_and_async_functions_are_run_by_sync_and_async_methods() -> None:
    plain, awaited = ToolSpec.from_function(search_database), ToolSpec.from_function(later)
    assert (plain.call(query="x", limit=1), await plain.acall(query="x", limit=1)) == (["x"], ["x"])
    assert (awaited.call(n=1), await awaited.acall(n=1)) == (1, 1)
    assert [plain.exec(query="x", limit=1).data, (await plain.aexec(query="x", limit=1)).data] == [["x"], ["x"]]
    assert [awaited.exec(n=2).data, (await awaited.aexec(n=2)).data] == [2, 2]
