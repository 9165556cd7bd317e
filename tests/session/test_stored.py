"""A session over a real store: another session continues a run that one session suspended."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.session.till import Till, calls, texts
from toolwire import ConfigurationError, Decision, DecisionRefused, Session, Store, StoreUnavailable, ToolRegistry
from toolwire.log import LogFilter


async def test_a_turn_is_resumed_from_the_file_and_its_call_runs_once(tmp_path: Path) -> None:
    url, till = f"sqlite:///{tmp_path}/runs.db", Till()
    with Store.open(url) as store:
        turn = await till.session(store).turn(calls(("pay", {"amount": 5}), ("price", {"thing": "tea"})))
        assert turn.suspended is not None
        run_id = turn.suspended.run_id
        assert [run.status for run in store.runs()] == ["suspended"]
    with Store.open(url) as store:
        [request] = store.pending()
        store.decide(request.id, Decision(verdict="approve"))
        done: list[Any] = [await till.session(store).resume(run_id) for _ in range(3)]
        assert [texts(each.messages) for each in done] == [["paid 5 to shop", "3"]] * 3
        assert [(run.status, run.steps, run.pending) for run in store.runs()] == [("finished", 2, 0)]
        assert store.verify().is_whole
    assert (till.paid, till.asked) == ([5], ["tea"])


def test_blocking_code_resumes_a_run_and_so_does_code_inside_of_an_event_loop(tmp_path: Path) -> None:
    till = Till()
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        session = till.session(store)
        turn = session.run_turn(calls(("pay", {"amount": 5})))
        assert turn.suspended is not None
        run_id, (request,) = turn.suspended.run_id, turn.suspended.pending
        done = session.run_resume(run_id, [Decision(verdict="approve", request_id=request.id)])

        async def notebook() -> Any:
            return session.run_resume(run_id)

        assert [texts(each.messages) for each in (done, asyncio.run(notebook()))] == [["paid 5 to shop"]] * 2
        with pytest.raises(DecisionRefused, match="there is no run 'r_0'"):
            session.run_resume("r_0")
    assert till.paid == [5]
    with pytest.raises(ConfigurationError, match="give the session a store"):
        Session([till.pay]).run_resume(run_id)


async def test_a_store_is_closed_at_the_end_of_its_block_while_the_event_loop_goes_on(tmp_path: Path) -> None:
    is_free = threading.Event()

    class Slow(Store):
        def close(self) -> None:
            assert is_free.wait(PATIENCE_S)
            super().close()

    async with Slow.open(f"sqlite:///{tmp_path}/runs.db") as store:
        asyncio.get_running_loop().call_soon(is_free.set)
        assert store.runs() == []
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.runs()


async def test_the_calls_of_a_session_are_in_the_log_of_its_store_once(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as store:
        registry = ToolRegistry()
        registry.register(Till().price)
        for _ in range(2):
            await Session(registry, protocol="openai", store=store).turn(calls(("price", {"thing": "tea"})))
            registry.enable_logging(store=store)
        rows = store.log(LogFilter(kind="call"))
        assert [(row.tool, row.status) for row in rows] == [("price", "success")] * 2
