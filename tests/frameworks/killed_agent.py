"""A process that goes on with a saved state of an agent and may die on the way: `URL FOLDER DIES_AT`.

`FOLDER` has the saved `history.json` and `results.json`. DIES_AT is `effect` (after the payment and before its record),
`save` (after the record, before the framework has the next reply), or `never`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolwire import Store, ToolRegistry
from toolwire.frameworks.pydantic_ai import ToolwireToolset


def agent_of(store: Store, folder: Path, dies_at: str = "never") -> Agent[None, str | DeferredToolRequests]:
    def pay(amount: int) -> str:
        """Pays."""
        with (folder / "paid").open("a") as paid:
            paid.write(f"{amount}\n")
        if dies_at == "effect":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {amount}"

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pay", {"amount": 5}, tool_call_id="call_1")])
        if dies_at == "save":
            os.kill(os.getpid(), signal.SIGKILL)
        return ModelResponse(parts=[TextPart("done")])

    registry = ToolRegistry()
    registry.register(pay, permission="confirm")
    toolsets = [ToolwireToolset(registry, store=store)]
    return Agent(FunctionModel(reply), toolsets=toolsets, output_type=[str, DeferredToolRequests])


async def go_on(url: str, folder: Path, dies_at: str) -> None:
    history = ModelMessagesTypeAdapter.validate_json((folder / "history.json").read_bytes())
    results = TypeAdapter(DeferredToolResults).validate_json((folder / "results.json").read_bytes())
    with Store.open(url) as store:
        agent = agent_of(store, folder, dies_at)
        await agent.run(message_history=history, deferred_tool_results=results)


if __name__ == "__main__":
    asyncio.run(go_on(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
