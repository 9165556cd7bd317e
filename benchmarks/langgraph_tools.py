"""A turn of one call in a graph of LangGraph, its tool toolwire's with a store, beside LangGraph's own tool.

Run: python -m benchmarks.langgraph_tools. Both graphs have a checkpointer in a file and no model: a message with the
call goes in, and the tool's message comes out. The variants take turns on the disk below the working folder.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from benchmarks.timing import Figure, medians, show
from toolwire import Store, ToolSpec
from toolwire.frameworks.langchain import langchain_tools

LIMIT = 1.5
"""The most that a turn with toolwire's tool may take, times one with LangGraph's own."""
NUMBER = 10


def figures() -> list[Figure]:
    """The time of a turn, each in a thread of its own."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, ExitStack() as ended:
        folder = Path(name)
        store = ended.enter_context(Store.open(f"sqlite:///{folder}/runs.db"))
        ours = langchain_tools([ToolSpec.from_function(add, permission="auto")], store=store)
        own = _turn([tool(add)], folder / "own.db", ended)
        with_store = _turn(ours, folder / "ours.db", ended)
        times = medians({"own": own, "ours": with_store}, number=NUMBER)
    return [
        Figure(name="a turn of one call, against LangGraph's own", ratio=times["ours"] / times["own"], limit=LIMIT),
            name="a turn of one call, against LangGraph's own tool", ratio=times["ours"] / times["own"], limit=LIMIT
        ),
        Figure(name="  LangGraph's own tool", ratio=times["own"] * 1000, limit=None, unit="ms"),
        Figure(name="  toolwire's tool", ratio=times["ours"] * 1000, limit=None, unit="ms"),
    ]


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def _turn(tools: list[Any], path: Path, ended: ExitStack) -> Callable[[], object]:
    saver = ended.enter_context(SqliteSaver.from_conn_string(str(path)))
    graph: Any = StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge(START, "tools")
    graph = graph.compile(checkpointer=saver)
    threads = itertools.count()
    made: Any = [{"name": "add", "args": {"a": 1, "b": 2}, "id": "c1"}]

    def turn() -> None:
        given = {"messages": [AIMessage("", tool_calls=made)]}
        out = graph.invoke(given, {"configurable": {"thread_id": str(next(threads))}})
        assert out["messages"][-1].content == "3"

    return turn


if __name__ == "__main__":
    show("Tools inside LangGraph", figures())
