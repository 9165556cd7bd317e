"""Values given once and for all: hidden, not the model's to give, and handed over as they are."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from toolwire.definition.chat_form import from_tool_function
from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Invalid, Tool, Validated
from toolwire.vocabulary.errors import BindingError


class Connection:
    """A value that no model can give and that cannot be copied."""

    def __deepcopy__(self, memo: object) -> Connection:
        raise AssertionError("copied")


def search(query: str, connection: Connection, limit: int = 3) -> tuple[str, Connection, int]:
    """Searches."""
    return query, connection, limit


def every(query: str, *rest: str, **more: Any) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """Takes everything."""
    return query, rest, more


def called(tool: Tool, **arguments: Any) -> Any:
    found = tool.validate(arguments)
    assert isinstance(found, Validated), found
    return tool.invoke(found)


def refused(tool: Tool, **arguments: Any) -> list[tuple[str, str]]:
    found = tool.validate(arguments)
    assert isinstance(found, Invalid)
    return [(problem.kind, problem.message) for problem in found.problems]


def included(*, rest: bool, more: bool) -> Tool:
    return from_tool_function(
        every,
        description=None,
        include_long_description=True,
        include_var_positional=rest,
        include_var_keyword=more,
    )


def test_a_preset_is_in_no_schema_and_reaches_the_function_as_the_very_object() -> None:
    connection = Connection()
    tool = from_function(search).with_presets({"connection": connection, "limit": 9})
    assert list(tool.input_schema["properties"]) == ["query"]
    assert called(tool, query="x") == ("x", connection, 9)
    assert tool.bindings.presets == {"connection": connection, "limit": 9}
    assert called(tool.clone(), query="x")[1] is connection


def test_a_preset_given_by_a_model_is_refused_by_name_while_the_plain_tool_takes_it() -> None:
    plain = from_function(search)
    connection = Connection()
    plain.bindings.bind("connection", default=connection)
    assert called(plain, query="x", limit=1) == ("x", connection, 1)
    assert refused(plain.with_presets({"limit": 9}), query="x", limit=1) == [
        ("hidden", "'limit' is set by the host and not yours to give: remove it.")
    ]


def test_the_tool_itself_is_left_as_it_was() -> None:
    tool = from_function(every)
    before = tool.input_schema
    tool.with_presets({"query": "x"})
    assert (tool.input_schema, tool.bindings.presets) == (before, {})


def test_bound_parameters_stay_bound_and_are_read_from_the_live_state() -> None:
    tool = from_function(search)
    tool.bindings.bind("connection")
    first, second, third = Connection(), Connection(), Connection()
    tool.bindings.state = {"connection": first}
    preset = tool.with_presets({"limit": 9})
    assert called(preset, query="x") == ("x", first, 9)
    tool.bindings.state = {"connection": second}
    assert called(preset, query="x") == ("x", second, 9)
    preset.bindings.state = {"connection": third}
    assert tool.bindings.state == {"connection": third}


def test_a_preset_wins_over_a_binding_and_over_the_state() -> None:
    tool = from_function(search)
    tool.bindings.bind("connection")
    preset = Connection()
    tool.bindings.state = {"connection": Connection(), "limit": 1}
    assert called(tool.with_presets({"connection": preset, "limit": 9}), query="x") == ("x", preset, 9)


def test_a_function_with_more_takes_a_preset_of_any_name_and_a_model_cannot_give_it() -> None:
    tool = included(rest=False, more=True).with_presets({"token": "k"})
    assert called(tool, query="x", more={"extra": 1}) == ("x", (), {"token": "k", "extra": 1})
    assert refused(tool, query="x", more={"token": "mine"}) == [
        ("hidden", "'more.token' is set by the host and not yours to give: remove it.")
    ]
    assert refused(tool, query="x", token="mine") == [
        ("hidden", "'token' is set by the host and not yours to give: remove it.")
    ]


@pytest.mark.parametrize(
    ("rest", "more", "names"),
    [
        (False, False, ["query"]),
        (True, False, ["query", "rest"]),
        (False, True, ["query", "more"]),
        (True, True, ["query", "rest", "more"]),
    ],
)
def test_variadic_parameters_are_left_out_unless_included(rest: bool, more: bool, names: list[str]) -> None:
    tool = included(rest=rest, more=more)
    assert list(tool.input_schema["properties"]) == names
    assert called(tool, query="x") == ("x", (), {})
    given: dict[str, Any] = {"rest": ["a"], "more": {"b": 1}}
    expected = ("x", ("a",) if rest else (), {"b": 1} if more else {})
    assert called(tool, query="x", **{name: given[name] for name in names[1:]}) == expected
    for name in {"rest", "more"} - set(names):
        assert [kind for kind, _ in refused(tool, query="x", **{name: given[name]})] == ["unexpected"]


def test_the_long_description_can_be_left_out() -> None:
    def told() -> None:
        """Does it.

        And says a lot
        about it.
        """

    def description(*, long: bool, given: str | None = None) -> str:
        return from_tool_function(
            told,
            description=given,
            include_long_description=long,
            include_var_positional=False,
            include_var_keyword=False,
        ).description

    assert description(long=True) == "Does it.\n\nAnd says a lot\nabout it."
    assert description(long=False) == "Does it."
    assert description(long=False, given="Mine.") == description(long=True, given="Mine.") == "Mine."


def test_presets_of_a_tool_known_by_its_schema_need_not_be_in_it() -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}
    tool = from_schema("search", "", schema, None, search, given=["connection"])
    preset = tool.with_presets({"connection": "c", "limit": 9})
    assert preset.input_schema["properties"] == {"query": {"type": "string"}}
    assert called(preset, query="x") == ("x", "c", 9)
    assert [kind for kind, _ in refused(preset, query="x", connection="mine")] == ["hidden"]


@pytest.mark.parametrize(
    ("tool", "name", "message"),
    [
        (from_function(search), "conection", "tool 'search' has no parameter 'conection': did you mean 'connection'?"),
        (
            from_function(every),
            "rest",
            "tool 'every': 'rest' takes any number of values and cannot be bound",
        ),
        (
            from_function(functools.partial(search, limit=1)),
            "limit",
            "tool 'search': 'limit' cannot be bound: functools.partial gave it already",
        ),
    ],
)
def test_a_preset_that_the_function_does_not_take_is_a_value_error(tool: Tool, name: str, message: str) -> None:
    with pytest.raises(BindingError) as caught:
        tool.with_presets({name: 1})
    assert (str(caught.value), isinstance(caught.value, ValueError)) == (message, True)
