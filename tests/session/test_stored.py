"""A session over a real store: another session continues a run that one session suspended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.session.till import Till, calls, texts
from toolwire import Decision, Session, Store, ToolRegistry
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


async def test_the_calls_of_a_session_are_in_the_log_of_its_store_once(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db", key=bytes(32)) as store:
        registry = ToolRegistry()
        registry.register(Till().price)
        for _ in range(2):
            await Session(registry, protocol="openai", store=store).turn(calls(("price", {"thing": "tea"})))
            registry.enable_logging(store=store)
        rows = store.log(LogFilter(kind="call"))
        assert [(row.tool, row.status) for row in rows] == [("price", "success")] * 2
