"""What a server holds for slow clients: an owner has a share, and the oldest give way."""

from __future__ import annotations

import pytest

from toolwire.gateway.http.unfinished import Unfinished


class Held:
    """Entries by name, and those that were dropped."""

    def __init__(self, limit: int, each: int) -> None:
        self.dropped: list[str] = []
        self.of = Unfinished[str](limit, each, self.dropped.append)

    def __call__(self, *names: str, amount: int = 1) -> list[str]:
        """Holds `a1` for the owner `a`, and returns what was dropped since the last time."""
        for name in names:
            self.of.hold(name, name[0], amount)
        found, self.dropped[:] = list(self.dropped), []
        return found


def test_an_owner_has_its_share_and_the_oldest_gives_way() -> None:
    held = Held(10, 2)
    assert held("a1", "a2", "b1") == []
    assert held("a3", "a4") == ["a1", "a2"]
    # An entry that goes on stays the oldest.
    assert (held("a3"), held("a5")) == ([], ["a3"])


def test_the_limit_takes_from_the_owner_that_has_most() -> None:
    held = Held(4, 3)
    assert held("a1", "b1", "b2", "b3") == []
    assert held("c1") == ["b1"]
    assert held("c2") == ["b2"]
    held = Held(2, 2)
    assert held("a1", "b1", "c1") == ["a1"]


def test_an_entry_makes_room_for_itself_and_never_gives_way_to_itself() -> None:
    held = Held(10, 5)
    assert held("a1", amount=3) == []
    assert held("a2", amount=2) == []
    assert held("a2", amount=3) == ["a1"]
    assert held("a2", amount=1_000) == []
    # It counts as a share, so that others have theirs.
    assert held("b1", "b2", amount=2) == []
    assert held("b3", amount=3) == ["b1"]
    assert held("c1") == ["a2"]


def test_what_is_released_makes_room_and_is_not_dropped_later() -> None:
    held = Held(2, 2)
    assert held("a1", "a2") == []
    held.of.release("a1")
    held.of.release("never held")
    assert held("a3") == []
    assert held("a4") == ["a2"]
    assert (held.of.drop_one(), held.dropped) == (True, ["a3"])
    held.of.release("a4")
    assert not held.of.drop_one()


def test_an_entry_may_change_its_owner() -> None:
    held = Held(10, 1)
    held.of.hold("x", "a")
    held.of.hold("x", "b")
    assert held("a1") == []
    assert held("b1") == ["x"]


@pytest.mark.parametrize("owner", [None, "a"])
def test_an_entry_without_an_owner_takes_no_share(owner: str | None) -> None:
    held = Held(10, 1)
    for name in ("x", "y"):
        held.of.hold(name, owner)
    assert held.dropped == ([] if owner is None else ["x"])
