"""State by key."""

from __future__ import annotations

from toolwire.invocation.middleware.keys import Keyed


def test_a_key_keeps_its_state() -> None:
    states = Keyed(list[int], lambda state: not state)
    states.of("a").append(1)
    assert (states.of("a"), states.of("b")) == ([1], [])


def test_the_least_recently_used_idle_keys_are_forgotten() -> None:
    states = Keyed(list[int], lambda state: not state, limit=3)
    states.of("busy").append(1)
    for key in ("idle", "other", "busy", "new"):
        states.of(key)
    assert (len(states._states), states.of("busy")) == (3, [1])


def test_states_in_use_are_kept_beyond_the_limit() -> None:
    states = Keyed(list[int], lambda state: not state, limit=2)
    for key in range(5):
        states.of(key).append(key)
    assert [states.of(key) for key in range(5)] == [[key] for key in range(5)]
