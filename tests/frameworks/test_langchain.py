"""toolwire's tools inside agents of LangChain: what waits, goes on in another process, and runs once."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt
from pydantic import Field

from toolwire import CallContext, ConfigurationError, Store, ToolRegistry, ToolSpec
from toolwire.frameworks.langchain import OfferedTools, langchain_tools


class Script(BaseChatModel):
    """A model that makes these calls, one message each, and then says that it is done."""

    left: list[list[dict[str, Any]]]
    told: list[ToolMessage] = Field(default_factory=list[ToolMessage])
    """What the model was told, of the last request."""
    offered: list[str] = Field(default_factory=list[str])
    """The names of the tools in the last request."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        self.offered = [one.name for one in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:
        self.told = [message for message in messages if isinstance(message, ToolMessage)]
        made: Any = self.left.pop(0) if self.left else []
        said = AIMessage("" if made else "done", tool_calls=made)
        return ChatResult(generations=[ChatGeneration(message=said)])


@dataclass
class World:
    """The tools, what they did, and a checkpointer in a file."""

    store: Store
    saver: SqliteSaver
    paid: list[int] = field(default_factory=list[int])

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

    def agent(self, *replies: Any, tools: Any = None, saver: Any = None, **options: Any) -> Agent:
        """Returns an agent whose model makes these calls: a call or a list of them for each reply."""
        model = Script(left=[one if isinstance(one, list) else [one] for one in replies])
        made = langchain_tools(tools or self.registry(), store=self.store, **options)
        return Agent(create_agent(model, made, checkpointer=self.saver if saver is None else saver), model)


@dataclass
class Agent:
    """An agent with its model."""

    graph: Any
    model: Script

    def run(self, given: Any = "Go.", thread: str = "t-1") -> Any:
        return self.graph.invoke(_input(given), _config(thread))

    async def arun(self, given: Any = "Go.", thread: str = "t-1") -> Any:
        return await self.graph.ainvoke(_input(given), _config(thread))

    @property
    def told(self) -> list[str]:
        return [str(message.content) for message in self.model.told]


def _input(given: Any) -> Any:
    return {"messages": given} if isinstance(given, str) else given


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.fixture
def saver(tmp_path: Any) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as found:
        yield found


@pytest.fixture
def world(opened: Callable[..., Store], saver: SqliteSaver) -> World:
    return World(opened(), saver)


def call(name: str, call_id: str = "call_1", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}


def requests(out: Any) -> list[Any]:
    """Returns the requests that wait."""
    return [request for one in out["__interrupt__"] for request in one.value["requests"]]


def decide(out: Any, verdict: str = "approve", **more: Any) -> Command[Any]:
    """Returns the resumption with a decision on each request."""
    return Command(
        resume={
            one.id: [{"request_id": request["id"], "verdict": verdict, **more} for request in one.value["requests"]]
            for one in out["__interrupt__"]
        }
    )


def test_a_call_runs_and_is_told(world: World) -> None:
    agent = world.agent(call("add", a=1, b=2))
    assert agent.run()["messages"][-1].content == "done"
    assert (agent.told, agent.model.told[0].status) == (["3"], "success")


def test_all_mistakes_are_told_at_once(world: World) -> None:
    agent = world.agent(call("add", a="x", b="y"))
    agent.run()
    assert agent.told[0].count("integer") >= 2
    assert (agent.model.told[0].status, world.paid) == ("error", [])


def test_arguments_may_have_names_that_langchain_uses(world: World) -> None:
    def name_all(config: str, run_manager: str, runtime: str, self: str) -> str:
        """Names all."""
        return config + run_manager + runtime + self

    agent = world.agent(call("name_all", config="a", run_manager="b", runtime="c", self="d"), tools=[name_all])
    agent.run()
    assert agent.told == ["abcd"]


def test_what_waits_runs_once_however_often_its_state_is_resumed(world: World) -> None:
    out = world.agent(call("pay", amount=5)).run()
    [request] = requests(out)
    assert (request["tool"], request["arguments"]) == ("pay", {"amount": 5, "to": "shop"})
    assert "amount" in request["text"]
    assert world.paid == []
    saved = world.agent().graph.get_state(_config("t-1")).config
    for _ in range(2):
        agent = world.agent()
        agent.graph.invoke(decide(out), saved)
        assert agent.told == ["paid 5 to shop"]
    assert world.paid == [5]


def test_the_frameworks_own_tool_runs_twice(world: World) -> None:
    """The control."""

    @tool
    def pay(amount: int) -> str:
        """Pays."""
        interrupt("May it?")
        world.paid.append(amount)
        return "paid"

    def agent(*made: Any) -> Any:
        return create_agent(Script(left=[[one] for one in made]), [pay], checkpointer=world.saver)

    agent(call("pay", amount=5)).invoke({"messages": "Go."}, _config("t-1"))
    saved = agent().get_state(_config("t-1")).config
    for _ in range(2):
        agent().invoke(Command(resume=True), saved)
    assert world.paid == [5, 5]


async def test_a_coroutine_waits_and_goes_on(world: World) -> None:
    agent = world.agent(call("pay", amount=5), saver=InMemorySaver())
    out = await agent.arun()
    await agent.arun(decide(out))
    assert (world.paid, agent.told) == ([5], ["paid 5 to shop"])


def test_an_edit_runs_as_it_was_written(world: World) -> None:
    out = world.agent(call("pay", amount=5)).run()
    agent = world.agent()
    agent.run(decide(out, "edit", arguments={"amount": 3, "to": "inn"}))
    assert (world.paid, agent.told) == ([3], ["paid 3 to inn"])


def test_a_denial_is_told_and_nothing_runs(world: World) -> None:
    out = world.agent(call("pay", amount=5)).run()
    agent = world.agent()
    agent.run(decide(out, "deny", reason="too much"))
    assert "too much" in agent.told[0]
    assert (world.paid, agent.model.told[0].status) == ([], "error")


def test_a_question_is_answered(world: World) -> None:
    async def order(context: CallContext) -> str:
        """Orders."""
        return await context.ask("Which size?")

    out = world.agent(call("order"), tools=[order]).run()
    assert (requests(out)[0]["kind"], "Which size?" in requests(out)[0]["text"]) == ("question", True)
    agent = world.agent(tools=[order])
    agent.run(decide(out, "answer", answer="small"))
    assert agent.told == ["small"]


def test_a_program_asks_for_each_payment(world: World) -> None:
    made = call("code_execution", code="pay(amount=1)\npay(amount=2)\n")
    first = world.agent(made, programs=True).run()
    second = world.agent(programs=True).run(decide(first))
    assert (world.paid, requests(second)[0]["arguments"]["amount"]) == ([1], 2)
    # The decision on the first payment, used again, does not approve the second.
    again = world.agent(programs=True).run(decide(first))
    assert requests(again) == requests(second)
    assert world.paid == [1]
    agent = world.agent(programs=True)
    agent.run(decide(again))
    assert (world.paid, agent.model.told[0].status) == ([1, 2], "success")


def test_calls_of_one_reply_are_decided_each(world: World) -> None:
    out = world.agent([call("pay", "1", amount=1), call("pay", "2", amount=2)]).run()
    agent = world.agent()
    agent.run(decide(out))
    assert (sorted(world.paid), agent.told) == ([1, 2], ["paid 1 to shop", "paid 2 to shop"])


WRITE = "Command(resume={}): {}. Write Command(resume=[{{'request_id': 'ASKED', 'verdict': 'approve'}}])"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ([{"request_id": "a_none", "verdict": "approve"}], "a_none"),
        ("yes", WRITE.format("'yes'", "it is not JSON: line 1, column 1")),
        (3, WRITE.format(3, "it must be a list of decisions")),
        (True, WRITE.format(True, "it must be a list of decisions")),
        ([], WRITE.format("[]", "it must be a list of decisions")),
        ([7], WRITE.format("[7]", "a decision must be an object")),
        (
            {"decisions": [{"type": "approve"}]},
            WRITE.format("{'decisions': [{'type': 'approve'}]}", "decisions: the key 'decisions' is unknown"),
        ),
    ],
)
def test_a_wrong_decision_is_the_frameworks_error_and_the_right_one_goes_on(
    wrong: Any, text: str, world: World
) -> None:
    out = world.agent(call("pay", amount=5)).run()
    for _ in range(2):
        with pytest.raises(ToolException, match=re.escape(text.replace("ASKED", requests(out)[0]["id"]))):
            world.agent().run(Command(resume=wrong))
    assert world.paid == []
    world.agent().run(decide(out))
    assert world.paid == [5]


def test_a_decision_of_another_thread_is_refused(world: World) -> None:
    other = world.agent(call("pay", amount=7)).run(thread="t-2")
    world.agent(call("pay", amount=5)).run()
    [request] = requests(other)
    with pytest.raises(ToolException, match=request["id"]):
        world.agent().run(Command(resume=[{"request_id": request["id"], "verdict": "approve"}]))
    assert world.paid == []


def test_one_id_for_two_calls_runs_both(world: World) -> None:
    agent = world.agent(call("add", a=1, b=1), call("add", a=1, b=1))
    agent.run()
    assert (world.paid, agent.told) == ([1, 1], ["2", "2"])


def test_private_and_untrusted_data_ask_before_they_are_sent(world: World) -> None:
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
    world.agent(call("read_page", "1"), call("read_mail", "2"), tools=tools).run()
    # Another process, the next message of the thread.
    out = world.agent(call("send", "3", text="a"), tools=tools).run()
    assert [request["tool"] for request in requests(out)] == ["send"]
    assert world.paid == []
    # A thread that has read nothing sends.
    world.agent(call("send", "3", text="a"), tools=tools).run(thread="t-2")
    assert world.paid == [1]


def test_without_a_thread_a_run_is_one_conversation(world: World) -> None:
    def read_both() -> str:
        """Reads a mail of strangers."""
        return "mail"

    def send(text: str) -> str:
        """Sends."""
        world.paid.append(1)
        return text

    tools = [
        ToolSpec.from_function(read_both, labels=["untrusted", "private"], effects=["read"]),
        ToolSpec.from_function(send, effects=["send"]),
    ]
    agent = world.agent(call("read_both", "1"), call("send", "2", text="a"), tools=tools, saver=False)
    out = agent.graph.invoke({"messages": "Go."})
    assert [request["tool"] for request in requests(out)] == ["send"]
    assert world.paid == []


def test_an_image_stays_an_image_and_a_sound_is_a_file(world: World) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    sound = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()

    def draw() -> Any:
        """Draws."""
        return [
            {"type": "text", "text": "here"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixel}},
            {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": sound}},
        ]

    agent = world.agent(call("draw"), tools=[draw])
    agent.run()
    assert agent.model.told[0].content == [
        {"type": "text", "text": "here"},
        {"type": "image", "base64": pixel, "mime_type": "image/png"},
        {"type": "file", "base64": sound, "mime_type": "audio/wav"},
    ]


@pytest.mark.parametrize("is_async", [False, True])
async def test_chunks_are_streamed(is_async: bool, world: World) -> None:
    def count() -> Iterator[str]:
        """Counts."""
        yield "one "
        yield "two"

    graph = world.agent(call("count"), tools=[count], saver=InMemorySaver()).graph
    given: Any = ({"messages": "Go."}, _config("t-1"))
    if is_async:
        seen = [one async for one in graph.astream(*given, stream_mode="custom")]
    else:
        seen = list(graph.stream(*given, stream_mode="custom"))
    assert [(one["tool_call_id"], one["tool"], one["content"][0]["text"]) for one in seen] == [
        ("call_1", "count", "one "),
        ("call_1", "count", "two"),
    ]


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

    running = asyncio.ensure_future(world.agent(call("wait"), tools=[wait], saver=False).arun())
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert seen == ["cancelled"]
    assert not world.store.runs()[0].is_held


async def test_a_conversation_at_work_elsewhere_is_told_to_the_model(
    world: World, other: Store, saver: SqliteSaver
) -> None:
    begun, ends = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Waits."""
        begun.set()
        await ends.wait()
        return "waited"

    second = World(other, saver)
    first, again = (
        world.agent(call("wait"), tools=[wait], saver=False),
        second.agent(call("add", a=1, b=2), saver=False),
    )
    running = asyncio.ensure_future(first.arun())
    await begun.wait()
    await again.arun()
    assert (second.paid, again.model.told[0].status) == ([], "error")
    assert again.told[0] == (
        "conversation_busy: nothing was run, because another call of this conversation is at work. Make this call "
        "again when that one has ended."
    )
    ends.set()
    await running
    assert first.told == ["waited"]


def test_a_tool_that_is_disabled_is_not_offered_and_does_not_run(world: World) -> None:
    registry = world.registry()
    agent = world.agent(call("add", a=1, b=2), tools=registry)
    registry.disable("add", "not today")
    agent.run()
    assert "not today" in agent.told[0]
    assert world.paid == []
    assert [one.name for one in langchain_tools(registry, store=world.store)] == ["pay"]
    denied = langchain_tools(world.registry(), store=world.store, permissions={"pay": "deny"})
    assert [one.name for one in denied] == ["add"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_middleware_offers_what_may_be_called_at_each_step(is_async: bool, world: World) -> None:
    registry = world.registry()

    @tool
    def other() -> None:
        """Is of LangChain."""

    model = Script(left=[])
    made = [*langchain_tools(registry, store=world.store), other]
    graph = create_agent(model, made, middleware=[OfferedTools()])

    async def offered() -> list[str]:
        given: Any = {"messages": "Go."}
        await graph.ainvoke(given) if is_async else graph.invoke(given)
        return model.offered

    assert await offered() == ["pay", "add", "other"]
    registry.disable("add", "not today")
    assert await offered() == ["pay", "other"]
    registry.enable("add")
    assert await offered() == ["pay", "add", "other"]


@pytest.mark.parametrize("option", ["protocol", "conversation", "finish"])
def test_what_the_framework_has_itself_is_refused(option: str, world: World) -> None:
    with pytest.raises(ConfigurationError, match=f"{option}='x': leave it out"):
        langchain_tools([], store=world.store, **{option: "x"})


def test_it_needs_a_store() -> None:
    with pytest.raises(ConfigurationError, match="give a store"):
        langchain_tools([], store=None)
