"""A process that goes on with a thread of LangGraph and may die on the way: `URL FOLDER DIES_AT`.

`FOLDER` has the checkpoints, `graph.db`, and the decisions, `decisions.json`. DIES_AT is `effect` (after the payment
and before its record), `second` (so in the second payment), or `save` (after the record, before LangGraph has the next
message).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from pydantic import Field

from toolwire import Store, ToolRegistry
from toolwire.frameworks.langchain import langchain_tools

THREAD: Any = {"configurable": {"thread_id": "c-1"}, "max_concurrency": 1}


class PaysOnce(BaseChatModel):
    """A model that pays, and then says that it is done."""

    dies_at: str = ""
    arguments: dict[str, Any] = Field(default_factory=lambda: {"amount": 5})
    payments: int = 1
    """How often it makes the call in its reply, with the same id each time."""

    @property
    def _llm_type(self) -> str:
        return "pays-once"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:
        made: Any = [{"name": "pay", "args": self.arguments, "id": "call_1"}] * self.payments
        is_first = len(messages) == 1
        if not is_first and self.dies_at == "save":
            os.kill(os.getpid(), signal.SIGKILL)
        said = AIMessage("", tool_calls=made) if is_first else AIMessage(f"done: {messages[-1].text}")
        return ChatResult(generations=[ChatGeneration(message=said)])


def run(store: Store, folder: Path, given: Any, dies_at: str = "", payments: int = 1) -> Any:
    """Runs the agent of the thread, as a process that has just started would make it."""

    def pay(amount: int) -> str:
        """Pays."""
        with (folder / "paid").open("a") as paid:
            paid.write(f"{amount}\n")
        if dies_at == "effect" or (dies_at == "second" and (folder / "paid").read_text().count("\n") == 2):
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {amount}"

    registry = ToolRegistry()
    registry.register(pay, permission="confirm")
    tools = langchain_tools(registry, store=store)
    model = PaysOnce(dies_at=dies_at, payments=payments)
    with SqliteSaver.from_conn_string(str(folder / "graph.db")) as saver:
        return create_agent(model, tools, checkpointer=saver).invoke(given, THREAD)


def resume(store: Store, folder: Path, dies_at: str = "") -> Any:
    """Goes on with the saved decisions."""
    return run(store, folder, Command(resume=json.loads((folder / "decisions.json").read_text())), dies_at)


async def go_on(url: str, folder: Path, dies_at: str) -> None:
    with Store.open(url) as store:
        await asyncio.to_thread(resume, store, folder, dies_at)


if __name__ == "__main__":
    asyncio.run(go_on(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
