"""Each framework resumes one saved state twice, and is killed between effect and save: nothing runs twice unasked.

`make soak` runs 100 doubles and 50 kills for each framework. The suite runs 4 doubles, and each kind of kill in a test
of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from agents import UserError
from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests, DeferredToolResults

from tests.frameworks import (
    killed_agent,
    killed_langchain_agent,
    killed_openai_agent,
    test_killed_agents,
    test_killed_langchain_agents,
    test_killed_openai_agents,
)
from tests.frameworks.killed_langchain_agent import resume, run
from tests.frameworks.killed_openai_agent import go_on_approved, openai_agent_of
from tests.frameworks.test_killed_agents import paid
from toolwire import Store

DOUBLES, KILLS = 100, 50


class Framework(ABC):
    """An agent of a framework, whose one payment waits for a person."""

    dies: Callable[[str, Path, str], Coroutine[Any, Any, None]]
    """Goes on with the saved state in a process that dies."""

    @abstractmethod
    async def save(self, store: Store, folder: Path) -> None:
        """Saves the state of the agent in a folder, with the approval."""

    @abstractmethod
    async def go_on(self, store: Store, folder: Path) -> str:
        """Goes on with the saved state. Returns what it ends with: `done`, or `doubt` if the payment may have run."""


class PydanticAi(Framework):
    dies = staticmethod(killed_agent.go_on)

    async def save(self, store: Store, folder: Path) -> None:
        await test_killed_agents.save_asked(store, folder)

    async def go_on(self, store: Store, folder: Path) -> str:
        saved = (folder / "results.json").read_bytes()
        results = TypeAdapter(DeferredToolResults).validate_json(saved)
        output = await test_killed_agents.go_on(store, folder, results)
        if not isinstance(output, DeferredToolRequests):
            return output
        return "doubt" if "may have run" in output.metadata["call_1"]["requests"][0]["text"] else "asked"


class OpenAIAgents(Framework):
    dies = staticmethod(killed_openai_agent.go_on)

    async def save(self, store: Store, folder: Path) -> None:
        await test_killed_openai_agents.save_waiting(store, folder)

    async def go_on(self, store: Store, folder: Path) -> str:
        try:
            return (await go_on_approved(openai_agent_of(store, folder), folder)).final_output
        except UserError as error:
            return "doubt" if "may have run" in str(error) else str(error)


class LangGraph(Framework):
    dies = staticmethod(killed_langchain_agent.go_on)

    async def save(self, store: Store, folder: Path) -> None:
        out = await asyncio.to_thread(run, store, folder, {"messages": "Go."})
        test_killed_langchain_agents.save_approval(folder, out)

    async def go_on(self, store: Store, folder: Path) -> str:
        out: Any = await asyncio.to_thread(resume, store, folder)
        if "__interrupt__" not in out:
            return out["messages"][-1].text.partition(":")[0]
        return "doubt" if "may have run" in out["__interrupt__"][0].value["requests"][0]["text"] else "asked"


def _status(work: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> int | None:
    """Returns how a process ended. It is forked from a server, since the frameworks take seconds to import."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [killed.__name__ for killed in (killed_agent, killed_langchain_agent, killed_openai_agent)]
    )
    process = context.Process(target=_run, args=(work, *arguments))
    process.start()
    process.join()
    return process.exitcode


def _run(work: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
    asyncio.run(work(*arguments))


@pytest.fixture(params=[PydanticAi, OpenAIAgents, LangGraph])
def framework(request: pytest.FixtureRequest) -> Framework:
    return request.param()


@pytest.mark.timeout(3_600)
async def test_a_state_that_is_resumed_twice_pays_once(framework: Framework, whole: bool, tmp_path: Path) -> None:
    for number in range(DOUBLES if whole else 4):
        first, second = tmp_path / f"{number}", tmp_path / f"{number} again"
        first.mkdir()
        with Store.open(f"sqlite:///{first}/runs.db") as store:
            await framework.save(store, first)
            shutil.copytree(first, second, ignore=shutil.ignore_patterns("runs.db*"))
            if number % 2:
                ends = list(await asyncio.gather(*(framework.go_on(store, folder) for folder in (first, second))))
            else:
                ends = [await framework.go_on(store, folder) for folder in (first, second)]
        # One that comes while the other is at work is told so, as a result of its call.
        assert ends == ["done", "done"]
        assert paid(first) + paid(second) == ["5"]


@pytest.mark.timeout(3_600)
async def test_a_killed_process_pays_once_or_asks(framework: Framework, whole: bool, tmp_path: Path) -> None:
    if not whole:
        pytest.skip("each kind of kill has a test of its own")
    for number in range(KILLS):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        url, dies_at = f"sqlite:///{folder}/runs.db", ("effect", "save")[number % 2]
        with Store.open(url) as store:
            await framework.save(store, folder)
            assert await asyncio.to_thread(_status, framework.dies, url, folder, dies_at) == -signal.SIGKILL
            assert await framework.go_on(store, folder) == ("doubt" if dies_at == "effect" else "done")
        assert paid(folder) == ["5"]
