"""toolwire's tools inside a pydantic-ai agent: what waits, goes on in another process, and runs once."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolwire import CallContext, ConfigurationError, Store, ToolRegistry, ToolSpec
from toolwire.frameworks.pydantic_ai import ToolwireToolset


@dataclass
class World:
    """The tools, what they did, and what the model was offered and told."""

    store: Store
    paid: list[int] = field(default_factory=list[int])
    offered: list[set[str]] = field(default_factory=list[set[str]])
    told: list[ToolReturnPart] = field(default_factory=list[ToolReturnPart])

    def registry(self) -> ToolRegistry:
        registry = ToolRegistry()
        registry.register(self.pay, permission="confirm")
        registry.register(self.add)
        return registry

    def pay(self, amount: int, to: str = "shop") -> str:
        """Pays."""
        self.paid.append(amount)
        return f"paid {amount} to {to}"

    def add(self, a: int, b: int) -> int:
        """Adds."""
        self.paid.append(a)
        return a + b

    def agent(
        self, calls: Iterable[ToolCallPart], tools: Any = None, retries: int = 1, **options: Any
    ) -> Agent[Any, Any]:
        """Returns an agent whose model makes these calls, one a reply, and then says that it is done."""
        left = list(calls)

        def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            self.offered.append({tool.name for tool in info.function_tools})
            self.told += [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
            return ModelResponse(parts=[left.pop(0) if left else TextPart("done")])

        toolset = ToolwireToolset(tools or self.registry(), store=self.store, **options)
        output: Any = [str, DeferredToolRequests]
        return Agent(FunctionModel(reply), toolsets=[toolset], output_type=output, retries=retries)


@pytest.fixture
def world(opened: Callable[..., Store]) -> World:
    return World(opened())


def call(name: str, call_id: str = "call_1", **arguments: Any) -> ToolCallPart:
    return ToolCallPart(name, arguments, tool_call_id=call_id)


async def ask(world: World, made: ToolCallPart) -> tuple[DeferredToolRequests, list[ModelMessage]]:
    """Returns what waits, and the history as it was saved and loaded."""
    result = await world.agent([made]).run("Go.", conversation_id="c-1")
    assert isinstance(result.output, DeferredToolRequests)
    return result.output, ModelMessagesTypeAdapter.validate_json(result.all_messages_json())


def approved(asked: DeferredToolRequests, approval: Any = True) -> DeferredToolResults:
    return asked.build_results(approvals={"call_1": approval}, metadata=asked.metadata)


async def test_a_call_runs_and_is_told(world: World) -> None:
    result = await world.agent([call("add", a=1, b=2)]).run("Go.")
    assert (result.output, world.told[0].content, world.offered[0]) == ("done", "3", {"pay", "add"})


async def test_all_mistakes_are_told_at_once(world: World) -> None:
    await world.agent([call("add", a="x", b="y")]).run("Go.")
    text = str(world.told[0].content)
    assert "a" in text
    assert text.count("integer") >= 2
    assert (world.told[0].outcome, world.paid) == ("failed", [])


async def test_arguments_that_are_not_json_are_told_as_often_as_the_agent_says(world: World) -> None:
    broken = [ToolCallPart("add", '{"a": 1, ', tool_call_id=f"call_{number}") for number in range(3)]
    agent = world.agent([*broken, call("add", a=1, b=2)], retries=3)
    assert (await agent.run("Go.")).output == "done"
    assert world.paid == [1]


async def test_what_waits_goes_on_once_however_often_it_is_resumed(world: World) -> None:
    asked, saved = await ask(world, call("pay", amount=5))
    [request] = asked.metadata["call_1"]["requests"]
    assert (request["tool"], request["arguments"]) == ("pay", {"amount": 5, "to": "shop"})
    assert "amount" in request["text"]
    assert world.paid == []
    for _ in range(2):
        await world.agent([]).run(message_history=saved, deferred_tool_results=approved(asked))
    assert world.paid == [5]
    assert [part.content for part in world.told] == ["paid 5 to shop"] * 2


async def test_an_edit_runs_as_it_was_written(world: World) -> None:
    asked, saved = await ask(world, call("pay", amount=5))
    results = approved(asked, ToolApproved(override_args={"amount": 3, "to": "inn"}))
    await world.agent([]).run(message_history=saved, deferred_tool_results=results)
    assert (world.paid, world.told[0].content) == ([3], "paid 3 to inn")


async def test_an_approval_without_the_requests_counts_for_the_first_alone(world: World) -> None:
    _, saved = await ask(world, call("pay", amount=5))
    bare = DeferredToolResults(approvals={"call_1": True})
    await world.agent([]).run(message_history=saved, deferred_tool_results=bare)
    assert world.paid == [5]


async def test_a_program_asks_for_each_payment(world: World) -> None:
    code = "pay(amount=1)\npay(amount=2)\n"
    registry = world.registry()
    made, options = call("code_execution", code=code), {"programs": True}
    first = await world.agent([made], registry, **options).run("Go.", conversation_id="c-1")
    saved = first.all_messages()
    second = await world.agent([], registry, **options).run(
        message_history=saved, deferred_tool_results=approved(first.output)
    )
    assert isinstance(second.output, DeferredToolRequests)
    assert world.paid == [1]
    # The approval of the first payment, used again, does not approve the second.
    for results in (approved(first.output), DeferredToolResults(approvals={"call_1": True})):
        again = await world.agent([], registry, **options).run(message_history=saved, deferred_tool_results=results)
        assert again.output.metadata["call_1"]["requests"][0]["arguments"]["amount"] == 2
        assert world.paid == [1]
    await world.agent([], registry, **options).run(
        message_history=second.all_messages(), deferred_tool_results=approved(second.output)
    )
    assert world.paid == [1, 2]


async def test_a_decision_of_an_unknown_request_is_the_frameworks_error(world: World) -> None:
    asked, saved = await ask(world, call("pay", amount=5))
    wrong = {"call_1": {"decisions": [{"request_id": "a_none", "verdict": "approve"}]}}
    with pytest.raises(UserError, match="a_none"):
        await world.agent([]).run(
            message_history=saved, deferred_tool_results=asked.build_results(approve_all=True, metadata=wrong)
        )
    assert world.paid == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "it must be a list of decisions"),
        (None, "it must be a list of decisions"),
        (True, "it must be a list of decisions"),
        ("yes", "it is not JSON: line 1, column 1"),
        ([7], "a decision must be an object"),
        ([{"verdict": "approve"}], "request_id"),
    ],
)
async def test_an_approval_beside_decisions_that_are_none_approves_nothing(given: Any, why: str, world: World) -> None:
    asked, saved = await ask(world, call("pay", amount=5))
    [request] = asked.metadata["call_1"]["requests"]
    for metadata in ({"decisions": given}, {"requests": [request], "decisions": given}):
        results = DeferredToolResults(approvals={"call_1": True}, metadata={"call_1": metadata})
        with pytest.raises(UserError, match=f"(?s){re.escape(why)}.*Write .*{request['id']}"):
            await world.agent([]).run(message_history=saved, deferred_tool_results=results)
    assert world.paid == []
    # The control: the approval without decisions.
    await world.agent([]).run(message_history=saved, deferred_tool_results=approved(asked))
    assert world.paid == [5]


@pytest.mark.parametrize("given", [{"requests": None}, {"requests": "a_1"}, {"requests": [7]}, {"requests": [{}]}, 5])
async def test_requests_that_are_none_approve_nothing(given: Any, world: World) -> None:
    asked, saved = await ask(world, call("pay", amount=5))
    wrong = DeferredToolResults(approvals={"call_1": True}, metadata={"call_1": given})
    with pytest.raises(UserError, match=r"write metadata=asked\.metadata"):
        await world.agent([]).run(message_history=saved, deferred_tool_results=wrong)
    assert world.paid == []
    await world.agent([]).run(message_history=saved, deferred_tool_results=approved(asked))
    assert world.paid == [5]


async def test_an_edit_beside_decisions_is_refused(world: World) -> None:
    asked, saved = await ask(world, call("pay", amount=5))
    decisions = [{"request_id": asked.metadata["call_1"]["requests"][0]["id"], "verdict": "approve"}]
    results = DeferredToolResults(
        approvals={"call_1": ToolApproved(override_args={"amount": 3})}, metadata={"call_1": {"decisions": decisions}}
    )
    with pytest.raises(UserError, match="override_args and 'decisions' decide on the same call"):
        await world.agent([]).run(message_history=saved, deferred_tool_results=results)
    assert world.paid == []


async def test_decisions_alone_count_beside_the_requests(world: World) -> None:
    async def pay_both(context: CallContext) -> str:
        """Pays twice."""
        await asyncio.gather(context.call("pay", amount=1), context.call("pay", amount=2))
        return "paid both"

    def agent(*calls: ToolCallPart) -> Agent[Any, Any]:
        registry = world.registry()
        registry.register(pay_both)
        return world.agent(calls, registry)

    first = await agent(call("pay_both")).run("Go.", conversation_id="c-1")
    shown = first.output.metadata["call_1"]["requests"]
    one, two = sorted(shown, key=lambda request: request["arguments"]["amount"])
    given = {"requests": shown, "decisions": [{"request_id": one["id"], "verdict": "approve"}]}
    results = first.output.build_results(approve_all=True, metadata={"call_1": given})
    second = await agent().run(message_history=first.all_messages(), deferred_tool_results=results)
    assert [request["id"] for request in second.output.metadata["call_1"]["requests"]] == [two["id"]]
    assert 2 not in world.paid


async def test_one_id_for_two_calls_runs_both(world: World) -> None:
    first = await world.agent([call("add", a=1, b=1)]).run("Go.", conversation_id="c-1")
    # The history is shortened: neither the first call nor its result is there.
    await world.agent([call("add", a=1, b=1)]).run("Again.", message_history=first.all_messages()[-1:])
    assert world.paid == [1, 1]
    assert [part.content for part in world.told] == ["2", "2"]


async def test_a_tool_that_is_disabled_is_not_offered(world: World) -> None:
    registry = world.registry()
    registry.disable("add", "not today")
    await world.agent([], registry).run("Go.")
    assert world.offered == [{"pay"}]


async def test_a_denied_call_is_withdrawn(world: World) -> None:
    await ask(world, call("pay", amount=5))
    toolset = ToolwireToolset(world.registry(), store=world.store)
    assert [toolset.withdraw("call_1", "c-1") for _ in range(2)] == [1, 0]
    assert world.store.runs()[0].status == "stopped"
    assert world.store.pending() == []


async def test_an_image_stays_an_image(world: World) -> None:
    pixel = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )

    def draw() -> Any:
        """Draws."""
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(pixel).decode()}
        return [{"type": "text", "text": "here"}, {"type": "image", "source": source}]

    await world.agent([call("draw")], [draw]).run("Go.")
    text, image = cast("list[Any]", world.told[0].content)
    assert (text, isinstance(image, BinaryContent), image.data) == ("here", True, pixel)


async def test_private_and_untrusted_data_ask_before_they_are_sent(world: World) -> None:
    def read_page() -> str:
        """Reads a page of strangers."""
        return "page"

    def read_mail() -> str:
        """Reads the mail."""
        return "mail"

    def send(text: str) -> str:
        """Sends."""
        world.paid.append(1)
        return text

    tools = [
        ToolSpec.from_function(read_page, labels=["untrusted"], effects=["read"]),
        ToolSpec.from_function(read_mail, labels=["private"], effects=["read"]),
        ToolSpec.from_function(send, effects=["send"]),
    ]
    calls = [call("read_page", "1"), call("read_mail", "2"), call("send", "3", text="a")]
    result = await world.agent(calls, tools).run("Go.")
    assert isinstance(result.output, DeferredToolRequests)
    assert world.paid == []


async def test_a_cancelled_run_stops_its_tool(world: World) -> None:
    begun, seen = asyncio.Event(), list[str]()

    async def wait() -> None:
        """Waits."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    running = asyncio.ensure_future(world.agent([call("wait")], [wait]).run("Go."))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["cancelled"]
    assert not world.store.runs()[0].is_held


async def test_a_conversation_at_work_elsewhere_is_told_to_the_model(world: World, other: Store) -> None:
    begun, ends = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Waits."""
        begun.set()
        await ends.wait()
        return "waited"

    second = World(other)
    running = asyncio.ensure_future(world.agent([call("wait")], [wait]).run("Go.", conversation_id="c-1"))
    await begun.wait()
    await second.agent([call("add", a=1, b=2)]).run("Go.", conversation_id="c-1")
    assert (second.paid, second.told[0].outcome) == ([], "failed")
    assert second.told[0].content == (
        "conversation_busy: nothing was run, because another call of this conversation is at work. Make this call "
        "again when that one has ended."
    )
    ends.set()
    await running
    assert world.told[0].content == "waited"


async def test_questions_are_answered_in_the_metadata(world: World) -> None:
    async def order(context: CallContext) -> str:
        """Orders."""
        return await context.ask("Which size?")

    first = await world.agent([call("order")], [order]).run("Go.", conversation_id="c-1")
    [asked] = first.output.metadata["call_1"]["requests"]
    assert (asked["kind"], "Which size?" in asked["text"]) == ("question", True)
    given = {"call_1": {"decisions": [{"request_id": asked["id"], "verdict": "answer", "answer": "small"}]}}
    results = first.output.build_results(approve_all=True, metadata=given)
    await world.agent([], [order]).run(message_history=first.all_messages(), deferred_tool_results=results)
    assert world.told[0].content == "small"


@pytest.mark.parametrize("option", ["protocol", "conversation", "finish"])
async def test_what_the_framework_has_itself_is_refused(option: str, world: World) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}='x': leave it out"):
        ToolwireToolset([], store=world.store, **{option: "x"})


def test_it_needs_a_store() -> None:
    with pytest.raises(ConfigurationError, match="give a store"):
        ToolwireToolset([], store=None)
