"""Agents in processes: one process at a time works on a conversation, and Ctrl-C leaves a whole record."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.forks import forked
from tests.patience import PATIENCE_S, until
from tests.session.killed import KEY
from toolwire import Agent, ConfigurationError, DecisionRefused, Store, ToolSpec
from toolwire.sandbox.limits import Limits
from toolwire.testing import ScriptedModel


def work(folder: Path, url: str, way: str) -> None:
    """A process with an agent, which pays and then waits, in a task or in a thread. It goes on in a second process."""

    def note(line: str) -> None:
        with (folder / "notes").open("a") as file:
            file.write(f"{line}\n")

    def pay() -> str:
        """Pays."""
        note("pay")
        return "paid"

    async def wait() -> None:
        """Waits."""
        note("wait")
        await asyncio.Event().wait()

    def block() -> None:
        """Waits in a thread."""
        note("block")
        threading.Event().wait(30)

    def reply(request: Any) -> Any:
        note("asked")
        replies = sum(message["role"] == "assistant" for message in request.messages)
        return [("pay", {})] if replies == 0 else [(way, {})] if replies == 1 else "Done."

    with Store.open(url, key=KEY) as store:
        agent = Agent("clerk", ScriptedModel(reply), [pay, wait, block], store=store, limits=Limits(cleanup_s=0.3))
        prompt = "Pay." if store.document("c").value is None else "And now?"
        try:
            note(str(agent.run_sync(prompt, conversation="c").text))
        except KeyboardInterrupt:
            note("interrupted")
            raise SystemExit(130) from None


def pay() -> None:
    """Pays."""
    raise AssertionError("it ran here")


async def wait() -> None:
    """Waits."""
    raise AssertionError("it ran here")


class Worker:
    """A process with an agent."""

    def __init__(self, folder: Path, url: str, way: str) -> None:
        self.folder = folder
        self.process = forked(work, folder, url, way)

    @property
    def notes(self) -> list[str]:
        """What has happened in the processes of this folder."""
        path = self.folder / "notes"
        return path.read_text().split() if path.exists() else []

    def until(self, *notes: str) -> None:
        """Waits for these notes."""
        until(lambda: set(notes) <= set(self.notes) or not self.process.is_alive())
        assert self.process.is_alive(), self.notes

    def interrupt(self) -> None:
        """Presses Ctrl-C."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kills the process, and waits for its end."""
        self.process.kill()
        self.process.join(PATIENCE_S)

    def exit_code(self) -> int | None:
        """Waits for the end of the process."""
        self.process.join(PATIENCE_S)
        return self.process.exitcode


@pytest.mark.parametrize("way", ["wait", "block"])
def test_an_interrupted_run_is_on_record_and_the_next_process_goes_on(tmp_path: Path, url: str, way: str) -> None:
    worker = Worker(tmp_path, url, way)
    worker.until("pay", way)
    begun = time.monotonic()
    worker.interrupt()
    assert worker.exit_code() == 130
    # The clean-up of 0.3 s, the save, and the end of a process.
    assert way == "block" or time.monotonic() - begun < PATIENCE_S / 2
    assert sorted(worker.notes) == sorted(["asked", "pay", "asked", way, "interrupted"])
    with Store.open(url, key=KEY) as store:
        assert [run.status for run in store.runs(conversation="c")] == ["finished", "finished"]
        told = [message for message in store.document("c").value["messages"] if message["role"] == "tool"]
        assert told[0]["content"] == "paid"
        assert "the user stopped it" in told[1]["content"]
        assert "not run" not in told[1]["content"]
    again = Worker(tmp_path, url, way)
    assert again.exit_code() == 0
    assert sorted(again.notes) == sorted(["asked", "pay", "asked", way, "interrupted", "asked", "Done."])


async def test_one_process_at_a_time_works_on_a_conversation(tmp_path: Path, url: str) -> None:
    worker = Worker(tmp_path, url, "wait")
    worker.until("pay", "wait")
    with Store.open(url, key=KEY) as store:
        model = ScriptedModel(["Hello."])
        agent = Agent("clerk", model, [pay, wait], store=store)
        with pytest.raises(DecisionRefused) as refused:
            await agent.run("And?", conversation="c")
        assert (refused.value.code, model.requests) == ("conversation_busy", [])
        worker.kill()
        # Its holder is dead, so nobody waits for a lease to run out.
        begun = time.monotonic()
        with pytest.raises(ConfigurationError, match="waits for decisions"):
            await agent.run("And?", conversation="c")
        assert time.monotonic() - begun < 5
        # The prompt was not taken, and a person is asked about the call that may have run.
        result = await agent.run(conversation="c")
        (doubt,) = result.pending
        assert (doubt.tool, doubt.attempt, model.requests) == ("wait", 2, [])
        result = await agent.run(conversation="c", decisions=[{"request_id": doubt.id, "verdict": "deny"}])
        assert (result.stop, result.text) == ("answered", "Hello.")
        told = [message["content"] for message in result.messages if message["role"] == "tool"]
        assert told[0] == "paid"
        assert "It may have taken effect." in told[1]
    assert worker.notes.count("pay") == 1


@pytest.mark.parametrize("is_here", [False, True], ids=["gone", "changed"])
async def test_a_call_that_may_have_run_is_told_so_by_a_process_that_cannot_run_it(
    tmp_path: Path, url: str, is_here: bool
) -> None:
    worker = Worker(tmp_path, url, "wait")
    worker.until("pay", "wait")
    worker.kill()

    async def changed_wait(until: int) -> None:
        """Waits."""

    tools = [ToolSpec.from_function(changed_wait, name="wait")] if is_here else []
    with Store.open(url, key=KEY) as store:
        result = await Agent("clerk", ScriptedModel(["Hello."]), [pay, *tools], store=store).run(conversation="c")
    assert (result.stop, result.text) == ("answered", "Hello.")
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert told[0] == "paid"
    assert told[1].startswith("'wait' began before, and its end is not on record; it was not run again: ")
