"""A turn of one call of an agent on LangGraph, its tool toolwire's with a store, beside LangGraph's own tool.

Run: python -m benchmarks.langgraph_tools. A turn is a message of the user, the call, and the answer, of an agent whose
model is a script and whose checkpoints are in a file. The variants take turns on the disk below the working folder.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.timing import Figure, medians, show
from toolwire import Store, ToolSpec
from toolwire.frameworks.langchain import langchain_tools

LIMIT = 1.5
"""The most that a turn with toolwire's tool may take, times one with LangGraph's own."""
NUMBER, ROUNDS = 10, 15
TURNS = 10
"""Turns of a conversation."""


def figures() -> list[Figure]:
    """The time of a turn."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, ExitStack() as ended:
        folder = Path(name)
        store = ended.enter_context(Store.open(f"sqlite:///{folder}/runs.db"))
        ours = langchain_tools([ToolSpec.from_function(add, permission="auto")], store=store)
        own = _turn([tool(add)], folder / "own.db", ended)
        with_store = _turn(ours, folder / "ours.db", ended)
        times = medians({"own": own, "ours": with_store}, number=NUMBER, rounds=ROUNDS)
    return [
        Figure(
            name="a turn of one call, against LangGraph's own tool", ratio=times["ours"] / times["own"], limit=LIMIT
        ),
        Figure(name="  LangGraph's own tool", ratio=times["own"] * 1000, limit=None, unit="ms"),
        Figure(name="  toolwire's tool", ratio=times["ours"] * 1000, limit=None, unit="ms"),
    ]


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class _Script(BaseChatModel):
    """A model that adds once, and then says the sum."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **options: Any) -> Any:  # noqa: ARG002 - as LangChain calls it
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:  # noqa: ARG002
        made: Any = [{"name": "add", "args": {"a": 1, "b": 2}, "id": "c1"}]
        is_first = isinstance(messages[-1], HumanMessage)
        said = AIMessage("", tool_calls=made) if is_first else AIMessage(messages[-1].text)
        return ChatResult(generations=[ChatGeneration(message=said)])


def _turn(tools: list[Any], path: Path, ended: ExitStack) -> Callable[[], object]:
    saver = ended.enter_context(SqliteSaver.from_conn_string(str(path)))
    agent: Any = create_agent(_Script(), tools, checkpointer=saver)
    count = itertools.count()

    def turn() -> None:
        out = agent.invoke({"messages": "Go."}, {"configurable": {"thread_id": str(next(count) // TURNS)}})
        assert out["messages"][-1].content == "3"

    return turn


if __name__ == "__main__":
    show("Tools inside LangGraph", figures())
