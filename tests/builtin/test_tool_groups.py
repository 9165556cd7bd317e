"""`activate_tool_groups`: the model switches groups itself, as far as it may."""

from __future__ import annotations

import pytest

from toolwire import Caller, Session, Toolkit, ToolResult


def search(query: str) -> str:
    """Searches."""
    return query


def route(start: str) -> str:
    """Finds a way."""
    return f"from {start}"


def send(to: str) -> str:
    """Sends."""
    return f"to {to}"


def toolkit(**options: object) -> Toolkit:
    found = Toolkit("ann", **options)  # pyright: ignore[reportArgumentType]  # passed on as they are
    found.create_tool_group("maps", "Maps and routes", notes="Kilometres only.")
    found.create_tool_group("mail", "Letters")
    found.register_tool_function(search)
    found.register_tool_function(route, "maps")
    found.register_tool_function(send, "mail")
    return found


def told(found: Toolkit) -> list[str]:
    return [schema["function"]["name"] for schema in found.get_json_schemas()]


async def switch(found: Toolkit, *groups: str, deactivate: tuple[str, ...] = ()) -> ToolResult:
    return await found.execute_tool("activate_tool_groups", {"groups": list(groups), "deactivate": list(deactivate)})


async def test_without_the_owners_leave_there_is_no_such_tool() -> None:
    found = toolkit()
    assert told(found) == ["search"]
    result = await switch(found, "maps")
    assert result.failure is not None
    assert result.failure.kind == "unknown_tool"
    assert told(found) == ["search"]


async def test_the_answer_to_a_call_of_an_inactive_tool_says_how_to_activate_it_and_that_works() -> None:
    found = toolkit()
    found.allow_group_switching()
    refused = await found.execute_tool("route", {"start": "Rome"})
    assert refused.failure is not None
    assert (refused.failure.kind, refused.failure.data) == ("inactive_tool", {"group": "maps"})
    assert refused.text == (
        "'route' belongs to the tool group 'maps', which is not active.\n"
        "Call 'activate_tool_groups' with groups=['maps'] first, then repeat this call."
    )

    answer = await switch(found, "maps")
    assert answer.text == "Active groups: maps.\nYou can now call: route.\nKilometres only."
    assert told(found) == ["search", "route", "activate_tool_groups"]
    assert (await found.execute_tool("route", {"start": "Rome"})).data == "from Rome"


async def test_groups_are_put_away_again() -> None:
    found = toolkit()
    found.allow_group_switching()
    await switch(found, "maps")
    assert (await switch(found, "mail", deactivate=("maps",))).text == "Active groups: mail.\nYou can now call: send."
    assert told(found) == ["search", "send", "activate_tool_groups"]
    assert (await switch(found, deactivate=("mail",))).text == "Active groups: none."


async def test_only_the_groups_that_the_owner_names_can_be_switched() -> None:
    found = toolkit()
    found.allow_group_switching(["maps"])
    result = await switch(found, "maps", "mail")
    assert result.text == ("There is no group 'mail' that you may switch; nothing was changed.\nThe groups are: maps.")
    assert told(found) == ["search", "activate_tool_groups"]
    inactive = await found.execute_tool("send", {"to": "bob"})
    assert inactive.text == ("'send' belongs to the tool group 'mail', which is not active.\nDo without it.")


@pytest.mark.parametrize(
    ("groups", "deactivate", "message"),
    [
        (["mpas"], [], "There is no group 'mpas' that you may switch; nothing was changed."),
        (["basic"], [], "There is no group 'basic' that you may switch; nothing was changed."),
        ([], ["basic"], "There is no group 'basic' that you may switch; nothing was changed."),
        (["maps"], ["maps"], "The group 'maps' is to be activated and deactivated at once; nothing was changed."),
    ],
)
async def test_a_wrong_switch_changes_nothing(groups: list[str], deactivate: list[str], message: str) -> None:
    found = toolkit()
    found.allow_group_switching()
    result = await switch(found, *groups, deactivate=tuple(deactivate))
    assert result.failure is not None
    assert (result.failure.kind, result.error) == ("invalid_arguments", message)
    assert [group.active for group in found.groups.values()] == [True, False, False]


def test_the_tool_lists_the_groups_as_they_are_when_it_is_read() -> None:
    found = toolkit()
    found.allow_group_switching()
    found.update_tool_groups(["mail"], active=True)
    found.create_tool_group("later", "Made later")
    assert found.tools["activate_tool_groups"].json_schema["function"]["description"] == (
        "Make more tools available, or put some away. Tools belong to groups; only those of active groups can be "
        "called, from the next turn on.\n"
        "The groups are:\n- maps (not active): Maps and routes\n- mail (active): Letters\n- later (not active): "
        "Made later"
    )


async def test_a_group_of_hidden_tools_is_neither_listed_nor_switched() -> None:
    def no_route(name: str, caller: Caller) -> bool:
        return name != "route"

    hidden, open_ = toolkit(visible=no_route), toolkit()
    for found, is_there in ((hidden, False), (open_, True)):
        found.allow_group_switching()
        assert ("maps" in found.tools["activate_tool_groups"].json_schema["function"]["description"]) is is_there
        assert (await switch(found, "maps")).success is is_there


async def test_a_sessions_model_switches_and_is_told_of_the_tools_from_the_next_turn_on() -> None:
    found = toolkit()
    found.allow_group_switching()
    session = Session(found, protocol="openai")
    assert [tool.name for tool in session.tools] == ["search", "activate_tool_groups"]
    call = {"name": "activate_tool_groups", "arguments": '{"groups": ["maps"]}'}
    await session.turn(
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
    )
    assert [tool.name for tool in session.tools] == ["search", "route", "activate_tool_groups"]
