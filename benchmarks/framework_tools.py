"""A turn of an agent of another framework, model apart, with toolwire's tool beside the framework's own.

Run: python -m benchmarks.framework_tools. A turn is a message of the user, a call, and the answer. The model is a
script, and the time in it is left out. toolwire's tool has a store in memory, or in a file below the working folder.
`Session.turn` alone takes the same calls with that file, without a framework. A conversation has ten turns, and its
session is made in the first. The variants take turns.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from agents import Agent as OpenAIAgent
from agents import Model, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import messages as pydantic_messages
from pydantic_ai.models.function import FunctionModel

from benchmarks.timing import Figure, show
from toolwire import Session, Store, ToolSpec
from toolwire.frameworks.keyed_calls import message_of
from toolwire.frameworks.langchain import langchain_tools
from toolwire.frameworks.openai_agents import function_tools
from toolwire.frameworks.pydantic_ai import ToolwireToolset

LIMITS = {"pydantic-ai": 1.0, "OpenAI Agents SDK": None, "LangGraph": 1.5}
"""The most that a turn with toolwire's tool and a file takes, times one with the framework's own. None: not bound."""
TURNS = 10
"""Turns of a conversation."""
ROUNDS, WARM_UP = 31, 2

Conversation = Callable[[], None]
"""Holds a conversation of `TURNS` turns."""


class _ModelClock:
    """Adds up the wall and the processor time in the models."""

    seconds = (0.0, 0.0)

    @contextmanager
    def runs(self) -> Iterator[None]:
        began, before = _now(), self.seconds
        try:
            yield
        finally:
            self.seconds = _add_up(before, _now(), began)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _add_up(before: tuple[float, float], end: tuple[float, float], begin: tuple[float, float]) -> tuple[float, float]:
    return before[0] + end[0] - begin[0], before[1] + end[1] - begin[1]


MODEL = _ModelClock()
NUMBERS = itertools.count()
"""Numbers of calls and of conversations, which occur once."""


def figures() -> list[Figure]:
    """The time of a turn in each framework."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name, ExitStack() as ended:
        folder = Path(name)
        file = ended.enter_context(Store.open(f"sqlite:///{folder}/runs.db"))
        stores = {"own": None, "memory": ended.enter_context(Store.open("memory:")), "SQLite": file}
        runner = ended.enter_context(asyncio.Runner())
        frameworks = {
            "pydantic-ai": {name: _pydantic_ai(store, runner) for name, store in stores.items()},
            "OpenAI Agents SDK": {name: _openai_agents(store, runner) for name, store in stores.items()},
            "LangGraph": {name: _langgraph(store, folder / f"{name}.db", ended) for name, store in stores.items()},
        }
        alone = _session_turn(file, runner)
        return [figure for name, made in frameworks.items() for figure in _compare(name, {**made, "alone": alone})]


def _compare(framework: str, conversations: dict[str, Conversation]) -> list[Figure]:
    """Returns the figures of a framework: the time of its own tool, and the medians of the ratios within a round."""
    rounds = [{name: _time(hold) for name, hold in conversations.items()} for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    texts = {"memory": "toolwire's, memory", "SQLite": "toolwire's, SQLite", "alone": "Session.turn alone, SQLite"}
    found: list[Figure] = []
    for at, kind in enumerate(("wall", "processor")):
        own = statistics.median(one["own"][at] for one in rounds) * 1e3
        found.append(Figure(name=f"{framework}, its own tool, {kind}", ratio=own, limit=None, unit="ms"))
        for name, text in texts.items():
            ratio = statistics.median(one[name][at] / one["own"][at] for one in rounds)
            limit = LIMITS[framework] if (name, kind) == ("SQLite", "wall") else None
            found.append(Figure(name=f"  {text}, {kind}", ratio=ratio, limit=limit))
    return found


def _time(converse: Conversation) -> tuple[float, float]:
    """Returns the wall and the processor seconds of a turn outside of the model."""
    MODEL.seconds, began = (0.0, 0.0), _now()
    converse()
    wall, processor = _now()
    return (wall - began[0] - MODEL.seconds[0]) / TURNS, (processor - began[1] - MODEL.seconds[1]) / TURNS


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def _tools() -> list[Any]:
    return [ToolSpec.from_function(add, permission="auto")]


def _session_turn(store: Store, runner: asyncio.Runner) -> Conversation:
    async def converse() -> None:
        session = Session(_tools(), protocol="openai", store=store, conversation=f"turn {next(NUMBERS)}")
        for _ in range(TURNS):
            call_id = f"c{next(NUMBERS)}"
            called = message_of(call_id, "add", {"a": 1, "b": 2})
            assert (await session.turn(called, key=call_id)).results[0].data == 3

    return lambda: runner.run(converse())


class _PydanticScript(FunctionModel):
    async def request(self, *given: Any, **options: Any) -> Any:
        with MODEL.runs():
            return await super().request(*given, **options)


def _pydantic_ai(store: Store | None, runner: asyncio.Runner) -> Conversation:
    async def reply(messages: list[pydantic_messages.ModelMessage], _: Any) -> pydantic_messages.ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, pydantic_messages.ToolReturnPart):
            return pydantic_messages.ModelResponse(parts=[pydantic_messages.TextPart(str(last.content))])
        call = pydantic_messages.ToolCallPart("add", {"a": 1, "b": 2}, tool_call_id=f"c{next(NUMBERS)}")
        return pydantic_messages.ModelResponse(parts=[call])

    given: Any = {"tools": [add]} if store is None else {"toolsets": [ToolwireToolset(_tools(), store=store)]}
    agent = PydanticAgent(_PydanticScript(reply), **given)

    async def converse() -> None:
        history: list[pydantic_messages.ModelMessage] = []
        conversation = f"conversation {next(NUMBERS)}"
        for _ in range(TURNS):
            result = await agent.run("Go.", message_history=history, conversation_id=conversation)
            assert result.output == "3"
            history = result.all_messages()

    return lambda: runner.run(converse())


class _OpenAIScript(Model):
    async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
        with MODEL.runs():
            items = given[1] if given else options["input"]
            last: Any = items if isinstance(items, str) else items[-1]
            if isinstance(last, dict) and last.get("type") == "function_call_output":
                text = ResponseOutputText(text=str(last["output"]), type="output_text", annotations=[])
                said: Any = ResponseOutputMessage(
                    id="m", role="assistant", status="completed", type="message", content=[text]
                )
            else:
                arguments = json.dumps({"a": 1, "b": 2})
                said = ResponseFunctionToolCall(
                    call_id=f"c{next(NUMBERS)}", name="add", arguments=arguments, type="function_call"
                )
            return ModelResponse(output=[said], usage=Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def _openai_agents(store: Store | None, runner: asyncio.Runner) -> Conversation:
    set_tracing_disabled(True)
    own, model = function_tool(add), _OpenAIScript()

    async def converse() -> None:
        # A conversation has tools of its own.
        tools = [own] if store is None else function_tools(_tools(), store=store, conversation=f"agent {next(NUMBERS)}")
        agent = OpenAIAgent("adder", tools=[*tools], model=model)
        history: list[Any] = []
        for _ in range(TURNS):
            result = await Runner.run(agent, [*history, {"role": "user", "content": "Go."}])
            assert result.final_output == "3"
            history = result.to_input_list()

    return lambda: runner.run(converse())


class _LangChainScript(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **options: Any) -> Any:  # noqa: ARG002 - as LangChain calls it
        return self

    def invoke(self, *given: Any, **options: Any) -> Any:
        with MODEL.runs():
            return super().invoke(*given, **options)

    def _generate(self, messages: list[BaseMessage], *given: Any, **options: Any) -> ChatResult:  # noqa: ARG002
        made: Any = [{"name": "add", "args": {"a": 1, "b": 2}, "id": f"c{next(NUMBERS)}"}]
        is_first = isinstance(messages[-1], HumanMessage)
        said = AIMessage("", tool_calls=made) if is_first else AIMessage(messages[-1].text)
        return ChatResult(generations=[ChatGeneration(message=said)])


def _langgraph(store: Store | None, path: Path, ended: ExitStack) -> Conversation:
    saver = ended.enter_context(SqliteSaver.from_conn_string(str(path)))
    tools = [tool(add)] if store is None else langchain_tools(_tools(), store=store)
    agent: Any = create_agent(_LangChainScript(), tools, checkpointer=saver)

    def converse() -> None:
        thread = {"configurable": {"thread_id": f"{next(NUMBERS)}"}}
        for _ in range(TURNS):
            assert agent.invoke({"messages": "Go."}, thread)["messages"][-1].content == "3"

    return converse


if __name__ == "__main__":
    show("Tools inside other frameworks", figures())
