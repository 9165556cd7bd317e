"""pydantic-ai asks its OpenAI model, over a server on loopback, with toolwire's tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.protocols.providers import Provider, provider
from tests.session.till import Till
from toolwire import Store, ToolSpec
from toolwire.frameworks.pydantic_ai import ToolwireToolset


@pytest.fixture
def openai_server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def reply(message: dict[str, Any], *, is_stream: bool) -> Any:
    """Returns an answer of the server, or its events."""
    reason = "tool_calls" if "tool_calls" in message else "stop"
    base = {"id": "chatcmpl-1", "created": 1, "model": "m"}
    if not is_stream:
        choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None, **message}}
        return {**base, "object": "chat.completion", "choices": [choice]}
    delta = {"role": "assistant", **message}
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": place, **one} for place, one in enumerate(delta["tool_calls"])]
    chunk = {**base, "object": "chat.completion.chunk"}
    return [
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        "[DONE]",
    ]


async def ask(agent: Agent[None, Any], *, is_stream: bool, **given: Any) -> Any:
    """Returns the result of a run, streaming or not."""
    if not is_stream:
        return await agent.run(**given)
    async with agent.run_stream(**given) as streamed:
        await streamed.get_output()
        return streamed


@pytest.mark.parametrize("is_stream", [False, True])
async def test_an_approved_call_is_told_to_the_provider(
    is_stream: bool, openai_server: Provider, opened: Callable[[], Store]
) -> None:
    till, function = Till(), {"name": "pay", "arguments": '{"amount": 5, "to": null}'}
    made = {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    openai_server.script += [reply(made, is_stream=is_stream), reply({"content": "done"}, is_stream=is_stream)]
    async with AsyncOpenAI(base_url=openai_server.url, api_key="k", max_retries=0) as client:
        toolset = ToolwireToolset([ToolSpec.from_function(till.pay, permission="confirm")], store=opened())
        model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
        agent: Agent[None, Any] = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
        first = await ask(agent, is_stream=is_stream, user_prompt="Go.")
        asked = await first.get_output() if is_stream else first.output
        results = asked.build_results(approve_all=True, metadata=asked.metadata)
        given = {"message_history": first.all_messages(), "deferred_tool_results": results}
        await ask(agent, is_stream=is_stream, **given)
    [offered] = openai_server.requests[0]["tools"]
    assert (offered["function"]["name"], offered["function"]["strict"]) == ("pay", True)
    assert openai_server.requests[1]["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "call_1",
        "content": "paid 5 to shop",
    }
    assert till.paid == [5]
