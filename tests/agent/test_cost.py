"""What agents cost beside their models: imports, and the memory of conversations that wait."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc

from tests.agent.worlds import Bank, calls
from toolwire import Agent, Store
from toolwire.testing import ScriptedModel

IDLE_LIMIT_BYTES = 10_000
"""Memory of one idle conversation whose agent has a store."""
OURS = ("toolwire.agent", "toolwire.models", "toolwire.facade.tools.", "toolwire.runtime.wakes")


def modules_after(statement: str) -> set[str]:
    program = f"{statement}\nimport sys, json\nprint(json.dumps(list(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(found.stdout))


def test_an_agent_imports_no_sdk_no_database_and_little_more_than_a_session() -> None:
    more = modules_after("from toolwire import Agent") - modules_after("from toolwire import Session")
    others = [name for name in more if name.split(".")[0] not in sys.stdlib_module_names]
    assert [name for name in others if not name.startswith(OURS)] == []
    assert len(more) < 30


async def test_an_idle_conversation_takes_little_memory(store: Store) -> None:
    bank = Bank()
    model = ScriptedModel(lambda request: calls("pay", amount=1) if len(request.messages) == 1 else "Paid.")
    agent = Agent("clerk", model, bank.tools, store=store)

    async def converse(count: int, name: str) -> None:
        for number in range(count):
            result = await agent.run("Pay." * 1_000, conversation=f"{name}-{number}")
            assert result.stop == "answered"
            model.requests.clear()
        gc.collect()

    await converse(20, "first")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await converse(60, "second")
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 60 * IDLE_LIMIT_BYTES
