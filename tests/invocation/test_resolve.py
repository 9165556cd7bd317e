"""A name resolves to a tool, or to a message that helps to find the right one."""

from __future__ import annotations

import pytest

from tests.catalogue.names import TOOLS
from tests.invocation.world import World


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


def test_an_unknown_name_is_answered_as_data_too(world: World) -> None:
    for name in ("search", "fetch"):
        world.add(nothing, name=name)
    failure = world.call("serch").failure
    assert failure is not None
    assert failure.data == {"nearest": "search", "tools": ["search", "fetch"]}
