"""A session's instructions are described once, and again as soon as anything that they tell of has changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from tests.facade.test_base_tool import AUTO, CONFIRM, DENY, Eraser
from toolwire import Session, ToolRegistry, ToolSpec
from toolwire.protocols import get
from toolwire.protocols.base import CallingProtocol

PROTOCOLS = ["attp", "xml", "openai", "anthropic"]


def pay(amount: int, to: str = "shop") -> str:
    """Pays."""
    return f"{amount} to {to}"


def look(thing: str) -> int:
    """Looks at a thing."""
    return len(thing)


class Counted:
    """A protocol that counts how often it describes tools."""

    def __init__(self, protocol: CallingProtocol) -> None:
        self._protocol = protocol
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol, name)

    def describe(self, tools: Iterable[Any], **options: Any) -> Any:
        self.count += 1
        return self._protocol.describe(tools, **options)


class World:
    """A registry with a session, and the changes that a host may make to it."""

    def __init__(self, protocol: str) -> None:
        self.protocol = Counted(get(protocol))
        self.registry = ToolRegistry()
        self.spec = ToolSpec.from_function(pay)
        self.registry.register(self.spec)
        self.hidden: set[str] = set()
        self.session = Session(
            self.registry,
            protocol=cast("Any", self.protocol),
            programs=None if protocol == "attp" else False,
            visible=lambda name, _: name not in self.hidden,
        )

    def add(self) -> None:
        self.registry.register(look)

    def disable(self) -> None:
        self.registry.disable("pay", "closed")

    def bind(self) -> None:
        self.spec.bind("to", default="us")

    def hide(self) -> None:
        self.hidden.add("pay")

    def replace(self) -> None:
        def pay(amount: int, to: str = "shop") -> dict[str, int]:
            """Pays."""
            return {to: amount}

        self.registry.register(pay, replace=True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("change", ["add", "disable", "bind", "hide", "replace"])
def test_a_change_is_in_the_instructions_at_the_next_access(protocol: str, change: str) -> None:
    world = World(protocol)
    before = world.session.instructions
    assert (world.session.instructions, world.protocol.count) == (before, 1)
    getattr(world, change)()
    after = world.session.instructions
    fresh = World(protocol)
    getattr(fresh, change)()
    assert (after, world.protocol.count) == (fresh.session.instructions, 2)
    # The other protocols do not tell the type of a result.
    assert (after != before) or (change == "replace" and protocol != "attp")
    assert (world.session.instructions, world.protocol.count) == (after, 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_permission_that_changes_is_in_force_at_the_next_access(protocol: str) -> None:
    eraser = Eraser(AUTO)
    session = Session([eraser, look], protocol=protocol)
    for permission, is_told in ((AUTO, True), (DENY, False), (CONFIRM, True)):
        eraser.permission = permission
        for _ in range(2):
            assert ("erase" in str(session.instructions)) is is_told
            assert "look" in str(session.instructions)


def test_a_caller_that_changes_its_request_tools_changes_no_others() -> None:
    session = World("openai").session
    first = session.request_tools
    first[0]["function"]["name"] = "other"
    second = session.request_tools
    second[0]["function"]["name"] = "another"
    assert [tool["function"]["name"] for tool in session.request_tools] == ["pay"]
