"""A process that goes on with a saved state of the OpenAI Agents SDK and may die on the way: `URL FOLDER DIES_AT`.

`FOLDER` has the saved `state.json`. DIES_AT is `effect` (after the payment and before its record), `save` (after the
record, before the SDK has the next reply), or `never`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, RunState, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from toolwire import Store, ToolRegistry
from toolwire.frameworks.openai_agents import function_tools

set_tracing_disabled(True)


class PaysOnce(Model):
    """A model that pays, and then says that it is done."""

    def __init__(self, dies_at: str, **more: str) -> None:
        self._dies_at = dies_at
        self._arguments = json.dumps({"amount": 5, **more})

    async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
        items = given[1] if given else options["input"]
        if isinstance(items, str) or len(items) == 1:
            call = ResponseFunctionToolCall(
                call_id="call_1", name="pay", arguments=self._arguments, type="function_call"
            )
            return ModelResponse(output=[call], usage=Usage(requests=1), response_id=None)
        if self._dies_at == "save":
            os.kill(os.getpid(), signal.SIGKILL)
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
        return ModelResponse(output=[said], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def openai_agent_of(store: Store, folder: Path, dies_at: str = "never") -> Agent[Any]:
    def pay(amount: int) -> str:
        """Pays."""
        with (folder / "paid").open("a") as paid:
            paid.write(f"{amount}\n")
        if dies_at == "effect":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {amount}"

    registry = ToolRegistry()
    registry.register(pay, permission="confirm")
    tools = function_tools(registry, store=store, conversation="c-17")
    return Agent("clerk", tools=[*tools], model=PaysOnce(dies_at))


async def go_on_approved(agent: Agent[Any], folder: Path) -> Any:
    """Approves what waits in the saved state, and goes on."""
    state = await RunState.from_string(agent, (folder / "state.json").read_text())
    for item in state.get_interruptions():
        state.approve(item)
    return await Runner.run(agent, state)


async def go_on(url: str, folder: Path, dies_at: str) -> None:
    with Store.open(url) as store:
        await go_on_approved(openai_agent_of(store, folder, dies_at), folder)


if __name__ == "__main__":
    asyncio.run(go_on(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
