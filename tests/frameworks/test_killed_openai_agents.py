"""A process that is killed before the OpenAI Agents SDK saves: nothing is paid twice, and each doubt is told."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agents import Runner, UserError

from tests.frameworks.killed_openai_agent import go_on_approved, openai_agent_of
from tests.frameworks.test_killed_agents import paid
from toolwire import Decision, Store


async def save_waiting(store: Store, folder: Path) -> None:
    """Saves the state of an agent whose call waits."""
    result = await Runner.run(openai_agent_of(store, folder), "Go.")
    assert len(result.interruptions) == 1
    (folder / "state.json").write_text(result.to_state().to_string())


async def go_on_and_die(url: str, folder: Path, dies_at: str) -> int:
    script = [sys.executable, "-m", "tests.frameworks.killed_openai_agent", url, str(folder), dies_at]
    process = await asyncio.create_subprocess_exec(*script)
    return await process.wait()


async def test_a_doubt_is_asked_outside(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    """The SDK's approval was that of the first attempt, and the SDK cannot ask for a second one."""
    store = opened()
    await save_waiting(store, tmp_path)
    assert await go_on_and_die(url, tmp_path, "effect") == -signal.SIGKILL
    for _ in range(2):
        with pytest.raises(UserError, match=r"may have run: decide it by `toolwire approvals`"):
            await go_on_approved(openai_agent_of(store, tmp_path), tmp_path)
        assert paid(tmp_path) == ["5"]
    [request] = store.pending()
    store.decide(request.id, Decision(verdict="approve"))
    assert (await go_on_approved(openai_agent_of(store, tmp_path), tmp_path)).final_output == "done"
    assert paid(tmp_path) == ["5", "5"]


async def test_what_ended_is_not_run_again(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    store = opened()
    await save_waiting(store, tmp_path)
    assert await go_on_and_die(url, tmp_path, "save") == -signal.SIGKILL
    result = await go_on_approved(openai_agent_of(store, tmp_path), tmp_path)
    assert (result.final_output, paid(tmp_path)) == ("done", ["5"])


async def test_the_process_goes_on(url: str, opened: Callable[[], Store], tmp_path: Path) -> None:
    """The control."""
    await save_waiting(opened(), tmp_path)
    assert await go_on_and_die(url, tmp_path, "never") == 0
    assert paid(tmp_path) == ["5"]
