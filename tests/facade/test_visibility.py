"""A tool that a predicate hides from a caller is treated as unknown; the same call without the predicate finds it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import (
    CallContext,
    Caller,
    ConfigurationError,
    RegistrationError,
    Session,
    Toolkit,
    ToolRegistry,
    ToolResult,
)

SECRET = "delete_everything"


def delete_everything() -> str:
    """Deletes it all."""
    return "deleted"


def look_up(word: str) -> str:
    """Looks a word up."""
    return word


async def call_other(context: CallContext, name: str) -> str:
    """Calls another tool."""
    return (await context.call(name)).text


def not_for_guests(name: str, caller: Caller) -> bool:
    return name != SECRET or caller.agent != "guest"


def registry(**options: Any) -> ToolRegistry:
    found = ToolRegistry(**options)
    for function in (look_up, delete_everything, call_other):
        found.register(function)
    found.enable_code_execution()
    return found


def toolkit_for(agent: str) -> Toolkit:
    """A toolkit with all the tools, under a registry whose predicate knows agents."""
    return registry(visible=not_for_guests).create_agent_toolkit(
        agent, ["look_up", SECRET, "call_other", "code_execution"]
    )


def everything_in(result: ToolResult) -> str:
    failure = result.failure
    return f"{result.text} {result.to_dict()} {failure and (failure.data, failure.hint)}"


WAYS: list[tuple[str, dict[str, Any]]] = [
    (SECRET, {}),
    ("delete_everythin", {}),
    ("zzz", {}),
    ("call_other", {"name": SECRET}),
    ("call_other", {"name": "delete_everythin"}),
    ("call_other", {"name": "zzz"}),
    ("code_execution", {"code": "print(delete_everything())"}),
    ("code_execution", {"code": "print(delete_everythin())"}),
    ("code_execution", {"code": "print(sorted(globals()))"}),
]
"""Calls by which a model could learn that a tool is there."""


@pytest.mark.parametrize(("name", "arguments"), WAYS)
async def test_no_way_leads_a_guest_to_the_hidden_tool(name: str, arguments: dict[str, Any]) -> None:
    result = await toolkit_for("guest").execute_tool(name, arguments)
    assert "deleted" not in everything_in(result)
    if SECRET not in (name, *arguments.values()) and SECRET not in arguments.get("code", ""):
        assert SECRET not in everything_in(result)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (SECRET, {}, "deleted"),
        ("delete_everythin", {}, f"Did you mean {SECRET!r}?"),
        ("call_other", {"name": SECRET}, "deleted"),
        ("call_other", {"name": "zzz"}, SECRET),
        ("code_execution", {"code": "print(delete_everything())"}, "deleted"),
        ("code_execution", {"code": "print(delete_everythin())"}, SECRET),
    ],
)
async def test_the_same_ways_lead_others_there(name: str, arguments: dict[str, Any], expected: str) -> None:
    assert expected in (await toolkit_for("owner").execute_tool(name, arguments)).text


@pytest.mark.parametrize(("agent", "is_found"), [("guest", False), ("owner", True)])
async def test_a_search_finds_it_only_for_those_who_may_see_it(agent: str, is_found: bool) -> None:
    library = registry(visible=not_for_guests)
    library.configure(tool_search=True)
    toolkit = library.create_agent_toolkit(agent, ["look_up", SECRET, "search_tools"])
    session = Session(toolkit, protocol="openai")
    call = {"name": "search_tools", "arguments": '{"query": "delete everything"}'}
    reply = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": call}]}
    assert (SECRET in (await toolkit.execute_tool("search_tools", {"query": "delete everything"})).text) is is_found
    assert (SECRET in (await session.turn(reply)).text) is is_found
    assert (SECRET in json.dumps(session.instructions)) is is_found


async def test_a_hidden_tool_and_one_that_was_never_there_get_the_same_answer() -> None:
    guest = toolkit_for("guest")
    hidden, unknown = [await guest.execute_tool("call_other", {"name": name}) for name in (SECRET, "x" * len(SECRET))]
    assert hidden.text.replace(SECRET, "x" * len(SECRET)) == unknown.text


@pytest.mark.parametrize(("agent", "is_told"), [("guest", False), ("owner", True)])
@pytest.mark.parametrize("protocol", ["attp", "xml", "json", "openai", "anthropic", "gemini"])
def test_a_session_tells_only_those_of_it_who_may_see_it(agent: str, is_told: bool, protocol: str) -> None:
    session = Session(toolkit_for(agent), protocol=protocol)
    assert (SECRET in json.dumps(session.instructions)) is is_told
    assert ("look_up" in json.dumps(session.instructions)) is True


@pytest.mark.parametrize(("agent", "is_told"), [("guest", False), ("owner", True)])
def test_the_schemas_of_a_toolkit_tell_only_those_who_may_see_it(agent: str, is_told: bool) -> None:
    # The description of code_execution lists the tools that a program may call.
    assert (SECRET in json.dumps(toolkit_for(agent).get_json_schemas())) is is_told


async def test_a_session_has_a_predicate_and_a_caller_of_its_own() -> None:
    seen: set[Caller] = set()

    def no_deleting(name: str, caller: Caller) -> bool:
        seen.add(caller)
        return name != SECRET

    caller = Caller(principal="ann", agent="helper", tenant="acme")
    session = Session(registry(), visible=no_deleting, caller=caller)
    assert SECRET not in str(session.instructions)
    turn = await session.turn(
        'thought = "x"\n\n[tool_call]\nstatus = "success"\ntarget = "x"\ncode = "print(delete_everything())"\n'
    )
    assert "deleted" not in turn.text
    assert seen == {caller}


def test_a_session_sees_less_than_its_toolkit_and_never_more() -> None:
    def all_of_it(name: str, caller: Caller) -> bool:
        return True

    session = Session(toolkit_for("guest"), protocol="openai", visible=all_of_it)
    assert SECRET not in [tool.name for tool in session.tools]


def test_the_predicate_is_asked_anew_each_time() -> None:
    open_: set[str] = set()

    def opened(name: str, caller: Caller) -> bool:
        return name in open_

    toolkit = Toolkit("ann", visible=opened)
    toolkit.register_tool_function(look_up)
    assert toolkit.get_json_schemas() == []
    open_.add("look_up")
    assert [schema["function"]["name"] for schema in toolkit.get_json_schemas()] == ["look_up"]


@pytest.mark.parametrize("agent", ["guest", "owner"])
def test_a_registrys_own_calls_are_nobodys(agent: str) -> None:
    found = registry(visible=lambda name, caller: name != SECRET or caller.agent == agent)
    result = found.invoke(SECRET)
    assert result.failure is not None
    assert result.failure.kind == "unknown_tool"
    assert found.run_program("print(delete_everything())").status == "failed"
    assert registry().invoke(SECRET).data == "deleted"
    assert registry().run_program("print(delete_everything())").stdout == "deleted\n"


def test_owners_see_what_is_registered() -> None:
    toolkit = toolkit_for("guest")
    assert toolkit.get_tool(SECRET) is delete_everything
    assert SECRET in toolkit.tools
    with pytest.raises(RegistrationError):
        toolkit.register_tool_function(delete_everything)


async def wait_for_it(name: str, caller: Caller) -> bool:
    return True


@pytest.mark.parametrize(
    ("visible", "message"),
    [
        (wait_for_it, "visible=wait_for_it is a coroutine function: it must answer at once, write `def`"),
        (["look_up"], "visible=['look_up']: give a function (tool_name, caller) -> bool"),
    ],
)
def test_a_value_that_is_not_a_predicate_is_an_error_everywhere(visible: Any, message: str) -> None:
    for make in (
        lambda: Toolkit("ann", visible=visible),
        lambda: ToolRegistry(visible=visible),
        lambda: Session([look_up], visible=visible),
    ):
        with pytest.raises(ConfigurationError) as caught:
            make()
        assert str(caught.value) == message
