"""The parts of a call go when it has ended. Those in a reference cycle would wait for a garbage collection."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Generator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire import CallContext, Session, Store
from toolwire.mcp.convert import from_mcp


@pytest.fixture(autouse=True)
def without_collections() -> Generator[None]:
    gc.disable()
    yield
    gc.enable()


async def call_once(watch: Any, **options: Any) -> None:
    def act(context: CallContext) -> str:
        """Acts."""
        watch(context)
        return "done"

    session = Session([act], protocol="json", **options)
    turn = await session.turn('<tool_call>{"name": "act", "arguments": {}}</tool_call>')
    assert [result.data for result in turn.results] == ["done"]


async def test_the_context_of_a_call_goes_with_it() -> None:
    gone = threading.Event()
    await call_once(lambda context: weakref.finalize(context.scope.run, gone.set))
    assert gone.wait(PATIENCE_S)


async def test_the_ledger_of_a_run_goes_with_it(tmp_path: Path) -> None:
    gone = threading.Event()
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        await call_once(lambda context: weakref.finalize(context.scope.ledger, gone.set), store=store)
        assert gone.wait(PATIENCE_S)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_the_future_of_an_outside_tool_goes_with_its_call(is_cancelled: bool) -> None:
    gone, sources = threading.Event(), [Future[Any]()]
    tool = from_mcp({"name": "act", "inputSchema": {"type": "object"}}, lambda: sources[0])
    assert tool.function is not None
    future = tool.function()
    weakref.finalize(future, gone.set)
    if is_cancelled:
        assert future.cancel()
        assert future.cancel()
    else:
        sources[0].set_result({"content": [{"type": "text", "text": "done"}]})
        assert future.result(PATIENCE_S).content == [{"type": "text", "text": "done"}]
        assert not future.cancel()
    del future, sources[:]
    assert gone.wait(PATIENCE_S)
