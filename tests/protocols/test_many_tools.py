"""Reading a reply and describing tools cost what the call and the new tools cost, however many others are known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.processor import ratio, thread_s
from tests.protocols.many_tools import PROTOCOLS, function, read_stream, reply, text_reply, tools
from toolwire import Session, ToolRegistry, ToolSpec
from toolwire.definition.from_function import FunctionShape
from toolwire.definition.tool import Tool
from toolwire.protocols import get
from toolwire.protocols.native.gemini import Gemini
from toolwire.protocols.native.protocol import copied

TEXT = ("attp", "xml", "json")
PARSE_LIMIT = 2.0
TURN_LIMIT = 1.5
"""At rest it is 0.9 to 1.1. Work for each of the tools made it 15."""
DESCRIBE_LIMIT_MS = 2.0
COPY_MS = 0.57
"""Processor time of a copy of the declarations of a hundred tools, on a machine at rest."""


@pytest.fixture
def copied_schemas(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tools whose schema was copied and cleaned, in order."""
    copied: list[str] = []
    own = Tool.input_schema.fget
    assert own is not None

    def input_schema(tool: Tool) -> dict[str, Any]:
        copied.append(tool.name)
        return own(tool)

    monkeypatch.setattr(Tool, "input_schema", property(input_schema))
    return copied


@pytest.mark.parametrize("count", [1, 2, 40])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_reply_cleans_the_schema_of_the_called_tool_alone_and_once(
    protocol: str, count: int, copied_schemas: list[str]
) -> None:
    known = tools(count)
    for _ in range(3):
        read = get(protocol).parse(reply(protocol), known)
        assert (len(read.calls), read.problems) == (1, ())
    # A program is read without the tools.
    assert copied_schemas == ([] if protocol == "attp" else ["tool_0"])


@pytest.mark.parametrize("protocol", TEXT)
@pytest.mark.parametrize("count", [1, 2, 40])
def test_a_reply_in_pieces_cleans_the_schema_of_the_called_tool_alone_and_once(
    protocol: str, count: int, copied_schemas: list[str]
) -> None:
    known = tools(count)
    for _ in range(3):
        assert len(read_stream(protocol, known).calls) == 1
    assert copied_schemas == ([] if protocol == "attp" else ["tool_0"])


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "attp"])
def test_of_plain_functions_only_the_called_one_becomes_a_tool(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    own = FunctionShape.__init__

    def init(shape: FunctionShape, of: Any, name: str, *rest: Any, **options: Any) -> None:
        made.append(name)
        own(shape, of, name, *rest, **options)

    monkeypatch.setattr(FunctionShape, "__init__", init)
    functions = [function(number) for number in range(5)]
    assert get(protocol).parse(reply(protocol), functions).calls[0].arguments == {"a": 3, "b": "x"}
    assert made == ["tool_0"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_turn_cleans_the_schema_of_the_called_tool_alone_and_once(protocol: str, copied_schemas: list[str]) -> None:
    session = Session(tools(40), protocol=protocol)
    copied_schemas.clear()
    for _ in range(3):
        assert session.run_turn(reply(protocol)).results[0].success
    assert set(copied_schemas) <= {"tool_0", "code_execution"}
    assert len(copied_schemas) <= 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_session_describes_only_the_tools_that_are_new(
    protocol: str, monkeypatch: pytest.MonkeyPatch, copied_schemas: list[str]
) -> None:
    listed: list[str] = []
    parameters = FunctionShape.parameters
    monkeypatch.setattr(
        FunctionShape, "parameters", lambda shape, form: [listed.append("parameters"), parameters(shape, form)][1]
    )
    registry = ToolRegistry()
    for spec in tools(20):
        registry.register(spec)
    first = Session(registry, protocol=protocol).instructions
    assert len(copied_schemas) >= 20
    copied_schemas.clear()
    listed.clear()
    assert Session(registry, protocol=protocol).instructions == first
    assert (copied_schemas, listed) == ([], [])
    registry.register(function(20))
    assert "tool_20" in str(Session(registry, protocol=protocol).instructions)
    assert set(copied_schemas) == {"tool_20"}


def test_a_tool_keeps_one_declaration_for_all_protocol_objects_with_the_same_options() -> None:
    spec = tools(1)[0]
    for schema_field in ("parameters", "parameters_json_schema") * 3:
        declared = Gemini(schema_field=schema_field).describe([spec])[0]["function_declarations"][0]
        assert declared.keys() == {"name", "description", schema_field}
    declarations = [key for key in spec.__tool__().value_cache if "declaration" in str(key)]
    assert len(declarations) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_among_two_hundred_tools_is_read_in_twice_the_time_of_a_call_of_the_only_tool(protocol: str) -> None:
    assert _ratio(get(protocol).parse, reply(protocol)) <= PARSE_LIMIT


@pytest.mark.parametrize("protocol", TEXT)
def test_a_call_behind_prose_is_read_in_twice_the_time_too(protocol: str) -> None:
    assert _ratio(get(protocol).parse, text_reply(protocol)) <= PARSE_LIMIT


@pytest.mark.parametrize("protocol", TEXT)
def test_a_call_in_pieces_is_read_in_twice_the_time_too(protocol: str) -> None:
    assert _ratio(lambda _, among: read_stream(protocol, among), "") <= PARSE_LIMIT


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "attp"])
def test_a_turn_with_two_hundred_tools_takes_the_time_of_a_turn_with_one(protocol: str) -> None:
    few, many = (Session(tools(count), protocol=protocol) for count in (1, 200))
    written = reply(protocol)
    loop = asyncio.new_event_loop()

    def cost(session: Session) -> float:
        async def turns() -> float:
            return await _seconds(session, written)

        return loop.run_until_complete(turns())

    try:
        cost(few)
        cost(many)
        assert ratio(lambda: cost(many), lambda: cost(few), enough=TURN_LIMIT) <= TURN_LIMIT
    finally:
        loop.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_session_of_a_known_registry_describes_a_hundred_tools_in_two_milliseconds(protocol: str) -> None:
    registry = ToolRegistry()
    for spec in tools(100):
        registry.register(spec)
    assert Session(registry, protocol=protocol).instructions
    declared = Session(registry, protocol="openai").request_tools

    def cost() -> float:
        # The copy between two rounds takes the processor's caches, so the least of five sessions counts.
        sessions = [Session(registry, protocol=protocol) for _ in range(5)]
        return min(thread_s(lambda session=session: session.instructions) for session in sessions)

    # Both works mostly allocate, so that neighbours slow them alike.
    found = ratio(cost, lambda: thread_s(lambda: copied(declared)), enough=DESCRIBE_LIMIT_MS / COPY_MS)
    assert found * COPY_MS <= DESCRIBE_LIMIT_MS


def _ratio(parse: Callable[[Any, list[ToolSpec]], Any], written: Any) -> float:
    one, many = tools(1), tools(200)

    def cost(among: list[ToolSpec]) -> float:
        return thread_s(lambda: [parse(written, among) for _ in range(10)])

    cost(one)
    cost(many)
    return ratio(lambda: cost(many), lambda: cost(one), enough=PARSE_LIMIT)


async def _seconds(session: Session, written: Any) -> float:
    """Processor seconds of the event loop for ten turns."""
    started = time.thread_time()
    for _ in range(10):
        await session.turn(written)
    return time.thread_time() - started
