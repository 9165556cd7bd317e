"""Agents in processes: one process at a time works on a conversation, and Ctrl-C leaves a whole record."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, until
from tests.session.killed import KEY
from toolwire import Agent, ConfigurationError, DecisionRefused, Store, ToolSpec
from toolwire.testing import ScriptedModel

WORK = """
import pathlib, sys, threading
from toolwire import Agent, Store
from toolwire.sandbox.limits import Limits
from toolwire.testing import ScriptedModel

folder, url, way = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

def note(line):
    with open(folder / "notes", "a") as file:
        file.write(line + "\\n")

def pay() -> str:
    '''Pays.'''
    note("pay")
    return "paid"

async def wait() -> None:
    '''Waits.'''
    import asyncio
    note("wait")
    await asyncio.Event().wait()

def block() -> None:
    '''Waits in a thread.'''
    note("block")
    threading.Event().wait(30)

def reply(request):
    note("asked")
    replies = sum(message["role"] == "assistant" for message in request.messages)
    return [("pay", {})] if replies == 0 else [(way, {})] if replies == 1 else "Done."

with Store.open(url, key=bytes(32)) as store:
    agent = Agent("clerk", ScriptedModel(reply), [pay, wait, block], store=store, limits=Limits(cleanup_s=0.3))
    prompt = "Pay." if store.document("c").value is None else "And now?"
    try:
        print(agent.run_sync(prompt, conversation="c").text)
    except KeyboardInterrupt:
        note("interrupted")
        raise SystemExit(130)
"""


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
        command = [sys.executable, "-c", WORK, str(folder), url, way]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @property
    def notes(self) -> list[str]:
        """What has happened in the processes of this folder."""
        path = self.folder / "notes"
        return path.read_text().split() if path.exists() else []

    def until(self, *notes: str) -> None:
        """Waits for these notes."""
        until(lambda: set(notes) <= set(self.notes) or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()


@pytest.mark.parametrize("way", ["wait", "block"])
def test_an_interrupted_run_is_on_record_and_the_next_process_goes_on(tmp_path: Path, url: str, way: str) -> None:
    worker = Worker(tmp_path, url, way)
    worker.until("pay", way)
    begun = time.monotonic()
    worker.process.send_signal(signal.SIGINT)
    _, errors = worker.process.communicate(timeout=PATIENCE_S)
    assert worker.process.returncode == 130, errors
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
    said, errors = again.process.communicate(timeout=PATIENCE_S)
    assert (said, again.process.returncode) == ("Done.\n", 0), errors
    assert sorted(again.notes) == sorted(["asked", "pay", "asked", way, "interrupted", "asked"])


async def test_one_process_at_a_time_works_on_a_conversation(tmp_path: Path, url: str) -> None:
    worker = Worker(tmp_path, url, "wait")
    worker.until("pay", "wait")
    with Store.open(url, key=KEY) as store:
        model = ScriptedModel(["Hello."])
        agent = Agent("clerk", model, [pay, wait], store=store)
        with pytest.raises(DecisionRefused) as refused:
            await agent.run("And?", conversation="c")
        assert (refused.value.code, model.requests) == ("conversation_busy", [])
        worker.process.kill()
        worker.process.communicate(timeout=PATIENCE_S)
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
    worker.process.kill()
    worker.process.communicate(timeout=PATIENCE_S)

    async def changed_wait(until: int) -> None:
        """Waits."""

    tools = [ToolSpec.from_function(changed_wait, name="wait")] if is_here else []
    with Store.open(url, key=KEY) as store:
        result = await Agent("clerk", ScriptedModel(["Hello."]), [pay, *tools], store=store).run(conversation="c")
    assert (result.stop, result.text) == ("answered", "Hello.")
    told = [message["content"] for message in result.messages if message["role"] == "tool"]
    assert told[0] == "paid"
    assert told[1].startswith("'wait' began before, and its end is not on record; it was not run again: ")
