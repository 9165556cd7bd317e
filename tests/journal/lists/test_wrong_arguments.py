"""A wrong argument of a reading call is refused with what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ConfigurationError, Decision, Session
from toolwire.journal.log.rows import LogFilter
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


BY_RUN = ("run", "reply", "calls", "pending", "requests", "log_tree")


@pytest.mark.parametrize("name", BY_RUN)
@pytest.mark.parametrize("given", [{"run_id": "r_1"}, ["r_1"], b"r_1"])
def test_an_object_in_place_of_the_id_of_a_run_is_refused(store: Store, name: str, given: object) -> None:
    with pytest.raises(ConfigurationError) as caught:
        getattr(store, name)(given)
    assert str(caught.value) == f"{name}(run_id={given!r}): write text, such as run_id=turn.run_id"


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda store: store.stop({}, by="ann"), "stop(run_id={}): write text, such as run_id=turn.run_id"),
        (lambda store: store.requeue({}, by="ann"), "requeue(run_id={}): write text, such as run_id=turn.run_id"),
        (lambda store: store.request([]), "request(request_id=[]): write text, such as request_id=request.id"),
        (
            lambda store: store.decide({}, Decision(verdict="approve")),
            "decide(request_id={}): write text, such as request_id=request.id",
        ),
        (lambda store: store.runs(tool=5), "runs(tool=5): write text, such as tool='pay'"),
        (lambda store: store.runs(agent=5), "runs(agent=5): write text, such as agent='support'"),
        (lambda store: store.pending(tool=5), "pending(tool=5): write text, such as tool='pay'"),
        (lambda store: store.calls("r_1", parent=5), "calls(parent=5): write text, such as parent=call.id"),
        (lambda _: LogFilter(tool=untyped(5)), "LogFilter(tool=5): write text, such as tool='...'"),
        (lambda _: LogFilter(text=untyped(5)), "LogFilter(text=5): write text, such as text='...'"),
    ],
)
def test_what_is_not_text_matches_no_entry_and_is_refused(
    store: Store, read: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(store)
    assert str(caught.value) == message


def untyped(value: object) -> Any:
    """A value that a type checker would refuse."""
    return value
