"""A session and a provider's own SDK, over a local server that speaks its API: the whole loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.protocols.providers import Provider, provider
from toolwire import Session, ToolRegistry, ToolResult, ToolSpec

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL_SAFE = PIXEL.replace("+", "-").replace("/", "_")
IMAGE: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tells the weather."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return {"city": city, "days": days}


def picture(of: str) -> ToolResult:
    """Takes a picture."""
    return ToolResult(True, of, content=[{"type": "text", "text": of}, IMAGE])


def tools() -> list[Any]:
    return [ToolSpec.from_function(weather, name="city.weather"), picture]


def completion(*calls: tuple[str, str, str], content: str | None = None) -> dict[str, Any]:
    written = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": written} if written else {})}
    reason = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chunks(*deltas: dict[str, Any], reason: str = "tool_calls") -> list[Any]:
    whole = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    return [{**whole, "choices": [choice]} for choice in choices] + [
        {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        "[DONE]",
    ]


async def test_openai_from_tools_to_answer(server: Provider) -> None:
    session = Session(tools(), protocol="openai")
    server.script = [
        completion(
            ("call_a", "city_dot_weather", '{"city": "Oslo", "days": null}'),
            ("call_b", "picture", '{"of": "a fjord"}'),
            ("call_c", "city_dot_weather", '{"city": "Atlantis", "days": 2}'),
        ),
        completion(content="Rain."),
    ]
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        ask: Any = client.chat.completions.create
        first = ask(model="m", messages=messages, tools=session.request_tools)
        turn = await session.turn(first)
        messages += [first.choices[0].message, *turn.messages]
        last = await session.turn(ask(model="m", messages=messages, tools=session.request_tools))
    assert server.requests[1]["messages"][2:] == [
        {"role": "tool", "tool_call_id": "call_a", "content": '{"city": "Oslo", "days": 1}'},
        {"role": "tool", "tool_call_id": "call_b", "content": "a fjord\n[image]"},
        {
            "role": "tool",
            "tool_call_id": "call_c",
            "content": "LookupError: no such city\nRead the error; change the arguments or try another tool.",
        },
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Returned by the tool 'picture' for call call_b:"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
            ],
        },
    ]
    assert (last.reply.text, last.results, last.messages) == ("Rain.", (), [])


async def test_openai_streamed(server: Provider) -> None:
    session = Session(tools(), protocol="openai")
    start = {"index": 0, "id": "call_a", "type": "function", "function": {"name": "city_dot_weather", "arguments": ""}}
    server.script = [
        chunks(
            {"role": "assistant", "content": "Let me "},
            {"content": "see."},
            {"tool_calls": [start]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "Os'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": 'lo", "days": 3}'}}]},
        )
    ]
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        stream: Any = session.protocol.stream(session.tools)
        with client.chat.completions.create(
            model="m",
            messages=[],
            tools=session.request_tools,
            stream=True,  # type: ignore[arg-type]
        ) as pieces:
            for piece in pieces:
                stream.feed(piece)
    turn = await session.turn(stream.reply())
    assert turn.reply.text == "Let me see."
    assert turn.messages == [{"role": "tool", "tool_call_id": "call_a", "content": '{"city": "Oslo", "days": 3}'}]


def response(*output: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    whole = {"type": "function_call", "id": f"fc_{call_id}", "status": "completed"}
    return {**whole, "call_id": call_id, "name": name, "arguments": arguments}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}


async def test_openai_responses_from_tools_to_answer(server: Provider) -> None:
    session = Session(tools(), protocol="openai-responses")
    server.script = [
        response(
            said("One moment."),
            function_call("call_a", "picture", '{"of": "a fjord"}'),
            function_call("call_b", "city_dot_weather", '{"city": "Atlantis", "days": null}'),
        ),
        response(said("Rain.")),
    ]
    items: list[Any] = [{"role": "user", "content": "Weather?"}]
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        ask: Any = client.responses.create
        first = ask(model="m", input=items, tools=session.request_tools)
        turn = await session.turn(first)
        items += [*first.output, *turn.messages]
        last = await session.turn(ask(model="m", input=items, tools=session.request_tools))
    assert turn.reply.text == "One moment."
    assert server.requests[1]["input"][4:] == [
        {
            "type": "function_call_output",
            "call_id": "call_a",
            "output": [
                {"type": "input_text", "text": "a fjord"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
            ],
        },
        {
            "type": "function_call_output",
            "call_id": "call_b",
            "output": "LookupError: no such city\nRead the error; change the arguments or try another tool.",
        },
    ]
    assert (last.reply.text, last.messages) == ("Rain.", [])


async def test_openai_responses_streamed(server: Provider) -> None:
    session = Session(tools(), protocol="openai-responses")
    item = function_call("call_a", "city_dot_weather", "")
    done = function_call("call_a", "city_dot_weather", '{"city": "Oslo", "days": 3}')
    delta = {"type": "response.function_call_arguments.delta", "item_id": "fc_call_a", "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        {**delta, "delta": '{"city": "Oslo'},
        {**delta, "delta": '", "days": 3}'},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": response(done)},
    ]
    server.script = [[{**event, "sequence_number": number} for number, event in enumerate(events)]]
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        stream: Any = session.protocol.stream(session.tools)
        create: Any = client.responses.create
        with create(model="m", input=[], tools=session.request_tools, stream=True) as pieces:
            for piece in pieces:
                stream.feed(piece)
    turn = await session.turn(stream.reply())
    assert turn.messages == [
        {"type": "function_call_output", "call_id": "call_a", "output": '{"city": "Oslo", "days": 3}'},
    ]


def message(*content: dict[str, Any], reason: str = "tool_use") -> dict[str, Any]:
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(content),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def tool_use(call_id: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


async def test_anthropic_from_tools_to_answer(server: Provider) -> None:
    session = Session(tools(), protocol="anthropic")
    server.script = [
        message(
            {"type": "text", "text": "One moment."},
            tool_use("toolu_a", "picture", {"of": "a fjord"}),
            tool_use("toolu_b", "city_dot_weather", {"city": "Atlantis"}),
        ),
        message({"type": "text", "text": "Rain."}, reason="end_turn"),
    ]
    messages: list[Any] = [{"role": "user", "content": "Weather?"}]
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        ask: Any = client.messages.create
        first = ask(model="m", max_tokens=9, messages=messages, tools=session.request_tools)
        turn = await session.turn(first)
        messages += [{"role": "assistant", "content": first.content}, *turn.messages]
        last = await session.turn(ask(model="m", max_tokens=9, messages=messages, tools=session.request_tools))
    assert server.requests[1]["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_a", "content": [{"type": "text", "text": "a fjord"}, IMAGE]},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_b",
                "content": "LookupError: no such city\nRead the error; change the arguments or try another tool.",
                "is_error": True,
            },
        ],
    }
    assert (last.reply.text, last.messages) == ("Rain.", [])


async def test_anthropic_streamed(server: Provider) -> None:
    session = Session([*tools(), now], protocol="anthropic")
    start = {"type": "content_block_start", "index": 0}
    server.script = [
        [
            {"type": "message_start", "message": {**message(), "stop_reason": None}},
            {**start, "content_block": tool_use("toolu_a", "city_dot_weather", {})},
            _partial(0, '{"city": "Os'),
            _partial(0, 'lo", "days": 3}'),
            {"type": "content_block_stop", "index": 0},
            {**start, "index": 1, "content_block": tool_use("toolu_b", "now", {})},
            {"type": "content_block_stop", "index": 1},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "tool_use", "stop_sequence": None},
                "usage": {"output_tokens": 1},
            },
            {"type": "message_stop"},
        ]
    ]
    stream: Any = session.protocol.stream(session.tools)
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as client:
        open_stream: Any = client.messages.stream
        with open_stream(model="m", max_tokens=9, messages=[], tools=session.request_tools) as pieces:
            for piece in pieces:
                stream.feed(piece)
            whole = pieces.get_final_message()
    streamed = [(call.name, call.arguments, call.id) for call in stream.reply().calls]
    assert streamed == [
        (call.name, call.arguments, call.id) for call in session.protocol.parse(whole, session.tools).calls
    ]
    turn = await session.turn(stream.reply())
    assert [block["content"] for block in turn.messages[0]["content"]] == ['{"city": "Oslo", "days": 3}', "noon"]


def now() -> str:
    """Tells the time."""
    return "noon"


def _partial(index: int, text: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def candidate(*parts: dict[str, Any], reason: str | None = "STOP") -> dict[str, Any]:
    end = {"finishReason": reason} if reason else {}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **end}]}


def gemini(url: str) -> genai.Client:
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))


def config(session: Session) -> types.GenerateContentConfig:
    told: Any = session.instructions
    return types.GenerateContentConfig(
        tools=told, automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )


async def test_gemini_from_tools_to_answer(server: Provider) -> None:
    session = Session(tools(), protocol="gemini")
    server.script = [
        candidate(
            {"text": "I wonder.", "thought": True},
            {"functionCall": {"name": "picture", "args": {"of": "a fjord"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "fc_b", "name": "city_dot_weather", "args": {"city": "Oslo"}}},
            {"functionCall": {"name": "city_dot_weather", "args": {"city": "Atlantis"}}},
        ),
        candidate({"text": "Rain."}),
    ]
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Weather?"}]}]
    with gemini(server.url) as client:
        first: Any = client.models.generate_content(model="m", contents=contents, config=config(session))
        turn = await session.turn(first)
        contents += [first.candidates[0].content, *turn.messages]
        last = await session.turn(client.models.generate_content(model="m", contents=contents, config=config(session)))
    assert server.requests[1]["contents"][2] == {
        "role": "user",
        "parts": [
            {
                "functionResponse": {
                    "name": "picture",
                    "response": {"output": "a fjord\n[image]"},
                    # As the SDK sends its own objects: the API takes both spellings.
                    "parts": [{"inline_data": {"mime_type": "image/png", "data": URL_SAFE}}],
                }
            },
            {
                "functionResponse": {
                    "id": "fc_b",
                    "name": "city_dot_weather",
                    "response": {"output": {"city": "Oslo", "days": 1}},
                }
            },
            {
                "functionResponse": {
                    "name": "city_dot_weather",
                    "response": {
                        "error": "LookupError: no such city\nRead the error; change the arguments or try another tool."
                    },
                }
            },
        ],
    }
    assert turn.reply.thought == "I wonder."
    assert (last.reply.text, last.messages) == ("Rain.", [])


async def test_gemini_streamed(server: Provider) -> None:
    session = Session(tools(), protocol="gemini")
    server.script = [
        [
            candidate({"text": "Let me "}, reason=None),
            candidate({"text": "see."}, reason=None),
            candidate({"functionCall": {"name": "city_dot_weather", "args": {"city": "Oslo", "days": 3}}}),
        ]
    ]
    stream: Any = session.protocol.stream(session.tools)
    with gemini(server.url) as client:
        for piece in client.models.generate_content_stream(model="m", contents="Weather?", config=config(session)):
            stream.feed(piece)
    turn = await session.turn(stream.reply())
    assert turn.reply.text == "Let me see."
    assert turn.messages[0]["parts"][0]["function_response"]["response"] == {"output": {"city": "Oslo", "days": 3}}


async def test_unreadable_calls_are_each_answered_and_none_runs(server: Provider) -> None:
    ran: list[str] = []

    def note(word: str) -> None:
        """Notes a word."""
        ran.append(word)

    session = Session([note], protocol="openai")
    server.script = [
        completion(("call_a", "note", '{"word": "x"}'), ("call_b", "note", '{"word": "y')),
        completion(content="Sorry."),
    ]
    messages: list[Any] = []
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        ask: Any = client.chat.completions.create
        first = ask(model="m", messages=messages, tools=session.request_tools)
        turn = await session.turn(first)
        # The history must be JSON for the provider: that is the host's to mend, here by leaving the arguments out.
        first.choices[0].message.tool_calls[1].function.arguments = "{}"
        ask(model="m", messages=[first.choices[0].message, *turn.messages], tools=session.request_tools)
    assert (ran, turn.results, turn.reply.is_refused) == ([], (), True)
    answers = [(answer["tool_call_id"], answer["content"].split("\n")[0]) for answer in turn.messages]
    assert answers[0] == (
        "call_a",
        "Another call of the same reply could not be read. Make this one in your next reply.",
    )
    assert answers[1][0] == "call_b"


async def test_parallel_calls_run_side_by_side_and_answer_in_order() -> None:
    met = asyncio.Event()
    order: list[str] = []

    async def slow() -> str:
        """Waits for the other one."""
        await asyncio.wait_for(met.wait(), 5)
        order.append("slow")
        return "s"

    async def quick() -> str:
        """Lets the other one go."""
        met.set()
        order.append("quick")
        return "q"

    session = Session([slow, quick], protocol="anthropic")
    turn = await session.turn([tool_use("a", "slow", {}), tool_use("b", "quick", {})])
    assert order == ["quick", "slow"]
    assert [(block["tool_use_id"], block["content"]) for block in turn.messages[0]["content"]] == [
        ("a", "s"),
        ("b", "q"),
    ]


async def test_two_calls_of_one_id_both_run() -> None:
    session = Session(tools(), protocol="anthropic")
    turn = await session.turn([tool_use("a", "city_dot_weather", {"city": city}) for city in ("Oslo", "Lima")])
    assert [result.data["city"] for result in turn.results] == ["Oslo", "Lima"]
    first, second = [result.call.id for result in turn.results if result.call]
    assert (first, second == "a") == ("a", False)


def names_of(session: Session) -> list[str]:
    return [tool.name for tool in session.tools]


async def test_programs_are_a_tool_of_a_native_session_when_the_registry_has_them_enabled() -> None:
    registry = ToolRegistry()
    registry.register(now)
    assert names_of(Session(registry, protocol="anthropic")) == ["now"]
    registry.enable_code_execution()
    session = Session(registry, protocol="anthropic")
    assert names_of(session) == ["now", "code_execution"]
    turn = await session.turn([tool_use("a", "code_execution", {"code": "__result__ = now() + '!'"})])
    assert turn.messages[0]["content"][0]["content"] == "noon!"
    assert names_of(Session(registry, protocol="attp")) == ["now"]


async def test_a_call_of_programs_that_are_not_enabled_is_an_unknown_tool() -> None:
    turn = await Session([now], protocol="anthropic").turn([tool_use("a", "code_execution", {"code": "1"})])
    failure = turn.results[0].failure
    assert failure is not None
    assert failure.kind == "unknown_tool"


async def test_bound_parameters_are_told_to_no_provider() -> None:
    spec = ToolSpec.from_function(weather)
    spec.bind("city", default="Oslo")
    for name in ("openai", "openai-responses", "anthropic", "gemini"):
        session = Session([spec], protocol=name)
        assert "city" not in str(session.instructions)


async def test_a_models_own_hidden_argument_is_refused_by_name() -> None:
    spec = ToolSpec.from_function(weather)
    spec.bind("city", default="Oslo")
    turn = await Session([spec], protocol="anthropic").turn([tool_use("a", "weather", {"city": "Lima"})])
    assert turn.results[0].failure is not None
    assert turn.results[0].failure.kind == "invalid_arguments"
