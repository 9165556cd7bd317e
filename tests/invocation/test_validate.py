"""Raw arguments become exactly the values that will run, or a list of all their errors."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from tests.invocation.world import World
from toolwire import ToolRegistry, ToolSpec
from toolwire.definition.from_function import from_function


class Filter(BaseModel):
    field: str
    value: int

    @field_validator("field")
    @classmethod
    def known(cls, field: str) -> str:
        return {"name": "name"}[field]


def search(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
    """Searches."""
    return f"{query} {limit} {tags}"


def narrow(filters: list[Filter]) -> int:
    """Narrows."""
    return len(filters)


def ping() -> str:
    """Answers."""
    return "pong"


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (
        search,
        {"limt": 3, "limit": "many", "tags": ["a", 2]},
        (
            "The arguments of 'search' are wrong:\n"
            "- 'query' is missing: give a string.\n"
            "- 'limit' must be an integer, not 'many'.\n"
            "- 'tags[1]' must be a string, not 2.\n"
            "- 'limt' is unknown: did you mean 'limit'?\n"
            "Correct them and call 'search' again. It takes: query (required), limit (optional), tags (optional)."
        ),
    ),
    (
        ping,
        {"host": "x"},
        "The arguments of 'ping' are wrong:\n- 'host' is unknown: it takes none.\nCall 'ping' again without arguments.",
    ),
]


@pytest.mark.parametrize(("function", "arguments", "text"), WRONG, ids=["several", "none wanted"])
def test_all_that_is_wrong_is_told_at_once(world: World, function: Any, arguments: dict[str, Any], text: str) -> None:
    world.add(function)
    assert world.call(function.__name__, **arguments).text == text
    assert world.recording.story == [("r_1", "", "invalid_arguments")]


def test_problems_are_reported_as_data_too(world: World) -> None:
    world.add(narrow)
    failure = world.call("narrow", filters=[{"field": "name", "value": 1}, {"field": "name"}]).failure
    assert failure is not None
    message = "'filters[1].value' is missing: give an integer."
    assert (failure.path, failure.data) == (
        "filters[1].value",
        {"problems": [{"path": "filters[1].value", "kind": "missing", "message": message}]},
    )


def test_a_validator_that_breaks_is_an_error_of_the_tool(world: World) -> None:
    world.add(narrow)
    assert world.call("narrow", filters=[{"field": "nome", "value": 1}]).text == (
        "KeyError: 'nome'\nRead the error; change the arguments or try another tool."
    )


@pytest.mark.parametrize(
    ("complaint", "text"),
    [
        ("the query is empty", "the query is empty\nCorrect them and call 'search' again."),
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops\nRead the error; change the arguments or try another"),
    ],
)
def test_a_check_of_the_tools_own_comes_after_the_schema(world: World, complaint: Any, text: str) -> None:
    tool = from_function(search)

    def check(values: dict[str, Any]) -> str | None:
        if isinstance(complaint, Exception):
            raise complaint
        return complaint

    tool.check = check
    world.add(tool)
    assert world.call("search", query="").text[: len(text)] == text


def test_a_bound_value_that_is_missing_is_the_owners_to_mend(world: World) -> None:
    tool = from_function(search)
    tool.bindings.bind("query", "user.query")
    world.add(tool)
    assert world.call("search").text == (
        "'search' cannot run: 'query' is set by the host, but its state has no 'user.query'.\n"
        "The owner of the tool has to fix this; the arguments were not the cause."
    )
    assert world.recording.story == [("r_1", "", "unavailable")]


def test_a_tool_that_no_model_can_be_told_of_is_the_owners_to_mend(world: World) -> None:
    class Connection:
        """A type that no model can give."""

    def ask(connection: Connection) -> None:
        """Asks."""

    tool = from_function(ask)
    tool.bindings.bind("connection", default=Connection())
    world.add(tool)
    assert world.call("ask").success
    tool.bindings.unbind("connection")
    result = world.call("ask")
    assert result.failure is not None
    assert (result.failure.kind, result.error) == (
        "unavailable",
        f"'ask' cannot run: {result.failure.data['problems'][0]}",
    )
    assert result.failure.data["problems"][0].startswith("tool 'ask': parameter 'connection' is annotated Connection")


def test_a_hidden_argument_is_refused_by_name(world: World) -> None:
    tool = from_function(search)
    tool.bindings.bind("limit", default=3)
    world.add(tool)
    assert world.call("search", query="x", limit=100).error == (
        "The arguments of 'search' are wrong:\n- 'limit' is set by the host and not yours to give: remove it."
    )
    assert world.call("search", query="x").data == "x 3 None"


def test_arguments_of_too_many_levels_are_the_models_mistake() -> None:
    registry = ToolRegistry()
    registry.register(ToolSpec.from_function(take_anything))
    assert registry.invoke("take_anything", {"value": nested(100)}).success
    result = registry.invoke("take_anything", {"value": nested(5_000)})
    assert result.failure is not None
    assert result.failure.kind == "invalid_arguments"
    assert result.text == (
        "The arguments of 'take_anything' are wrong:\n"
        "- The arguments have too many levels of lists and objects: give fewer.\n"
        "Correct them and call 'take_anything' again. It takes: value (required)."
    )


def take_anything(value: Any) -> int:
    """Takes anything."""
    return 0


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value
