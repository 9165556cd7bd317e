"""The part of a catalogue that one caller sees."""

from __future__ import annotations

import logging

import pytest

from toolwire.catalogue.catalogue import Catalogue, Overlay
from toolwire.catalogue.entry import Entry
from toolwire.catalogue.groups import Groups, ToolGroup
from toolwire.catalogue.selection import Selection, Visible
from toolwire.definition.from_function import from_function
from toolwire.vocabulary.calls import Caller

ANN, BOB = Caller(agent="ann"), Caller(agent="bob")


def entry(name: str, group: str = "basic") -> Entry:
    def function() -> None: ...

    tool = from_function(function, name=name)
    return Entry(name=name, tool=tool, handle=tool, group=group)


def catalogue() -> Catalogue:
    found = Catalogue()
    for each in (entry("search"), entry("route", "maps"), entry("send_mail", "mail"), entry("read_mail", "mail")):
        found.add(each)
    return found


def groups() -> Groups:
    found = Groups()
    found.create(ToolGroup("maps", "Maps"))
    found.create(ToolGroup("mail", "Mail", active=True))
    return found


def names(selection: Selection | Catalogue) -> list[str]:
    return [each.name for each in selection]


def not_for_bob(name: str, caller: Caller) -> bool:
    return not (caller == BOB and name == "send_mail")


def test_tools_of_active_groups_are_seen() -> None:
    selection = Selection(catalogue(), ANN, groups=groups())
    assert names(selection) == ["search", "send_mail", "read_mail"]
    assert [selection.find(name) is None for name in ("search", "route", "nothing")] == [False, True, True]
    assert ["search" in selection, "route" in selection] == [True, False]


def test_switching_and_registering_count_at_once() -> None:
    tools, switched = catalogue(), groups()
    selection = Selection(tools, ANN, groups=switched)
    switched.switch(["maps"], active=True)
    tools.add(entry("distance", "maps"))
    assert names(selection) == ["search", "route", "send_mail", "read_mail", "distance"]


def test_a_tool_of_an_inactive_group_knows_its_group() -> None:
    selection = Selection(catalogue(), ANN, groups=groups())
    group = selection.inactive_group("route")
    assert group == ToolGroup("maps", "Maps")
    assert [selection.inactive_group(name) for name in ("search", "send_mail", "nothing")] == [None, None, None]


def test_a_hidden_tool_is_as_if_it_were_unknown_and_seen_by_others() -> None:
    tools, switched = catalogue(), groups()
    for caller, expected in ((ANN, "send_mail"), (BOB, None)):
        selection = Selection(tools, caller, groups=switched, visible=[not_for_bob])
        found = selection.find("send_mail")
        assert (found and found.name) == expected
        assert ("send_mail" in names(selection)) is (caller == ANN)
        assert selection.nearest("send_mial") == expected
        assert [each.name for each in selection.in_groups(["mail"])] == [*([expected] if expected else []), "read_mail"]


def test_a_hidden_tool_of_an_inactive_group_is_not_said_to_be_inactive() -> None:
    switched = groups()
    switched.switch(["mail"], active=False)
    selections = [Selection(catalogue(), caller, groups=switched, visible=[not_for_bob]) for caller in (ANN, BOB)]
    assert [each.inactive_group("send_mail") is None for each in selections] == [False, True]


def test_a_group_whose_tools_are_all_hidden_is_hidden_with_them() -> None:
    def no_maps(name: str, caller: Caller) -> bool:
        return name != "route"

    switched = groups()
    switched.create(ToolGroup("empty", "Nothing yet"))
    assert [each.name for each in Selection(catalogue(), ANN, groups=switched).groups()] == [
        "basic",
        "maps",
        "mail",
        "empty",
    ]
    hiding = Selection(catalogue(), ANN, groups=switched, visible=[no_maps])
    assert [each.name for each in hiding.groups()] == ["basic", "mail", "empty"]


def test_every_predicate_has_to_agree() -> None:
    def no_search(name: str, caller: Caller) -> bool:
        return name != "search"

    selection = Selection(catalogue(), BOB, visible=[no_search, not_for_bob])
    assert names(selection) == ["route", "read_mail"]


def test_a_predicate_that_raises_hides_the_tool_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(name: str, caller: Caller) -> bool:
        return {"search": True}[name]

    with caplog.at_level(logging.ERROR, logger="toolwire.visibility"):
        assert names(Selection(catalogue(), ANN, visible=[broken])) == ["search"]
    assert "the visibility check of 'route' failed; the tool is hidden" in caplog.messages


@pytest.mark.parametrize("visible", [[], [not_for_bob]])
def test_without_groups_all_tools_are_active(visible: list[Visible]) -> None:
    selection = Selection(catalogue(), ANN, visible=visible)
    assert names(selection) == ["search", "route", "send_mail", "read_mail"]
    assert selection.inactive_group("route") is None


def test_an_overlay_shows_what_is_below_live_and_its_own_in_its_place() -> None:
    below, own = catalogue(), entry("route")
    overlay = Overlay(below)
    overlay.add(own)
    overlay.add(entry("extra"))
    below.add(entry("later"))
    assert names(overlay) == ["search", "route", "send_mail", "read_mail", "later", "extra"]
    assert overlay.find("route") is own
    assert overlay.find("later") is below.find("later")
    assert (len(overlay), "later" in overlay, "nothing" in overlay) == (6, True, False)
    assert overlay.nearest("laterr") == "later"


def test_an_overlay_never_changes_what_is_below() -> None:
    below = catalogue()
    before = list(below)
    Overlay(below).add(entry("route"), replace=True)
    assert list(below) == before


def test_an_overlay_needs_a_loop_when_either_does() -> None:
    async def later() -> None: ...

    asynchronous = Catalogue()
    tool = from_function(later)
    asynchronous.add(Entry(name="later", tool=tool, handle=tool))
    above = Overlay(catalogue())
    assert (Overlay(asynchronous).has_deferred_tools, above.has_deferred_tools) == (True, False)
    above.add(Entry(name="later", tool=tool, handle=tool))
    assert above.has_deferred_tools
