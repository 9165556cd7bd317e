"""A store's methods for callers that run an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from tests.patience import PATIENCE_S
from toolwire import Caller, DecisionRefused, DocumentChanged, Session, Store
from toolwire.journal.twins import async_twin

DO_NOT_WAIT = {"clock", "follow", "tell", "watch_run"}
"""`clock` asks no server, `follow` gives an iterator, `tell` writes later, and `watch_run` listens in a thread."""


def blocking_methods() -> set[str]:
    """The public methods of a store that wait for its database."""
    functions = {name: value for name, value in inspect.getmembers(Store) if inspect.isroutine(value)}
    return {
        name
        for name, function in functions.items()
        if not name.startswith("_")
        and not hasattr(function, "__wrapped__")
        and not inspect.iscoroutinefunction(function)
        and not inspect.isasyncgenfunction(function)
        and not str(getattr(function, "__annotations__", {}).get("return")).startswith("Future")
    } - DO_NOT_WAIT


def test_each_method_that_waits_has_a_twin_with_its_name_after_an_a() -> None:
    methods = blocking_methods()
    assert len(methods) >= 20
    twins = {name: getattr(Store, f"a{name}", None) for name in methods}
    assert [name for name, twin in twins.items() if not inspect.iscoroutinefunction(twin)] == []
    for name, twin in twins.items():
        assert inspect.signature(twin).parameters.keys() == inspect.signature(getattr(Store, name)).parameters.keys()
        assert twin.__name__ == f"a{name}"
        assert twin.__qualname__.endswith(f".a{name}")
        assert inspect.getdoc(twin) == f"Works as `{name}`, and waits in a thread: it does not block the event loop."


async def test_the_twins_do_what_the_methods_do(tmp_path: Path) -> None:
    def pay(amount: int) -> str:
        """Pays."""
        return f"paid {amount}"

    ann = Caller(principal="ann")
    async with await Store.aopen(f"sqlite:///{tmp_path}/runs.db") as store:
        assert await store.asave_document("c-1", {"plan": []}, version=0, caller=ann) == 1
        assert await store.adocument("c-1", caller=ann) == store.document("c-1", caller=ann)
        with pytest.raises(DocumentChanged):
            await store.asave_document("c-1", {}, version=0, caller=ann)
        with pytest.raises(DecisionRefused):
            await store.adocument("c-1", caller=Caller(principal="bob"))
        session = Session([pay], protocol="xml", store=store, permissions={"pay": "confirm"}, conversation="c-2")
        turn = await session.turn("<tool_call><name>pay</name><params><amount>5</amount></params></tool_call>")
        assert turn.suspended is not None
        assert await store.aruns(conversation="c-2") == store.runs(conversation="c-2")
        assert await store.apending() == list(turn.suspended.pending)
        assert (await store.alog_length(), await store.averify()) == (store.log_length(), store.verify())
    assert repr(store).endswith(" closed>")


async def test_the_event_loop_runs_while_a_twin_waits() -> None:
    class Slow:
        def save(self, value: int) -> int:
            assert is_running.wait(PATIENCE_S)
            return value

        asave = async_twin(save)

    class Doubled(Slow):
        def save(self, value: int) -> int:
            return 2 * super().save(value)

    is_running = threading.Event()
    asyncio.get_running_loop().call_soon(is_running.set)
    assert await Doubled().asave(2) == 4


def test_no_method_with_a_future_is_counted_as_waiting() -> None:
    hints: Any = get_type_hints(Store.keep_groups)["return"]
    assert hints == Future[None]
    assert not {"start", "reopen", "keep_groups"} & blocking_methods()
