"""A name resolves to a tool, or to a message that helps to find the right one."""

from __future__ import annotations

import pytest

from tests.catalogue.names import TOOLS
from tests.invocation.world import World
from toolwire import Session, Toolkit
from toolwire.definition.from_function import from_function
from toolwire.invocation.resolve import LISTED_NAMES


def nothing() -> None:
    """Does nothing."""


@pytest.mark.parametrize(
    ("names", "called", "text"),
    [
        (TOOLS, "serch_web", "There is no tool named 'serch_web'.\nDid you mean 'search_web'?"),
        (("a", "b"), "weather", "There is no tool named 'weather'.\nThe tools are: a, b."),
        ((), "weather", "There is no tool named 'weather'.\nThere are no tools here: answer without one."),
        (TOOLS[:20], "zzz", f"There is no tool named 'zzz'.\nThe tools are: {', '.join(TOOLS[:20])}."),
        (TOOLS, "zzz", f"There is no tool named 'zzz'.\nThe tools are: {', '.join(TOOLS[:20])} and 20 more."),
        (("a",), "x" * 10_000, f"There is no tool named {'x' * 128!r}....\nThe tools are: a."),
        (("a",), "it's\n", 'There is no tool named "it\'s\\n".\nThe tools are: a.'),
        (
            ("a",),
            "code_execution",
            ("Programs cannot be run here.\nCall the tools one by one."),
        ),
    ],
    ids=["misspelt", "unrelated", "no tools", "twenty tools", "more tools", "long", "quoted", "program"],
)
def test_an_unknown_name_is_answered_with_the_right_one(
    world: World, names: tuple[str, ...], called: str, text: str
) -> None:
    for name in names:
        world.add(nothing, name=name)
    assert world.call(called).text == text
    assert world.recording.story == [("r_1", "", "unknown_tool")]


@pytest.mark.parametrize(
    ("names", "called", "hint"),
    [
        (("mail.send", "mail.read", "web.get"), "mail", "Call one of its tools: mail.send, mail.read."),
        (("mail_send", "mail/read", "mailer"), "mail", "Call one of its tools: mail_send, mail/read."),
        (("mail.send", "web.get"), "mail", "Did you mean 'mail.send'?"),
        (("mailer", "web.get"), "ma", "The tools are: mailer, web.get."),
        (
            tuple(f"mail.t{number}" for number in range(LISTED_NAMES + 1)),
            "mail",
            f"Call one of its tools: {', '.join(f'mail.t{number}' for number in range(LISTED_NAMES))} and 1 more.",
        ),
    ],
    ids=["dots", "other separators", "one tool", "no beginning", "many tools"],
)
def test_the_name_of_a_server_is_answered_with_its_tools(
    world: World, names: tuple[str, ...], called: str, hint: str
) -> None:
    for name in names:
        world.add(nothing, name=name)
    assert world.call(called).text == f"There is no tool named {called!r}.\n{hint}"


def test_the_name_of_a_group_is_answered_with_the_active_tools_in_it() -> None:
    toolkit = Toolkit()
    for group, names in {"files": ("read_it", "drop_it"), "web": ("load_it",)}.items():
        toolkit.create_tool_group(group, description="Tools.", active=True)
        for name in names:
            toolkit.register_tool_function(from_function(nothing, name=name), group_name=group)
    turn = Session(toolkit, protocol="json").run_turn('{"name": "files", "arguments": {}}')
    assert turn.results[0].text == "There is no tool named 'files'.\nCall one of its tools: read_it, drop_it."


def test_an_unknown_name_is_answered_as_data_too(world: World) -> None:
    for name in ("search", "fetch"):
        world.add(nothing, name=name)
    failure = world.call("serch").failure
    assert failure is not None
    assert failure.data == {"nearest": "search", "tools": ["search", "fetch"]}
