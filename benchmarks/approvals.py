"""Counts the calls that run when one saved approval is resumed twice, or edited: in toolwire and three known SDKs.

Run: make bench-approvals. No network; the models are those of the SDKs' own test kits, or fakes of a few lines.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

Trial = Callable[[list[int], bool], Awaitable[None]]
"""Suspends a call of `pay(5)`, approves it and resumes twice, or once with 5 edited to 5000 in the saved state."""


async def ours(paid: list[int], is_edited: bool) -> None:
    """A portable form, the only state that leaves the process."""
    from toolwire import Session, ToolSpec

    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    reply = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}],
    }
    tool = ToolSpec.from_function(pay, permission="confirm")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'runs.db'}"
        turn = await Session([tool], protocol="openai", store=url).turn(reply)
        assert turn.suspended is not None
        decisions = [{"request_id": turn.suspended.pending[0].id, "verdict": "approve"}]
        saved = _edited(turn.suspended.to_json(), is_edited)
        for _ in range(1 if is_edited else 2):
            await Session([tool], protocol="openai", store=url).resume(saved, decisions)


async def with_pydantic_ai(paid: list[int], is_edited: bool) -> None:
    """`DeferredToolRequests`: the saved state is the message history."""
    from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pay", {"amount": 5}, tool_call_id="c1")])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(model), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    first = await agent.run("pay")
    assert isinstance(first.output, DeferredToolRequests)
    saved = _edited(first.all_messages_json().decode(), is_edited)
    for _ in range(1 if is_edited else 2):
        await agent.run(
            message_history=ModelMessagesTypeAdapter.validate_json(saved),
            deferred_tool_results=DeferredToolResults(approvals={"c1": True}),
        )


async def with_openai_agents(paid: list[int], is_edited: bool, *, has_fingerprint: bool = True) -> None:
    """`RunState`: the saved state is its JSON, which holds a fingerprint of each call, made without a key."""
    os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
    from agents import Agent, Model, ModelResponse, Runner, RunState, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Fake(Model):
        async def get_response(self, _: Any, input: Any, *__: Any, **___: Any) -> ModelResponse:
            is_first = isinstance(input, str) or not any(item.get("type") == "function_call_output" for item in input)
            call = ResponseFunctionToolCall(
                type="function_call", call_id="c1", name="pay", arguments='{"amount": 5}', id="f1"
            )
            said = ResponseOutputText(type="output_text", text="done", annotations=[])
            message = ResponseOutputMessage(
                id="m1", type="message", role="assistant", status="completed", content=[said]
            )
            return ModelResponse(output=[call if is_first else message], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    @function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    agent = Agent(name="payer", model=Fake(), tools=[pay])
    first = await Runner.run(agent, "pay")
    saved = _edited(first.to_state().to_string(), is_edited)
    if not has_fingerprint:
        document = json.loads(saved)
        saved = json.dumps({**document, "context": {**document["context"], "tool_invocations": {}}})
    for _ in range(1 if is_edited else 2):
        state = await RunState.from_string(agent, saved)
        for waiting in state.get_interruptions():
            state.approve(waiting)
        await Runner.run(agent, state)


class Payment(TypedDict):
    """The state of the graph."""

    amount: int


async def with_langgraph(paid: list[int], is_edited: bool) -> None:
    """`interrupt` and a checkpointer: the saved state is the checkpoint, resumed from its own config."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Command, interrupt

    def pay(state: Payment) -> Payment:
        if interrupt({"tool": "pay", "amount": state["amount"]}) == "approve":
            paid.append(state["amount"])
        return state

    graph = StateGraph(Payment)
    graph.add_node("pay", pay)
    graph.add_edge(START, "pay")
    graph.add_edge("pay", END)
    compiled = graph.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    compiled.invoke({"amount": 5}, thread)
    if is_edited:
        compiled.update_state(thread, json.loads(_edited(json.dumps({"amount": 5}), True)), as_node=START)
        saved = thread
    else:
        saved = compiled.get_state(thread).config
    for _ in range(1 if is_edited else 2):
        compiled.invoke(Command(resume="approve"), saved)


TRIALS: dict[str, tuple[str, Trial]] = {
    "toolwire": ("toolwire", ours),
    "pydantic-ai": ("pydantic-ai-slim", with_pydantic_ai),
    "openai-agents": ("openai-agents", with_openai_agents),
    "openai-agents, the fingerprint taken out": (
        "openai-agents",
        partial(with_openai_agents, has_fingerprint=False),
    ),
    "LangGraph": ("langgraph", with_langgraph),
}


def _edited(saved: str, is_edited: bool) -> str:
    if not is_edited:
        return saved
    # As text, since saved state is usually found in a table or a message.
    changed = saved
    for before, after in (('"amount":5', '"amount":5000'), ('"amount": 5', '"amount": 5000')):
        changed = changed.replace(before, after)
        changed = changed.replace(before.replace('"', '\\"'), after.replace('"', '\\"'))
    assert changed != saved
    return changed


def _refused(trial: Trial, paid: list[int], is_edited: bool) -> str:
    """The reason of the refusal; empty if it was not refused."""
    try:
        asyncio.run(trial(paid, is_edited))
    except Exception as error:
        return f" ({type(error).__name__}: {str(error).splitlines()[0]})"
    return ""


def main() -> int:
    """Prints the payments of each; exits 1 unless toolwire pays once, and nothing for an edited form."""
    logging.disable(logging.CRITICAL)
    found: dict[str, tuple[list[int], list[int]]] = {}
    for name, (package, trial) in TRIALS.items():
        twice, edited = list[int](), list[int]()
        refused = [_refused(trial, paid, is_edited) for paid, is_edited in ((twice, False), (edited, True))]
        found[name] = (twice, edited)
        print(
            f"{name} ({version(package)}): resumed twice, paid {twice}{refused[0]}; "
            f"5 edited to 5000, paid {edited}{refused[1]}"
        )
    return 0 if found["toolwire"] == ([5], []) else 1


if __name__ == "__main__":
    sys.exit(main())
