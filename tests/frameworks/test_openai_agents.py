"""toolwire's tools inside an agent of the OpenAI Agents SDK: what waits, goes on in another process, and runs once."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from agents import (
    Agent,
    Model,
    ModelBehaviorError,
    ModelResponse,
    RunConfig,
    Runner,
    RunState,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from tests.patience import until
from toolwire import CallContext, ConfigurationError, Decision, Store, ToolRegistry, ToolSpec
from toolwire.frameworks.openai_agents import function_tools

set_tracing_disabled(True)
Call = tuple[str, str, dict[str, Any]]


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class Scripted(Model):
    """A model that makes these calls, the calls of one list in one reply, and then says that it is done."""

    def __init__(self, world: World, calls: Iterable[list[Call]]) -> None:
        self._world, self._left = world, list(calls)

    async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
        _, items, _, tools, *_ = given or options.values()
        self._world.offered.append({tool.name for tool in tools})
        self._world.told = [item["output"] for item in items if item.get("type") == "function_call_output"]
        output: list[Any] = [
            ResponseFunctionToolCall(call_id=call_id, name=name, arguments=_text(arguments), type="function_call")
            for call_id, name, arguments in (self._left.pop(0) if self._left else ())
        ]
        if not output:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            said = ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])
            output.append(said)
        return ModelResponse(output=output, usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@dataclass
class World:
    """The tools, what they did, and what the model was offered and told."""

    store: Store
    paid: list[int] = field(default_factory=list[int])
    offered: list[set[str]] = field(default_factory=list[set[str]])
    told: list[Any] = field(default_factory=list[Any])

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

    def agent(self, *replies: list[Call], tools: Any = None, **options: Any) -> Agent[Any]:
        found = function_tools(tools or self.registry(), store=self.store, conversation="c-17", **options)
        return Agent("clerk", tools=[*found], model=Scripted(self, replies))


@pytest.fixture
def world(opened: Callable[..., Store]) -> World:
    return World(opened())


PAY: Call = ("call_1", "pay", {"amount": 5, "to": None})


async def ask(world: World, **options: Any) -> str:
    """Runs until the payment waits, and returns the saved state."""
    result = await Runner.run(world.agent([PAY], **options), "Go.")
    assert [item.raw_item.call_id for item in result.interruptions] == ["call_1"]
    return result.to_state().to_string()


async def approved(agent: Agent[Any], saved: str, **options: Any) -> RunState[Any]:
    """Returns a saved state in which all that waits is approved."""
    state = await RunState.from_string(agent, saved)
    for item in state.get_interruptions():
        state.approve(item, **options)
    return state


async def go_on(world: World, saved: str, agent: Agent[Any] | None = None, **options: Any) -> Any:
    """Approves what waits in a saved state, and goes on in other objects, as another process has them."""
    agent = agent or world.agent()
    return await Runner.run(agent, await approved(agent, saved, **options))


async def test_a_call_runs_and_is_told(world: World) -> None:
    result = await Runner.run(world.agent([("call_1", "add", {"a": 1, "b": 2})]), "Go.")
    assert (result.final_output, world.told, world.offered[0]) == ("done", ["3"], {"pay", "add"})


async def test_all_mistakes_are_told_at_once(world: World) -> None:
    await Runner.run(world.agent([("call_1", "add", {"a": "x", "b": "y"})]), "Go.")
    assert str(world.told[0]).count("integer") >= 2
    assert world.paid == []


UNREADABLE = {
    '{"a": 1, ': "The JSON ends before it is closed: it was cut off, so it was not run. Make it shorter.",
    '{"a": 1, "a": 2, "b": 3}': "The key 'a' is given twice. Write it once.",
    "[1]": "The arguments are a list. Write one JSON object with the parameters' names as keys.",
}


@pytest.mark.parametrize("text", UNREADABLE)
async def test_arguments_that_cannot_be_read_are_told_in_toolwires_words(text: str, world: World) -> None:
    result = await Runner.run(world.agent([("call_1", "add", cast("Any", text))]), "Go.")
    if result.interruptions:
        # The SDK has its application decide on arguments that it cannot read.
        await go_on(world, result.to_state().to_string())
    assert (world.paid, world.told[0].splitlines()[0]) == ([], UNREADABLE[text])


async def test_what_waits_goes_on_once_however_often_it_is_resumed(world: World) -> None:
    saved = await ask(world)
    [request] = world.store.pending()
    assert (request.tool, dict(request.arguments)) == ("pay", {"amount": 5, "to": "shop"})
    for _ in range(2):
        await go_on(world, saved)
        assert world.told == ["paid 5 to shop"]
    assert world.paid == [5]
    [found] = world.store.requests(request.run_id)
    assert found.decision is not None
    assert found.decision.by.channel == "openai-agents"


async def test_the_frameworks_own_tool_pays_twice(world: World) -> None:
    """The control."""
    own = function_tool(needs_approval=True)(world.pay)

    def agent(*replies: list[Call]) -> Agent[Any]:
        return Agent("clerk", tools=[own], model=Scripted(world, replies))

    result = await Runner.run(agent([("call_1", "pay", {"amount": 5, "to": "shop"})]), "Go.")
    for _ in range(2):
        await go_on(world, result.to_state().to_string(), agent())
    assert world.paid == [5, 5]


async def test_a_call_asks_once_whether_it_is_on_record(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = Store.has_run, list[str]()
    monkeypatch.setattr(Store, "has_run", lambda store, run_id: (asked.append(run_id), real(store, run_id))[1])
    await Runner.run(world.agent([("call_1", "add", {"a": 1, "b": 2})]), "Go.")
    assert (world.told, len(asked)) == (["3"], 1)


async def test_always_approve_decides_nothing(world: World) -> None:
    saved = await ask(world)
    second = world.agent([("call_2", "pay", {"amount": 6, "to": None})])
    await go_on(world, saved, second, always_approve=True)
    assert world.paid == [5]
    assert world.told[0] == "paid 5 to shop"
    assert "approval_required" in world.told[1]
    assert world.store.pending() == []


async def test_a_refusal_runs_nothing(world: World) -> None:
    saved = await ask(world)
    agent = world.agent()
    state = await RunState.from_string(agent, saved)
    state.reject(state.get_interruptions()[0])
    await Runner.run(agent, state)
    assert world.paid == []


async def test_a_decision_elsewhere_counts(world: World) -> None:
    saved = await ask(world)
    world.store.decide(world.store.pending()[0].id, Decision(verdict="deny", reason="not today"))
    await go_on(world, saved)
    assert world.paid == []
    assert "not today" in world.told[0]


async def test_a_tool_that_changed_after_it_was_shown_does_not_run(world: World) -> None:
    saved = await ask(world)
    registry = ToolRegistry()

    def pay(amount: int, to: str = "thief") -> str:
        """Pays, but otherwise."""
        world.paid.append(amount)
        return to

    registry.register(pay, permission="confirm")
    await go_on(world, saved, world.agent(tools=registry))
    assert world.paid == []
    assert "changed" in world.told[0]


@pytest.mark.parametrize("is_asked", [False, True])
async def test_a_payment_of_a_program_needs_an_approver(is_asked: bool, world: World) -> None:
    async def approve(_: Any) -> Decision:
        return Decision(verdict="approve")

    options: dict[str, Any] = {"approver": approve} if is_asked else {}
    code: Call = ("call_1", "code_execution", {"code": "pay(amount=1)"})
    await Runner.run(world.agent([code], programs=True, **options), "Go.")
    assert world.paid == ([1] if is_asked else [])
    assert ("approval_required" in world.told[0]) is not is_asked
    assert world.store.pending() == []


async def test_one_id_in_two_runs_is_two_calls(world: World) -> None:
    first = await Runner.run(world.agent([("call_1", "add", {"a": 1, "b": 1})]), "Go.")
    again = [*first.to_input_list()[-1:], {"role": "user", "content": "Again."}]
    await Runner.run(world.agent([("call_1", "add", {"a": 1, "b": 1})]), again)
    assert world.paid == [1, 1]
    # The run that is begun once more, such as by a queue that lost its end, runs nothing again.
    await Runner.run(world.agent([("call_1", "add", {"a": 1, "b": 1})]), again)
    assert world.paid == [1, 1]


async def test_a_tool_that_is_disabled_is_not_offered(world: World) -> None:
    registry = world.registry()
    agent = world.agent(tools=registry)
    registry.disable("add", "not today")
    await Runner.run(agent, "Go.")
    assert world.offered == [{"pay"}]


@pytest.mark.parametrize("how", ["disabled", "denied"])
async def test_a_tool_that_went_away_while_its_call_waits_is_told_if_the_run_says_so(how: str, world: World) -> None:
    saved, registry = await ask(world), world.registry()
    if how == "disabled":
        registry.disable("pay", "not today")
    agent = world.agent(tools=registry, permissions={"pay": "deny"} if how == "denied" else None)
    # The control: the SDK's default ends the run.
    with pytest.raises(ModelBehaviorError, match="pay not found"):
        await go_on(world, saved, agent)
    tell = RunConfig(tool_not_found_behavior="return_error_to_model")
    result = await Runner.run(agent, await approved(agent, saved), run_config=tell)
    assert (result.final_output, world.told, world.paid) == ("done", ["Tool 'pay' not found."], [])


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
    replies: list[list[Call]] = [[("1", "read_page", {}), ("2", "read_mail", {})], [("3", "send", {"text": "a"})]]
    result = await Runner.run(world.agent(*replies, tools=tools), "Go.")
    assert [item.raw_item.call_id for item in result.interruptions] == ["3"]
    assert world.paid == []


async def test_an_image_stays_an_image(world: World) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    assert base64.b64decode(pixel)

    def draw() -> Any:
        """Draws."""
        source = {"type": "base64", "media_type": "image/png", "data": pixel}
        return [{"type": "text", "text": "here"}, {"type": "image", "source": source}]

    await Runner.run(world.agent([("call_1", "draw", {})], tools=[draw]), "Go.")
    text, image = world.told[0]
    assert (text["text"], image["type"], image["image_url"]) == (
        "here",
        "input_image",
        f"data:image/png;base64,{pixel}",
    )


async def test_a_cancelled_run_interrupts_its_turn(world: World) -> None:
    begun, seen = asyncio.Event(), list[str]()

    async def wait() -> None:
        """Waits."""
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    running = asyncio.ensure_future(Runner.run(world.agent([("call_1", "wait", {})], tools=[wait]), "Go."))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["cancelled"]
    # The SDK does not wait for it.
    until(lambda: [(run.status, run.is_held) for run in world.store.runs()] == [("finished", False)])


CONVERSATION_BUSY = (
    "conversation_busy: nothing was run, because another call of this conversation is at work. Make this call again "
    "when that one has ended."
)
RUN_BUSY = "run_busy: this call is at work elsewhere, and its result goes there. Do not make it again: tell the user."
BUSY = [(("call_2", "add", {"a": 1, "b": 2}), CONVERSATION_BUSY), (("call_1", "wait", {}), RUN_BUSY)]


@pytest.mark.parametrize(("made", "text"), BUSY)
async def test_a_conversation_at_work_elsewhere_is_told_to_the_model(
    made: Call, text: str, world: World, other: Store
) -> None:
    begun, ends = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Waits."""
        begun.set()
        await ends.wait()
        return "waited"

    running = asyncio.ensure_future(Runner.run(world.agent([("call_1", "wait", {})], tools=[wait]), "Go."))
    await begun.wait()
    second = World(other)
    await Runner.run(second.agent([made], tools=[wait, second.add]), "Go.")
    assert (second.paid, second.told) == ([], [text])
    ends.set()
    await running
    assert world.told == ["waited"]


async def test_a_tool_that_asks_says_that_nobody_can_be_asked(world: World) -> None:
    async def order(context: CallContext) -> str:
        """Orders."""
        return await context.ask("Which size?")

    await Runner.run(world.agent([("call_1", "order", {})], tools=[order]), "Go.")
    assert "approval_required" in world.told[0]
    assert world.store.pending() == []


@pytest.mark.parametrize("option", ["protocol", "finish"])
def test_what_the_framework_has_itself_is_refused(option: str, world: World) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}='x': leave it out"):
        world.agent(**{option: "x"})


def test_it_needs_a_store() -> None:
    with pytest.raises(ConfigurationError, match="give a store"):
        function_tools([], store=None, conversation="c-17")
