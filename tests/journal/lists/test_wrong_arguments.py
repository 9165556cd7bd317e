"""A wrong argument of a reading call is refused with what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ConfigurationError, Session
from toolwire.journal.store import Store

STATUSES = "queued, running, suspended, parked, finished, stopped, diverged"
ANN = "write caller=Caller(principal='ann')"


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda store: store.runs(status="foo"), f"runs(status='foo'): write one of {STATUSES}"),
        (lambda store: store.runs(status=[]), f"runs(status=[]): write one of {STATUSES}"),
        (lambda store: store.runs(is_held="x"), "runs(is_held='x'): write True or False, or leave it out"),
        (lambda store: store.runs(is_held=1), "runs(is_held=1): write True or False, or leave it out"),
        (lambda store: store.runs(caller="ann"), f"runs(caller='ann'): {ANN}"),
        (lambda store: store.pending(caller="ann"), f"pending(caller='ann'): {ANN}"),
        (lambda store: store.pending(caller=5), f"pending(caller=5): {ANN}"),
        (
            lambda store: store.decisions_with_rules("r_1", caller="ann"),
            f"decisions_with_rules(caller='ann'): {ANN}",
        ),
        (lambda store: store.log("x"), "log('x'): write log(LogFilter(tool='pay'))"),
        (lambda store: store.log(""), "log(''): write log(LogFilter(tool='pay'))"),
        (lambda store: store.log_length("x"), "log_length('x'): write log_length(LogFilter(tool='pay'))"),
        (lambda store: store.follow(filter="x"), "follow('x'): write follow(filter=LogFilter(tool='pay'))"),
        (
            lambda store: store.decide("a_1", True),
            "decide(True): write decide(request_id, Decision(verdict='approve'))",
        ),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_write(
    store: Store, read: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(store)
    assert str(caught.value) == message


def test_a_store_of_a_session_is_a_store_or_its_url() -> None:
    given: Any = 5
    with pytest.raises(ConfigurationError) as caught:
        Session([], store=given)
    assert str(caught.value) == ("store=5: write store='sqlite:///runs.db', or give what Store.open(url) returns")
