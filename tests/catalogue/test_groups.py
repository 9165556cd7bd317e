"""Groups: created, switched and removed by name; `basic` stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from toolwire.catalogue.groups import BASIC, Groups, ToolGroup
from toolwire.vocabulary.errors import RegistrationError


def three() -> Groups:
    groups = Groups()
    groups.create(ToolGroup("maps", "Maps and routes"))
    groups.create(ToolGroup("mail", "Letters", active=True, notes="Be polite."))
    return groups


def active(groups: Groups) -> list[str]:
    return [group.name for group in groups if group.active]


def test_basic_is_there_and_active_from_the_start() -> None:
    assert list(Groups()) == [ToolGroup(BASIC, "Tools that are always there.", active=True, notes=None)]


def test_a_group_is_not_active_unless_it_says_so() -> None:
    assert active(three()) == ["basic", "mail"]


def test_switching_changes_the_groups_named_and_no_other() -> None:
    groups = three()
    groups.switch(["maps"], active=True)
    groups.switch(["mail"], active=False)
    assert active(groups) == ["basic", "maps"]


def test_switching_keeps_what_else_a_group_says() -> None:
    groups = three()
    groups.switch(["mail"], active=False)
    assert groups.find("mail") == ToolGroup("mail", "Letters", active=False, notes="Be polite.")


def test_basic_among_those_to_be_activated_changes_nothing() -> None:
    groups = three()
    groups.switch(["basic", "maps"], active=True)
    assert active(groups) == ["basic", "maps", "mail"]


def test_a_single_name_is_one_name() -> None:
    groups = three()
    groups.switch("maps", active=True)
    assert groups.is_active("maps")


def test_removed_groups_are_gone() -> None:
    groups = three()
    groups.remove(["maps", "mail"])
    assert [group.name for group in groups] == ["basic"]
    assert not groups.is_active("mail")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        pytest.param(
            lambda groups: groups.create(ToolGroup("basic", "Mine")),
            "the tool group 'basic' is always there: give yours another name",
            id="create basic",
        ),
        pytest.param(
            lambda groups: groups.create(ToolGroup("maps", "Mine")),
            "a tool group named 'maps' exists already: give this one another name",
            id="create twice",
        ),
        pytest.param(
            lambda groups: groups.create(ToolGroup("", "Mine")),
            "a tool group cannot be named '': give it a name",
            id="no name",
        ),
        pytest.param(
            lambda groups: groups.switch(["maps", "basic"], active=False),
            "the tool group 'basic' is always active: leave it out",
            id="switch basic off",
        ),
        pytest.param(
            lambda groups: groups.switch(["mail", "mpas"], active=False),
            "no tool group is named 'mpas'; did you mean 'maps'?",
            id="switch a near name",
        ),
        pytest.param(
            lambda groups: groups.switch(["weather"], active=True),
            "no tool group is named 'weather'; the groups are basic, maps, mail",
            id="switch an unknown name",
        ),
        pytest.param(
            lambda groups: groups.remove(["maps", "basic"]),
            "the tool group 'basic' cannot be removed: leave it out",
            id="remove basic",
        ),
        pytest.param(
            lambda groups: groups.remove(["maps", "post"]),
            "no tool group is named 'post'; the groups are basic, maps, mail",
            id="remove an unknown name",
        ),
        pytest.param(
            lambda groups: groups.let_switch(["basic"]),
            "the tool group 'basic' is always active: leave it out",
            id="let basic be switched",
        ),
    ],
)
def test_an_impossible_change_is_a_value_error_and_changes_nothing(
    wrong: Callable[[Groups], None], message: str
) -> None:
    groups = three()
    before = list(groups)
    with pytest.raises(RegistrationError, match=f"^{re.escape(message)}$") as caught:
        wrong(groups)
    assert isinstance(caught.value, ValueError)
    assert list(groups) == before


def test_a_model_may_switch_no_group_until_it_is_let() -> None:
    groups = three()
    assert [groups.is_switchable(name) for name in ("basic", "maps", "mail")] == [False, False, False]
    groups.let_switch(["maps"])
    assert [groups.is_switchable(name) for name in ("basic", "maps", "mail")] == [False, True, False]
    groups.let_switch(None)
    assert [groups.is_switchable(name) for name in ("basic", "maps", "mail", "post")] == [False, True, True, False]
