"""Bound parameters: hidden from the model, filled from live state."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.definition.from_function import from_function
from toolwire.definition.shape import ArgumentProblem, Invalid, Validated
from toolwire.definition.tool import Tool, canonical
from toolwire.vocabulary.errors import BindingError


def act(user_id: str, action: str) -> str:
    """Acts for a user."""
    return f"User {user_id} performed: {action}"


def keyed(api_key: str, query: str) -> str:
    return f"{api_key}/{query}"


def many(first: int, *rest: int, **more: int) -> int:
    return first + sum(rest) + sum(more.values())


def run(tool: Tool, **arguments: Any) -> Any:
    validated = tool.validate(arguments)
    assert isinstance(validated, Validated), validated
    return tool.invoke(validated)


def refused(tool: Tool, **arguments: Any) -> tuple[ArgumentProblem, ...]:
    found = tool.validate(arguments)
    assert isinstance(found, Invalid)
    return found.problems


@pytest.mark.requirement("spec.docs.bound-form")
def test_a_bound_parameter_leaves_the_schema_and_takes_its_default() -> None:
    tool = from_function(act)
    tool.bindings.bind("user_id", default="user123")
    assert tool.input_schema == {
        "type": "object",
        "properties": {"action": {"type": "string"}},
        "required": ["action"],
        "additionalProperties": False,
    }
    assert [parameter.name for parameter in tool.visible_parameters] == ["action"]
    assert [(parameter.name, parameter.schema) for parameter in tool.parameters] == [
        ("user_id", {}),
        ("action", {"type": "string"}),
    ]
    assert run(tool, action="login") == "User user123 performed: login"


def test_state_set_after_the_first_call_is_used_by_the_next() -> None:
    tool = from_function(act)
    tool.bindings.bind("user_id", default="a")
    assert run(tool, action="x") == "User a performed: x"
    tool.bindings.state["user_id"] = "b"
    assert run(tool, action="x") == "User b performed: x"
    tool.bindings.state = {"user_id": "c"}
    assert run(tool, action="x") == "User c performed: x"
    del tool.bindings.state["user_id"]
    assert run(tool, action="x") == "User a performed: x"


def test_a_dotted_key_descends_into_nested_mappings() -> None:
    tool = from_function(keyed)
    tool.bindings.bind("api_key", "config.api.key", default="default_key")
    assert run(tool, query="q") == "default_key/q"
    tool.bindings.state = {"config": {"api": {"key": "mine"}}}
    assert run(tool, query="q") == "mine/q"
    tool.bindings.state["config"]["api"]["key"] = "other"
    assert run(tool, query="q") == "other/q"
    tool.bindings.state["config"] = "no mapping"
    assert run(tool, query="q") == "default_key/q"


@pytest.mark.requirement("spec.bind.any-object")
def test_any_object_is_handed_on_as_it_is_and_never_converted() -> None:
    def take(db: object, q: str) -> Any:
        return db

    tool = from_function(take)
    connection = object()
    tool.bindings.bind("db")
    tool.bindings.state["db"] = connection
    assert run(tool, q="x") is connection
    tool.bindings.bind("db", default=None)
    tool.bindings.state.clear()
    assert run(tool, q="x") is None


@pytest.mark.requirement("spec.bind.no-value")
def test_an_absent_key_without_default_fails_and_names_the_key() -> None:
    tool = from_function(keyed)
    tool.bindings.bind("api_key", "config.key")
    assert refused(tool, query="q") == (
        ArgumentProblem(
            path="api_key",
            kind="no_state",
            message="'api_key' is set by the host, but its state has no 'config.key'.",
        ),
    )


def test_all_problems_of_arguments_and_state_are_reported_together() -> None:
    tool = from_function(keyed)
    tool.bindings.bind("api_key")
    assert [(problem.path, problem.kind) for problem in refused(tool, query=3, api_key="stolen")] == [
        ("query", "invalid"),
        ("api_key", "hidden"),
        ("api_key", "no_state"),
    ]


@pytest.mark.requirement("spec.bind.not-overridable")
def test_a_model_cannot_give_a_bound_parameter() -> None:
    tool = from_function(act)
    tool.bindings.bind("user_id", default="me")
    assert refused(tool, action="x", user_id="you") == (
        ArgumentProblem(
            path="user_id",
            kind="hidden",
            message="'user_id' is set by the host and not yours to give: remove it.",
        ),
    )


def test_a_model_cannot_give_a_bound_parameter_through_more() -> None:
    def act_more(user_id: str, **more: str) -> str:
        return user_id

    tool = from_function(act_more)
    tool.bindings.bind("user_id", default="me")
    assert refused(tool, more={"user_id": "you", "x": "fine"}) == (
        ArgumentProblem(
            path="more.user_id",
            kind="hidden",
            message="'more.user_id' is set by the host and not yours to give: remove it.",
        ),
    )


def test_bound_values_are_not_in_the_canonical_form() -> None:
    tool = from_function(act)
    tool.bindings.bind("user_id", default="user")
    validated = tool.validate({"action": "x"})
    assert isinstance(validated, Validated)
    assert canonical(validated) == {"action": "x"}


def test_binding_again_replaces_and_unbinding_shows_again() -> None:
    tool = from_function(act)
    tool.bindings.bind("user_id", default="a")
    tool.bindings.bind("user_id", "session.user", default="b")
    assert tool.bindings.binds == {"user_id": "session.user"}
    assert run(tool, action="x") == "User b performed: x"
    tool.bindings.unbind("user_id")
    assert tool.bindings.binds == {}
    assert [problem.path for problem in refused(tool, action="x")] == ["user_id"]
    assert run(tool, action="x", user_id="c") == "User c performed: x"


def test_a_parameter_whose_type_no_model_can_give_may_be_bound() -> None:
    class Database:
        pass

    def query(db: Database, sql: str) -> str:
        return f"{type(db).__name__}: {sql}"

    tool = from_function(query)
    tool.bindings.bind("db")
    tool.bindings.state["db"] = Database()
    tool.verify()
    assert run(tool, sql="select") == "Database: select"


@pytest.mark.requirement("spec.clone.bindings")
def test_a_clone_shares_no_container() -> None:
    tool = from_function(keyed)
    connection = object()
    tool.bindings.bind("api_key", "config.key", default="d")
    tool.bindings.state = {"config": {"key": "a", "list": [1]}, "db": connection}
    clone = tool.clone()
    clone.bindings.state["config"]["key"] = "b"
    clone.bindings.state["config"]["list"].append(2)
    clone.bindings.unbind("api_key")
    assert tool.bindings.state == {"config": {"key": "a", "list": [1]}, "db": connection}
    assert clone.bindings.state["db"] is connection
    assert tool.bindings.binds == {"api_key": "config.key"}
    assert run(tool, query="q") == "a/q"
    assert run(clone, query="q", api_key="mine") == "mine/q"


def test_a_clone_keeps_what_is_shared_or_circular_within_the_state() -> None:
    tool = from_function(act)
    shared: dict[str, Any] = {}
    shared["self"] = shared
    tool.bindings.state = {"one": shared, "two": shared}
    copied = tool.clone().bindings.state
    assert copied["one"] is copied["two"]
    assert copied["one"]["self"] is copied["one"]
    assert copied["one"] is not shared


def test_a_schema_given_out_is_the_takers_own() -> None:
    tool = from_function(act)
    tool.input_schema["properties"].clear()
    tool.parameters[0].schema["type"] = "integer"
    assert tool.input_schema["properties"] == {"user_id": {"type": "string"}, "action": {"type": "string"}}


@pytest.mark.requirement("spec.bind.unknown-parameter")
@pytest.mark.parametrize(
    ("param", "state_key", "message"),
    [
        ("user", None, "tool 'act' has no parameter 'user': did you mean 'user_id'?"),
        ("zzz", None, "tool 'act' has no parameter 'zzz': it takes 'user_id', 'action'"),
        ("user_id", "a..b", "tool 'act': the state key 'a..b' has an empty part: write it as 'config.api.key'"),
        ("user_id", "", "tool 'act': the state key '' has an empty part: write it as 'config.api.key'"),
    ],
)
def test_a_binding_that_cannot_work_fails_at_once(param: str, state_key: str | None, message: str) -> None:
    with pytest.raises(BindingError) as failed:
        from_function(act).bindings.bind(param, state_key)
    assert str(failed.value) == message


@pytest.mark.parametrize("name", ["rest", "more"])
def test_var_arguments_cannot_be_bound(name: str) -> None:
    with pytest.raises(BindingError) as failed:
        from_function(many).bindings.bind(name)
    assert str(failed.value) == f"tool 'many': {name!r} takes any number of values and cannot be bound"


def test_unbinding_what_is_not_bound_is_an_error() -> None:
    tool = from_function(act)
    tool.bindings.bind("action", default="x")
    with pytest.raises(BindingError) as failed:
        tool.bindings.unbind("user_id")
    assert str(failed.value) == "tool 'act': 'user_id' is not bound; bound parameters: action"


def test_state_must_be_a_dict() -> None:
    with pytest.raises(BindingError) as failed:
        from_function(act).bindings.state = None  # pyright: ignore[reportAttributeAccessIssue]
    assert str(failed.value) == "tool 'act': state must be a dict, not NoneType"
