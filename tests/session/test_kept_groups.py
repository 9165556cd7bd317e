"""Active groups belong to the stored conversation. The next process has them on, and the model reads their notes."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from toolwire import Caller, Session, Toolkit
from toolwire.session.runs.resume import RunStore
from toolwire.testing import MemoryStore
from toolwire.vocabulary.calls import Reply, ToolCall
from toolwire.vocabulary.errors import StoreUnavailable

NOTES = "About the tools of 'maps':\nKilometres only."


def search(query: str) -> str:
    """Searches."""
    return query


def route(start: str) -> str:
    """Finds a way."""
    return f"from {start}"


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def toolkit(*groups: str, **options: Any) -> Toolkit:
    """Returns a toolkit as each process makes it: its groups are off."""
    found = Toolkit("ann", **options)
    found.register_tool_function(search)
    for name in groups or ("maps", "money"):
        found.create_tool_group(name, f"About {name}", notes="Kilometres only." if name == "maps" else None)
    if "maps" in found.groups:
        found.register_tool_function(route, "maps")
    if "money" in found.groups:
        found.register_tool_function(pay, "money")
    found.allow_group_switching()
    return found


def session(tools: Toolkit, store: RunStore | None, **options: Any) -> Session:
    given: dict[str, Any] = {"conversation": "trip"} | options
    return Session(tools, protocol="json", store=store, **given)


def call(name: str, **arguments: Any) -> Reply:
    return Reply(calls=(ToolCall(name, arguments),))


def active(tools: Toolkit) -> list[str]:
    return [group.name for group in tools.groups.values() if group.active and group.name != "basic"]


async def switched(store: RunStore, *groups: str, deactivate: list[str] | None = None, **options: Any) -> None:
    """Plays an earlier process in which the model switched groups."""
    tools = toolkit()
    turn = await session(tools, store, **options).turn(
        call("activate_tool_groups", groups=list(groups), deactivate=deactivate or [])
    )
    assert turn.results[0].success


async def test_the_next_process_has_the_groups_on_again(store: RunStore) -> None:
    await switched(store, "maps")
    tools = toolkit()
    later = session(tools, store)
    assert active(tools) == ["maps"]
    assert NOTES in later.system_prompt
    assert (await later.turn(call("route", start="Rome"))).results[0].data == "from Rome"


async def test_a_group_that_was_switched_off_stays_off(store: RunStore) -> None:
    await switched(store, "maps", "money")
    await switched(store, "money", deactivate=["maps"])
    tools = toolkit()
    session(tools, store)
    assert active(tools) == ["money"]


async def test_groups_of_another_conversation_or_principal_stay_off(store: RunStore) -> None:
    await switched(store, "maps", caller=Caller(principal="ann"))
    for options in ({"conversation": "other"}, {"conversation": None}, {"caller": Caller(principal="eve")}):
        tools = toolkit()
        session(tools, store, **({"caller": Caller(principal="ann")} | options))
        assert active(tools) == []


async def test_a_group_that_does_not_exist_is_left_out_and_told(
    store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    await switched(store, "maps", "money")
    tools = toolkit("money")
    with caplog.at_level(logging.WARNING, "toolwire.toolkit"):
        later = session(tools, store)
    assert active(tools) == ["money"]
    assert caplog.messages == ["conversation 'trip' had the group 'maps' on, which is not here: it is left out"]
    # It is on in the process after that, which has it.
    await later.turn(call("search", query="a"))
    tools = toolkit()
    session(tools, store)
    assert active(tools) == ["maps", "money"]


async def test_a_group_that_comes_later_is_switched_on_then(store: RunStore) -> None:
    await switched(store, "maps")
    tools = toolkit("money")
    later = session(tools, store)
    tools.create_tool_group("maps", "About maps")
    tools.register_tool_function(route, "maps")
    assert (await later.turn(call("route", start="Rome"))).results[0].data == "from Rome"


async def test_a_group_whose_tools_the_caller_does_not_see_stays_off(store: RunStore) -> None:
    await switched(store, "maps")
    tools = toolkit()
    session(tools, store, visible=lambda name, caller: name != "route")
    assert active(tools) == []


async def test_a_group_that_this_process_has_switched_stays_as_it_is(store: RunStore) -> None:
    await switched(store, "maps", "money")
    tools = toolkit()
    tools.update_tool_groups(["maps"], active=False)
    later = session(tools, store)
    assert active(tools) == ["money"]
    await later.turn(call("activate_tool_groups", groups=[], deactivate=["money"]))
    session(tools, store)
    assert active(tools) == []


async def test_groups_that_the_host_switched_belong_to_the_conversation_too(store: RunStore) -> None:
    tools = toolkit()
    first = session(tools, store)
    tools.update_tool_groups(["maps"], active=True)
    await first.turn(call("search", query="a"))
    later = toolkit()
    session(later, store)
    assert active(later) == ["maps"]


async def test_a_turn_that_waits_keeps_the_groups_and_goes_on_with_them(store: RunStore) -> None:
    first = session(toolkit(), store, permissions={"pay": "confirm"})
    await first.turn(call("activate_tool_groups", groups=["money"], deactivate=[]))
    waiting = await first.turn(call("pay", amount=5))
    assert waiting.suspended is not None
    tools = toolkit()
    # A worker resumes runs of any conversation.
    worker = session(tools, store, permissions={"pay": "confirm"}, conversation=None)
    assert active(tools) == []
    (request,) = waiting.suspended.pending
    turn = await worker.resume(waiting.suspended.run_id, [{"request_id": request.id, "verdict": "approve"}])
    assert (turn.results[0].data, active(tools)) == ("paid 5", ["money"])


class Unread(MemoryStore):
    """A store that cannot read the groups at first."""

    faults = 1

    def active_groups(self, conversation: str, *, caller: Caller) -> frozenset[str]:
        self.faults -= 1
        if self.faults >= 0:
            raise StoreUnavailable("gone")
        return super().active_groups(conversation, caller=caller)


async def test_a_run_whose_groups_cannot_be_read_stays_free() -> None:
    store = Unread()
    first = session(toolkit(), store, permissions={"search": "confirm"}, conversation=None)
    waiting = await first.turn(call("search", query="a"))
    assert waiting.suspended is not None
    decisions = [{"request_id": waiting.suspended.pending[0].id, "verdict": "approve"}]
    worker = session(toolkit(), store, permissions={"search": "confirm"}, conversation=None)
    with pytest.raises(StoreUnavailable):
        await worker.resume(waiting.suspended.run_id, decisions)
    assert (await worker.resume(waiting.suspended.run_id)).results[0].data == "a"


async def test_a_session_of_tools_without_groups_needs_none(store: RunStore) -> None:
    later = Session([search], protocol="json", store=store, conversation="trip")
    assert (await later.turn(call("search", query="a"))).results[0].data == "a"


# -- notes ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("toolkit.group.notes")
@pytest.mark.parametrize("protocol", ["attp", "xml", "json"])
def test_the_notes_of_active_groups_stand_in_the_prompt_of_a_text_protocol(protocol: str) -> None:
    tools = Toolkit("ann")
    tools.create_tool_group("maps", "Maps", notes="Kilometres \udce9 only.")
    tools.register_tool_function(route, "maps")
    tools.register_tool_function(search)
    prompted = Session(tools, protocol=protocol)
    before = prompted.system_prompt
    assert "Kilometres" not in before
    tools.update_tool_groups(["maps"], active=True)
    assert prompted.system_prompt.endswith("\n\nAbout the tools of 'maps':\nKilometres \ufffd only.\n")
    tools.update_tool_groups(["maps"], active=False)
    assert prompted.system_prompt == before


def test_the_notes_of_a_hidden_group_stand_nowhere() -> None:
    tools = toolkit(visible=lambda name, _: name != "route")
    tools.update_tool_groups(["maps"], active=True)
    assert "Kilometres" not in Session(tools, protocol="xml").system_prompt


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini", "xml", "json", "attp"])
def test_the_group_tool_has_the_notes_of_active_groups(protocol: str) -> None:
    tools = toolkit()
    told = Session(tools, protocol=protocol)
    assert "Kilometres" not in str(told.instructions)
    tools.update_tool_groups(["maps"], active=True)
    assert "Kilometres only." in str(told.instructions)
    (switch,) = [tool for tool in told.tools if tool.name == "activate_tool_groups"]
    assert switch.description.endswith(f"\n\n{NOTES}")
