"""A limit that processes share holds over all of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.journal.world import done
from toolwire import ConfigurationError, Store, ToolRegistry
from toolwire.journal.database.tables import RATES
from toolwire.middleware import RateLimit
from toolwire.vocabulary.errors import StoreUnavailable

PROGRAM = """
import sys
from toolwire import Store, ToolRegistry
from toolwire.middleware import RateLimit
with Store.open(sys.argv[1]) as store:
    across = {"across": store} if sys.argv[2] == "yes" else {}
    registry = ToolRegistry(middleware=[RateLimit(5, per_s=3600, wait_limit_s=0, **across)])
    registry.register(lambda: 1, name="work")
    print(sum(registry.invoke("work", {}).success for _ in range(5)))
"""


@pytest.mark.parametrize(("is_across", "begun"), [("yes", 5), ("no", 10)])
def test_two_processes_share_a_limit_with_a_store_and_have_their_own_without(
    url: str, opened: Callable[[], Store], is_across: str, begun: int
) -> None:
    opened()
    words = [sys.executable, "-c", PROGRAM, url, is_across]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sum(int(one.communicate()[0]) for one in both) == begun


def test_a_place_is_free_again_when_its_second_is_old_enough(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.9
    monkeypatch.setattr(store._database, "clock", lambda: now)
    assert [done(store.take_place("k", 2, 10.0)) for _ in range(3)] == [0.0, 0.0, pytest.approx(10.1)]
    now = 1010.9
    assert done(store.take_place("k", 2, 10.0)) > 0
    now = 1011.1
    assert done(store.take_place("k", 2, 10.0)) == 0.0
    rows = store._database.read(lambda connection: connection.execute(RATES.select()).all())
    assert [tuple(row) for row in rows] == [("k", 1011, 1)]


def test_a_call_does_not_start_while_the_store_is_away(store: Store) -> None:
    registry = ToolRegistry(middleware=[RateLimit(1, per_s=60, across=store)])
    ran: list[int] = []
    registry.register(lambda: ran.append(1), name="work")
    store.close()
    with pytest.raises(StoreUnavailable):
        registry.invoke("work", {}).unwrap()
    assert ran == []


def test_what_is_no_store_and_a_group_that_is_no_text_are_refused(store: Store) -> None:
    wrong: object = 5
    with pytest.raises(ConfigurationError, match=r"across=5\): give a store"):
        RateLimit(1, per_s=60, across=wrong)  # pyright: ignore[reportArgumentType]
    registry = ToolRegistry(middleware=[RateLimit(1, per_s=60, across=store, key=lambda _: 7)])
    registry.register(lambda: 1, name="work")
    with pytest.raises(ConfigurationError, match="return text"):
        registry.invoke("work", {}).unwrap()
