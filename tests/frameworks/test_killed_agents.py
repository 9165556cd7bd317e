"""A process that is killed before the framework saves: nothing is paid twice, and each doubt is asked."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter

from tests.frameworks.killed_agent import agent_of
from toolwire import Store


def paid(folder: Path) -> list[str]:
    return (folder / "paid").read_text().split() if (folder / "paid").exists() else []


async def save_asked(store: Store, folder: Path) -> DeferredToolRequests:
    """Saves the state of an agent whose call waits, and the approval."""
    result = await agent_of(store, folder).run("Go.", conversation_id="c-1")
    assert isinstance(result.output, DeferredToolRequests)
    (folder / "history.json").write_bytes(result.all_messages_json())
    save_results(folder, result.output)
    return result.output


def save_results(folder: Path, asked: DeferredToolRequests) -> DeferredToolResults:
    results = asked.build_results(approve_all=True, metadata=asked.metadata)
    (folder / "results.json").write_bytes(TypeAdapter(DeferredToolResults).dump_json(results))
    return results


async def go_on_and_die(url: str, folder: Path, dies_at: str) -> int:
    script = [sys.executable, "-m", "tests.frameworks.killed_agent", url, str(folder), dies_at]
    process = await asyncio.create_subprocess_exec(*script)
    return await process.wait()


async def go_on(store: Store, folder: Path, results: DeferredToolResults) -> str | DeferredToolRequests:
    history = ModelMessagesTypeAdapter.validate_json((folder / "history.json").read_bytes())
    return (await agent_of(store, folder).run(message_history=history, deferred_tool_results=results)).output


async def test_a_doubt_is_asked(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    store = opened()
    asked = await save_asked(store, tmp_path)
    assert await go_on_and_die(url, tmp_path, "effect") == -signal.SIGKILL
    assert paid(tmp_path) == ["5"]
    # The saved approvals, with and without the requests, are not those of the doubt.
    for results in (
        asked.build_results(approve_all=True, metadata=asked.metadata),
        asked.build_results(approve_all=True),
    ):
        doubted = await go_on(store, tmp_path, results)
        assert isinstance(doubted, DeferredToolRequests)
        assert "may have run" in doubted.metadata["call_1"]["requests"][0]["text"]
        assert paid(tmp_path) == ["5"]
    assert await go_on(store, tmp_path, save_results(tmp_path, doubted)) == "done"
    assert paid(tmp_path) == ["5", "5"]


async def test_what_ended_is_not_run_again(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    store = opened()
    asked = await save_asked(store, tmp_path)
    assert await go_on_and_die(url, tmp_path, "save") == -signal.SIGKILL
    assert await go_on(store, tmp_path, save_results(tmp_path, asked)) == "done"
    assert paid(tmp_path) == ["5"]


async def test_the_process_goes_on(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    """The control."""
    await save_asked(opened(), tmp_path)
    assert await go_on_and_die(url, tmp_path, "never") == 0
    assert paid(tmp_path) == ["5"]
