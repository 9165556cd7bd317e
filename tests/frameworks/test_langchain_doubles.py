"""Calls of one reply with one id, in agents of LangChain: each runs once, whatever it has in common with the others.

Before, one ran, and of the others the model read `run_busy`, `divergence` or the result of the first.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from tests.frameworks.test_langchain import Agent, Script, World, call, decide, requests
from tests.frameworks.test_langchain import saver as saver
from tests.frameworks.test_langchain import world as world
from toolwire.frameworks.langchain import langchain_tools

ADD, OTHER, PAY = call("add", a=1, b=1), call("add", a=2, b=1), call("pay", amount=5)


def thread(most: int | None = None) -> Any:
    return {"configurable": {"thread_id": "t-1"}, "max_concurrency": most}


def in_one_node(world: World, *made: Any) -> Agent:
    """Returns an agent whose `ToolNode` has all calls of a reply, as the graphs of LangGraph's pages have it."""
    model = Script(left=[[*made]])
    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(langchain_tools(world.registry(), store=world.store)))
    graph.add_edge("__start__", "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return Agent(graph.compile(checkpointer=world.saver), model)


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("second", [ADD, OTHER], ids=["equal", "different"])
def test_both_run(second: Any, most: int | None, world: World) -> None:
    agent = world.agent([ADD, second])
    agent.graph.invoke({"messages": "Go."}, thread(most))
    assert (sorted(world.paid), agent.told) == ([1, second["args"]["a"]], ["2", str(second["args"]["a"] + 1)])


@pytest.mark.parametrize("amount", [5, 6])
def test_both_wait_and_are_decided_each_in_other_processes(amount: int, world: World) -> None:
    out = world.agent([PAY, call("pay", amount=amount), ADD]).run()
    assert len({request["id"] for request in requests(out)}) == 2
    assert world.paid == [1]
    saved = world.agent().graph.get_state(thread()).config
    first, second = ({"__interrupt__": [one]} for one in out["__interrupt__"])
    # The last resumes the same saved state once more, which pays nothing again.
    for given in (first, second, out):
        agent = world.agent()
        agent.graph.invoke(decide(given), saved)
        assert len(world.paid) == (2 if given is first else 3)
    assert sorted(world.paid[1:]) == [5, amount]
    assert agent.told == ["paid 5 to shop", f"paid {amount} to shop", "2"]


def test_a_denial_of_one_is_not_the_denial_of_its_equal(world: World) -> None:
    out = world.agent([PAY, PAY]).run()
    verdicts = dict[str, Any]()
    for one, verdict in zip(out["__interrupt__"], ("deny", "approve"), strict=True):
        verdicts |= cast("Any", decide({"__interrupt__": [one]}, verdict).resume)
    agent = world.agent()
    agent.run(Command(resume=verdicts))
    assert (world.paid, sorted("paid 5" in text for text in agent.told)) == ([5], [False, True])


def test_one_id_for_two_tools_runs_both(world: World) -> None:
    out = world.agent([PAY, ADD]).run()
    assert world.paid == [1]
    agent = world.agent()
    agent.run(decide(out))
    assert (world.paid, agent.told) == ([1, 5], ["paid 5 to shop", "2"])


def test_one_node_for_all_runs_different_calls_and_tells_of_equal_ones(world: World) -> None:
    agent = in_one_node(world, ADD, OTHER, PAY, PAY)
    agent.graph.invoke({"messages": "Go."}, thread())
    assert (sorted(world.paid), agent.told[:2]) == ([1, 2], ["2", "3"])
    for message in agent.model.told[2:]:
        assert message.status == "error"
        assert message.content == (
            "same_calls: nothing was run, because this message makes the same call several times with one id, and they "
            "cannot be told apart. Make it once in a message."
        )


def test_one_node_for_all_asks_for_different_calls_one_after_the_other(world: World) -> None:
    agent = in_one_node(world, PAY, call("pay", amount=6))
    out = agent.graph.invoke({"messages": "Go."}, thread(1))
    for _ in range(2):
        out = agent.graph.invoke(decide(out), thread(1))
    assert (sorted(world.paid), agent.told) == ([5, 6], ["paid 5 to shop", "paid 6 to shop"])
