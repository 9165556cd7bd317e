"""Streams as servers and gateways really send them, and streams that are broken: read right, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ConfigurationError, Reply, Session
from toolwire.protocols import get
from toolwire.protocols.base import REPLY_LIMIT_BYTES
from toolwire.protocols.native.assembly import PROBLEMS_LIMIT


def purge(table: str = "all", where: str | None = None) -> None:
    """Deletes rows."""


def weather(city: str, days: int = 1) -> str:
    """Looks up the weather."""
    return f"clear in {city}"


def now() -> str:
    """Tells the time."""
    return "noon"


def ha() -> None:
    """Laughs."""


def haha() -> None:
    """Laughs aloud."""


TOOLS = [purge, weather, now]
BROKEN = "The reply broke off before its end, so that it may not be whole. Write the whole reply."
WENT_ON = "The stream went on after the provider had ended the reply. Use a new stream for each reply."


def read(name: str, pieces: list[Any], tools: list[Any] = TOOLS) -> Reply:
    stream = get(name).stream(tools)
    for piece in pieces:
        stream.feed(piece)
    return stream.reply()


def called(reply: Reply) -> list[Any]:
    return [(call.name, dict(call.arguments)) for call in reply.calls]


def reasons(reply: Reply) -> list[str]:
    assert reply.calls == ()
    return [problem.message for problem in reply.problems if not problem.repaired]


# Chat


def chunk(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def piece(index: int | None, call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    identity = {"id": call_id, "type": "function"} if call_id else {}
    return {**place, **identity, "function": {**({"name": name} if name else {}), "arguments": arguments}}


def chat(*pieces: dict[str, Any]) -> list[Any]:
    return [*(chunk(tool_calls=[one]) for one in pieces), chunk("tool_calls")]


OSLO, ROME = {"city": "Oslo"}, {"city": "Rome"}
BOTH = [("weather", OSLO), ("weather", ROME)]
CHAT_FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "interleaved": (
        chat(
            piece(0, "a", "weather", ""),
            piece(1, "b", "weather", ""),
            piece(0, "", "", '{"city": "Os'),
            piece(1, "", "", '{"city": "Ro'),
            piece(0, "", "", 'lo"}'),
            piece(1, "", "", 'me"}'),
        ),
        BOTH,
    ),
    "a whole call inside of another": (
        chat(
            piece(0, "a", "weather", '{"city": "Os'),
            piece(1, "b", "weather", '{"city": "Rome"}'),
            piece(0, "", "", 'lo"}'),
        ),
        BOTH,
    ),
    "one index, two ids": (
        chat(piece(0, "a", "weather", '{"city": "Oslo"}'), piece(0, "b", "weather", '{"city": "Rome"}')),
        BOTH,
    ),
    "one index, no ids": (
        chat(piece(0, "", "weather", '{"city": "Oslo"}'), piece(0, "", "weather", '{"city": "Rome"}')),
        BOTH,
    ),
    "one index, the ids on every piece, mixed": (
        chat(
            piece(0, "a", "weather", '{"city": '),
            piece(0, "b", "weather", '{"city": '),
            piece(0, "a", "", '"Oslo"}'),
            piece(0, "b", "", '"Rome"}'),
        ),
        BOTH,
    ),
    "the second call first": (
        chat(piece(1, "b", "weather", '{"city": "Rome"}'), piece(0, "a", "weather", '{"city": "Oslo"}')),
        BOTH,
    ),
    "a name in two pieces": (
        chat(piece(0, "a", "wea", ""), piece(0, "", "ther", '{"city": "Oslo"}')),
        [("weather", OSLO)],
    ),
    "the name with every piece": (
        chat(piece(0, "a", "weather", '{"city": '), piece(0, "a", "weather", '"Oslo"}')),
        [("weather", OSLO)],
    ),
    "an object": (chat(piece(0, "a", "weather", {"city": "Oslo"})), [("weather", OSLO)]),
    "null where the tool takes nothing": (chat(piece(0, "a", "now", "null")), [("now", {})]),
    "brackets in a string": (
        chat(piece(0, "", "weather", '{"city": "}{\\""'), piece(0, "", "", "}"), piece(0, "", "now", "{}")),
        [("weather", {"city": '}{"'}), ("now", {})],
    ),
    "the last line of the events": (
        ["" if one is None else one for one in chat(piece(0, "a", "now", "{}"))[:-1]] + ["[DONE]"],
        [("now", {})],
    ),
}


@pytest.mark.parametrize("form", CHAT_FORMS)
def test_a_chat_stream_in_this_form_is_read(form: str) -> None:
    pieces, calls = CHAT_FORMS[form]
    found = read("openai", pieces)
    assert (called(found), [problem for problem in found.problems if not problem.repaired]) == (calls, [])
    assert len(found.message["tool_calls"]) == len(calls)


CHAT_FAULTS: dict[str, tuple[list[Any], list[str]]] = {
    "arguments begun with {}": (
        chat(piece(0, "a", "purge", "{}"), piece(1, "b", "now", "{}"), piece(0, "", "", '{"table": "t1"}')),
        ['\'{"table": "t1"}\' follows the JSON. Write one JSON value and nothing after it.'],
    ),
    "an id that changes inside of a call": (
        chat(piece(0, "a", "weather", '{"city": "Os'), piece(0, "b", "", 'lo"}')),
        [
            "The id of a call changes from 'a' to 'b' inside of it.",
            "The JSON ends inside of a string: it was cut off, so it was not run. Make it shorter.",
            "The call has no name. Write the name of a tool.",
        ],
    ),
    "two names": (
        chat(piece(0, "a", "weather", '{"city": '), piece(0, "a", "now", '"Oslo"}')),
        ["The stream names one call 'weather', and then 'now'."],
    ),
    "a text and an object": (
        chat(piece(0, "a", "purge", '{"table": "t1"}'), piece(0, "a", "", {"table": "t2"})),
        ["The stream gives the arguments of one call of 'purge' twice."],
    ),
    "a name again, and nothing else": (
        chat(piece(0, "", "now", ""), piece(0, "", "now", "")),
        ["The stream sends the name 'now' more than once for one call."],
    ),
    "null where the tool takes something": (
        chat(piece(0, "a", "purge", "null")),
        ["The arguments are null. Write one JSON object with the parameters' names as keys."],
    ),
    "a call after the end": ([*chat(piece(0, "a", "now", "{}")), *chat(piece(1, "b", "now", "{}"))], [WENT_ON]),
    "a text after the end": ([chunk("stop", content="Hello."), chunk(content="More.")], [WENT_ON]),
    "text among the chunks": (
        [*chat(piece(0, "a", "now", "{}")), "Hello."],
        ["A piece of the stream is text, and the others are not."],
    ),
}


@pytest.mark.parametrize("form", CHAT_FAULTS)
def test_a_chat_stream_with_this_fault_runs_nothing(form: str) -> None:
    pieces, said = CHAT_FAULTS[form]
    assert reasons(read("openai", pieces)) == said


def test_a_name_that_may_be_two_names_is_refused() -> None:
    pieces = chat(piece(0, "a", "ha", ""), piece(0, "", "ha", "{}"))
    assert called(read("openai", pieces, [haha])) == [("haha", {})]
    assert called(read("openai", pieces, [ha])) == [("ha", {})]
    assert reasons(read("openai", pieces, [ha, haha])) == [
        "The stream sends the name 'ha' more than once for one call."
    ]


def test_a_content_in_parts_is_the_text_and_one_part_of_the_message() -> None:
    parts = [[{"type": "text", "text": "He"}], [{"type": "text", "text": "llo"}], "!"]
    found = read("openai", [*(chunk(content=part) for part in parts), chunk("stop")])
    assert found.text == "Hello!"
    assert found.message == {"role": "assistant", "content": [{"type": "text", "text": "Hello!"}]}
    whole = {"role": "assistant", "content": [{"type": "text", "text": "Hello!"}]}
    assert get("openai").parse({"choices": [{"message": whole}]}).message == found.message


@pytest.mark.parametrize("kind", ["", "tool_call", "Function", None])
def test_a_call_of_a_function_is_one_whatever_its_type_is_called(kind: str | None) -> None:
    call = {"id": "a", "type": kind, "function": {"name": "now", "arguments": "{}"}}
    whole = get("openai").parse({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}, TOOLS)
    streamed = read("openai", chat({**call, "index": 0}))
    for found in (whole, streamed):
        assert called(found) == [("now", {})]
        assert found.message["tool_calls"] == [{**call, "type": "function"}]


def test_many_faults_of_one_stream_are_listed_up_to_a_limit() -> None:
    pieces = [{"type": "content_block_stop", "index": index} for index in range(PROBLEMS_LIMIT * 3)]
    found = read("anthropic", [*pieces, {"type": "message_stop"}])
    assert len(reasons(found)) == PROBLEMS_LIMIT


def test_ten_megabytes_of_arguments_are_refused_with_the_limit() -> None:
    size = 10_000_000
    pieces = chat(piece(0, "a", "purge", '{"table": "'), *[piece(0, "", "", "x" * 100_000)] * 100)
    assert reasons(read("openai", pieces)) == [
        f"The arguments of all calls have {size + 11} characters; the limit is {REPLY_LIMIT_BYTES}. Write less."
    ]


# Anthropic

END = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def block(index: int, start: dict[str, Any], *texts: str) -> list[dict[str, Any]]:
    deltas = [{"type": "input_json_delta", "partial_json": text} for text in texts]
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def use(call_id: str, name: str, given: Any = None) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if given is None else given}


@pytest.mark.parametrize("given", [{"table": "t1"}, '{"table": "t1"}'])
@pytest.mark.parametrize("later", [(), ("",), ('{"table": ', '"t1"}')])
def test_arguments_at_the_start_of_a_block_are_those_of_the_call(given: Any, later: tuple[str, ...]) -> None:
    found = read("anthropic", [*block(0, use("a", "purge", given), *later), *END])
    assert called(found) == [("purge", {"table": "t1"})]
    assert found.message["content"] == [use("a", "purge", {"table": "t1"})]


def test_arguments_that_come_as_an_object_are_read() -> None:
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": OSLO}}]
    start, end = block(0, use("a", "weather"))
    assert called(read("anthropic", [start, *deltas, end, *END])) == [("weather", OSLO)]


STRAY: list[tuple[str, Any]] = [
    ("anthropic", [{"type": "tool_use", "id": "a", "name": "purge", "arguments": {"table": "t1"}}]),
    ("gemini", {"parts": [{"functionCall": {"name": "purge", "arguments": {"table": "t1"}}}]}),
    (
        "openai",
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "a", "arguments": '{"table": "t1"}', "function": {"name": "purge", "arguments": "{}"}}
            ],
        },
    ),
]


@pytest.mark.parametrize(("name", "reply"), STRAY)
def test_arguments_under_another_key_refuse_the_call(name: str, reply: Any) -> None:
    found = get(name).parse(reply, TOOLS)
    assert reasons(found) == ["The call of 'purge' has arguments under 'arguments', where its API has none."]
    assert "t1" not in str(found.message)


NAMED: list[tuple[str, Any]] = [
    (
        "openai",
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "functions.now:0", "arguments": ""}}]},
    ),
    ("anthropic", [{"type": "tool_use", "id": "a", "name": "functions.now", "input": {}}]),
    ("gemini", {"parts": [{"functionCall": {"name": "default_api.now"}}]}),
    ("openai-responses", [{"type": "function_call", "call_id": "a", "name": "functions.now", "arguments": "{}"}]),
]


@pytest.mark.parametrize(("name", "reply"), NAMED)
def test_a_call_goes_back_under_the_name_of_its_tool(name: str, reply: Any) -> None:
    protocol = get(name)
    found = protocol.parse(reply, TOOLS)
    assert called(found) == [("now", {})]
    again = protocol.parse(found.message)
    assert [call.name for call in again.calls] == ["now"]


def test_a_call_without_a_name_goes_back_under_one_that_the_provider_takes() -> None:
    found = get("openai").parse({"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]})
    assert found.message["tool_calls"][0]["function"]["name"] == "unnamed"


def test_one_call_without_a_list_is_read_and_what_is_no_call_is_refused() -> None:
    call = piece(0, "a", "now", "{}")
    whole = get("openai").parse({"choices": [{"message": {"role": "assistant", "tool_calls": call}}]}, TOOLS)
    streamed = read("openai", [chunk(tool_calls=call), chunk("tool_calls")])
    assert called(whole) == called(streamed) == [("now", {})]
    for given in ("[]", [None], 5):
        message = {"role": "assistant", "content": "x", "tool_calls": given}
        assert reasons(get("openai").parse({"choices": [{"message": message}]}, TOOLS)) == [
            "`tool_calls` is not a list of calls."
        ]


@pytest.mark.parametrize("line", ['data: {"choices": []}', ": ping", "event: ping"])
def test_a_raw_line_of_events_is_the_hosts_mistake(line: str) -> None:
    stream = get("openai").stream(marks_end=False)
    stream.feed(line)
    with pytest.raises(ConfigurationError, match="was fed with a line of server-sent events"):
        stream.reply()


def test_a_stream_of_plain_text_keeps_each_piece_and_is_no_answer_if_it_is_a_call() -> None:
    stream = get("openai").stream(TOOLS, marks_end=False)
    for text in ("So", ": it is", " data: 5"):
        stream.feed(text)
    assert stream.reply().text == "So: it is data: 5"
    stream = get("openai").stream(TOOLS, marks_end=False)
    stream.feed('<tool_call>{"name": "now", "arguments": {}}</tool_call>')
    assert stream.reply().is_refused


def test_a_block_under_a_used_index_is_a_block_of_its_own() -> None:
    blocks = [*block(0, use("a", "weather"), '{"city": "Oslo"}'), *block(0, use("b", "weather"), '{"city": "Rome"}')]
    assert called(read("anthropic", [*blocks, *END])) == BOTH


TEXT_DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
BLOCK_FAULTS: dict[str, tuple[list[Any], list[str]]] = {
    "other arguments than at the start": (
        block(0, use("a", "purge", {"table": "t1"}), '{"table": "t2"}'),
        ["The stream gives the arguments of the block 0 twice."],
    ),
    "an unknown index": (
        [*block(0, use("a", "now")), {**block(7, {}, "x")[1]}],
        ["The stream adds to the block 7, which has not begun."],
    ),
    "a piece after the block": (
        [*block(0, use("a", "purge"), "{}"), block(0, {}, '{"table": "t1"}')[1]],
        ["The stream adds to the block 0, which has ended."],
    ),
    "two blocks at once under one index": (
        [block(0, use("a", "now"))[0], *block(0, use("b", "now"))],
        ["Two blocks of the stream have the index 0, and the first has not ended."],
    ),
    "what is not understood in a call": (
        [block(0, use("a", "purge"))[0], {**TEXT_DELTA, "delta": {"type": "input_delta", "input": {"table": "t1"}}}],
        ["The stream adds 'input_delta' to the block 0, which is of the type 'tool_use'."],
    ),
    "a text in a call": (
        [block(0, use("a", "now"))[0], TEXT_DELTA],
        ["The stream adds 'text_delta' to the block 0, which is of the type 'tool_use'."],
    ),
    "arguments in a text": (
        block(0, {"type": "text", "text": ""}, "{}"),
        ["The stream adds 'input_json_delta' to the block 0, which is of the type 'text'."],
    ),
    "an end without a start": (
        [{"type": "content_block_stop", "index": 3}],
        ["The stream ends the block 3, which has not begun."],
    ),
    "a second message": (
        [
            {"type": "message_start", "message": {}},
            {"type": "message_start", "message": {}},
            *block(0, use("a", "now")),
        ],
        ["A second message began in the stream. Use a new stream for each reply."],
    ),
}


@pytest.mark.parametrize("form", BLOCK_FAULTS)
def test_a_stream_of_blocks_with_this_fault_runs_nothing(form: str) -> None:
    pieces, said = BLOCK_FAULTS[form]
    assert reasons(read("anthropic", [*pieces, *END])) == said


def test_events_after_the_end_of_a_message_run_nothing() -> None:
    assert reasons(read("anthropic", [*END, *block(0, use("a", "now"))])) == [WENT_ON]


def test_a_message_whose_content_is_a_text_is_that_text() -> None:
    found = get("anthropic").parse({"role": "assistant", "content": "Hello."})
    assert (found.text, found.ended) == ("Hello.", "stop")
    assert found.message == {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}


# Responses


def item(number: int, name: str, arguments: str = "") -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"c{number}",
        "name": name,
        "arguments": arguments,
    }


def added(index: int, begun: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": begun}


def arguments_of(number: int, text: str, *, index: int = 0, is_whole: bool = False) -> dict[str, Any]:
    kind, key = ("done", "arguments") if is_whole else ("delta", "delta")
    place = {"output_index": index, "item_id": f"fc_{number}"}
    return {"type": f"response.function_call_arguments.{kind}", **place, key: text}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"object": "response", "output": list(output)}}


CITY = '{"city": "Oslo"}'
ITEM_FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "arguments in their own end alone": (
        [added(0, item(1, "weather")), arguments_of(1, CITY, is_whole=True), completed()],
        [("weather", OSLO)],
    ),
    "arguments in the response's end alone": (
        [added(0, item(1, "weather")), completed(item(1, "weather", CITY))],
        [("weather", OSLO)],
    ),
    "the response's end alone": ([completed(item(1, "weather", CITY))], [("weather", OSLO)]),
    "two items at one index": (
        [
            added(0, item(1, "weather")),
            added(0, item(2, "weather")),
            arguments_of(1, CITY),
            arguments_of(2, '{"city": "Rome"}'),
            completed(),
        ],
        BOTH,
    ),
    "an item's end alone": (
        [{"type": "response.output_item.done", "output_index": 0, "item": item(1, "weather", CITY)}, completed()],
        [("weather", OSLO)],
    ),
    "a response's end without the arguments": (
        [added(0, item(1, "weather")), arguments_of(1, CITY), completed(item(1, "weather"))],
        [("weather", OSLO)],
    ),
    "a response's end with other spaces": (
        [added(0, item(1, "weather")), arguments_of(1, CITY), completed(item(1, "weather", '{"city":"Oslo"}'))],
        [("weather", OSLO)],
    ),
    "an item's end without arguments": (
        [
            added(0, item(1, "weather")),
            arguments_of(1, CITY),
            {"type": "response.output_item.done", "output_index": 0, "item": item(1, "weather")},
            completed(),
        ],
        [("weather", OSLO)],
    ),
}


@pytest.mark.parametrize("form", ITEM_FORMS)
def test_a_stream_of_items_in_this_form_is_read(form: str) -> None:
    pieces, calls = ITEM_FORMS[form]
    found = read("openai-responses", pieces)
    assert (called(found), found.problems) == (calls, ())
    assert len(found.message) == len(calls)


STARTED = added(0, item(1, "purge", "{}"))
TWICE = "The stream gives the arguments of the call of 'purge' twice."
NOT_SAME = "The stream gives the call of 'weather' twice, and not the same."
ITEM_FAULTS: dict[str, tuple[list[Any], list[str]]] = {
    "other arguments at the item's end": (
        [
            added(0, item(1, "weather")),
            arguments_of(1, CITY),
            {"type": "response.output_item.done", "output_index": 0, "item": item(1, "weather", '{"city": "Rome"}')},
            completed(),
        ],
        [NOT_SAME],
    ),
    "other arguments at the arguments' end": (
        [
            added(0, item(1, "weather")),
            arguments_of(1, CITY),
            arguments_of(1, '{"city": "Rome"}', is_whole=True),
            completed(),
        ],
        ["The stream gives the arguments of the call of 'weather' twice."],
    ),
    "other arguments at the response's end": (
        [added(0, item(1, "weather")), arguments_of(1, CITY), completed(item(1, "weather", '{"city": "Rome"}'))],
        ["The call of 'weather' is not in the response's end as it was in the stream."],
    ),
    "other arguments than at the start": ([STARTED, arguments_of(1, '{"table": "t1"}'), completed()], [TWICE]),
    "no call at the response's end": (
        [added(0, item(1, "weather", CITY)), completed({"type": "message", "content": []})],
        ["The call of 'weather' is not in the response's end as it was in the stream."],
    ),
    "arguments for an unknown item": (
        [added(0, item(1, "now", "{}")), arguments_of(9, "{}", index=9), completed()],
        ["The stream has arguments for the output item 'fc_9', which is no call of it."],
    ),
    "an id twice": (
        [added(0, item(1, "now", "{}")), added(1, item(1, "now", "{}")), completed()],
        ["Two output items of the stream have the id 'c1'.", "Two output items of the stream have the id 'fc_1'."],
    ),
    "a second response": (
        [{"type": "response.created"}, {"type": "response.created"}, completed(item(1, "now", "{}"))],
        ["A second response began in the stream. Use a new stream for each reply."],
    ),
    "an item after the end": ([completed(), added(0, item(1, "now", "{}"))], [WENT_ON]),
}


@pytest.mark.parametrize("form", ITEM_FAULTS)
def test_a_stream_of_items_with_this_fault_runs_nothing(form: str) -> None:
    pieces, said = ITEM_FAULTS[form]
    assert sorted(reasons(read("openai-responses", pieces))) == sorted(said)


def test_parts_after_the_end_of_a_content_run_nothing() -> None:
    part = {"functionCall": {"name": "now"}}
    response = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    assert reasons(read("gemini", [response, response])) == [WENT_ON]
    assert called(read("gemini", [response, {"candidates": [{"content": {"parts": [{"text": ""}]}}]}])) == [("now", {})]


# All

ENDED: dict[str, list[Any]] = {
    "openai": [chunk(content="Do not pay unl"), chunk("stop")],
    "openai-responses": [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Do not pay unl"},
        completed(),
    ],
    "anthropic": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Do not pay unl"}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [{"text": "Do not pay unl"}]}}]},
        {"candidates": [{"finishReason": "STOP"}]},
    ],
}


@pytest.mark.parametrize("name", ENDED)
async def test_a_stream_that_broke_off_is_refused_and_told(name: str) -> None:
    session = Session(TOOLS, protocol=name)
    stream = session.stream()
    stream.feed(ENDED[name][0])
    assert stream.is_complete is False
    turn = await session.turn(stream.reply())
    assert (turn.is_final, turn.answer, turn.reply.ended, turn.reply.is_complete) == (False, None, None, False)
    assert BROKEN in str(turn.messages)
    # The control: with its end the same stream is an answer.
    stream.feed(ENDED[name][1])
    turn = await session.turn(stream.reply())
    assert (stream.is_complete, turn.answer, turn.reply.ended) == (True, "Do not pay unl", "stop")


@pytest.mark.parametrize("name", ENDED)
async def test_a_server_that_marks_no_end_is_read_to_the_end_of_the_input(name: str) -> None:
    session = Session(TOOLS, protocol=name)
    for _ in range(3):
        stream = session.stream(marks_end=False)
        stream.feed(ENDED[name][0])
        turn = await session.turn(stream.reply())
        assert (stream.is_complete, turn.answer) == (True, "Do not pay unl")


@pytest.mark.parametrize("name", ENDED)
async def test_the_second_broken_stream_in_a_row_is_the_hosts_mistake(name: str) -> None:
    session = Session(TOOLS, protocol=name)

    async def take(count: int) -> None:
        stream = session.stream()
        for one in ENDED[name][:count]:
            stream.feed(one)
        await session.turn(stream.reply())

    await take(1)
    await take(2)
    await take(1)
    with pytest.raises(ConfigurationError) as caught:
        await take(1)
    assert str(caught.value) == (
        "2 streams in a row broke off before their end: if this server never marks the end of a reply, take "
        "session.stream(marks_end=False); else the connection breaks, or not every chunk reaches `feed`"
    )


FOREIGN: list[tuple[str, Any]] = [
    ("openai", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}),
    ("openai", {"type": "content.delta", "delta": "x", "snapshot": "x"}),
    ("openai", {"model": "m", "message": {"role": "assistant", "content": "x"}, "done": False}),
    ("openai", {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}]}),
    ("anthropic", chunk(content="x")),
    ("anthropic", {"type": "text", "text": "x", "snapshot": "x"}),
    ("openai-responses", chunk(content="x")),
    ("gemini", chunk(content="x")),
]


@pytest.mark.parametrize(("name", "given"), FOREIGN)
def test_a_stream_that_knows_no_piece_raises(name: str, given: Any) -> None:
    stream = get(name).stream()
    assert stream.feed(given) == []
    with pytest.raises(ConfigurationError, match=f"^the stream of the protocol '{name}' was fed with a"):
        stream.reply()


@pytest.mark.parametrize("name", ["attp", "xml", "json"])
async def test_a_text_is_complete_when_the_caller_says_so(name: str) -> None:
    session = Session(TOOLS, protocol=name)
    stream = session.stream()
    stream.feed("Hello.")
    assert (stream.is_complete, stream.reply().text, stream.reply().is_complete) == (None, "Hello.", None)
    stream = session.stream(marks_end=True)
    stream.feed("Hello.")
    assert (stream.is_complete, reasons(stream.reply())) == (False, [BROKEN])
    assert not (await session.turn(stream.reply())).is_final
    assert stream.end() == []
    turn = await session.turn(stream.reply())
    assert (stream.is_complete, turn.answer) == (True, "Hello.")
    with pytest.raises(ConfigurationError, match=r"^the stream has ended, by its `end`: use a new stream"):
        stream.feed("More.")


@pytest.mark.parametrize("name", ["openai", "xml"])
def test_nothing_can_be_fed_after_the_end_of_the_input(name: str) -> None:
    stream = get(name).stream(TOOLS)
    stream.end()
    with pytest.raises(ConfigurationError):
        stream.feed(None)
