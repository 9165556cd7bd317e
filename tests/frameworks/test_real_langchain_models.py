"""LangChain asks its OpenAI model, over a server on loopback, with toolwire's tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import SecretStr

from tests.frameworks.test_real_models import openai_server as openai_server
from tests.frameworks.test_real_models import reply
from tests.protocols.providers import Provider
from tests.session.till import Till
from toolwire import Session, Store, ToolSpec
from toolwire.frameworks.langchain import langchain_tools


async def ask(graph: Any, given: Any, *, is_stream: bool) -> Any:
    """Returns the state of a thread after a run, whose model streams or not."""
    thread: Any = {"configurable": {"thread_id": "t-1"}}
    if not is_stream:
        await graph.ainvoke(given, thread)
    else:
        async for _ in graph.astream(given, thread, stream_mode="messages"):
            pass
    return await graph.aget_state(thread)


@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_approved_call_is_told_to_the_provider(
    is_stream: bool, openai_server: Provider, opened: Callable[[], Store]
) -> None:
    till, function = Till(), {"name": "pay", "arguments": '{"amount": 5, "to": null}'}
    # The server gives one id to both calls.
    made = {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    openai_server.script += [reply(one, is_stream=is_stream) for one in (made, made, {"content": "done"})]
    pay = ToolSpec.from_function(till.pay, permission="confirm")
    model = ChatOpenAI(model="m", base_url=openai_server.url, api_key=SecretStr("k"), max_retries=0)
    graph = create_agent(model, langchain_tools([pay], store=opened()), checkpointer=InMemorySaver())
    state, given = await ask(graph, {"messages": "Go."}, is_stream=is_stream), []
    while state.interrupts:
        [request] = state.interrupts[0].value["requests"]
        given.append(request["id"])
        decision = {"request_id": request["id"], "verdict": "approve"}
        state = await ask(graph, Command(resume=[decision]), is_stream=is_stream)
    assert (len(set(given)), till.paid) == (2, [5, 5])
    assert [one["content"] for one in openai_server.requests[2]["messages"] if one["role"] == "tool"] == [
        "paid 5 to shop",
        "paid 5 to shop",
    ]
    # The schema is toolwire's own, as it is.
    [own] = Session([pay], protocol="openai").request_tools
    [offered] = openai_server.requests[0]["tools"]
    assert {**offered["function"], "strict": True} == own["function"]
