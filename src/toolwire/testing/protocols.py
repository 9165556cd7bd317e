"""A conformance kit for calling formats: the guarantees that a session relies on, for any model output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Tool
from toolwire.protocols.base import CallingProtocol
from toolwire.testing.checks import holds, run_checks
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply, ToolCall
from toolwire.vocabulary.results import ToolResult

CheckProtocol = Callable[[CallingProtocol], None]


def check_protocol(protocol: CallingProtocol) -> None:
    """Runs every check of `PROTOCOL_CHECKS` on a calling format of your own: `check_protocol(MyProtocol())`.

    Raises:
        PortFails: At least one check failed.
    """
    run_checks(PROTOCOL_CHECKS, protocol)


def search(query: str, limit: int = 10, deep: bool = False) -> list[str]:
    """Searches the archive."""
    return [f"{query} {deep}"] * limit


def note(text: str, tags: list[str] | None = None, place: dict[str, float] | None = None) -> str:
    """Takes a note."""
    return f"{text} {tags} {place}"


_TOOLS: tuple[Tool, ...] = (from_function(search), from_function(note))
_CALLS = (
    [("search", {"query": "otters"})],
    [("search", {"query": "otters", "limit": 3, "deep": True}), ("note", {"text": "b"})],
    [("note", {"text": 'line one\nline "two" <b>&amp;</b> \\n \t ]]> ```', "tags": ["å", "水獭", "🦦", ""]})],
    [("note", {"text": "", "place": {"lat": -0.5, "lon": 1e-7}})],
)
_PROGRAMS = ("print(search(query='otters'))", 'x = """\n```\n\'\'\'\n"""\n__result__ = len(x)')
_GARBAGE = ("", " ", "\x00", "}", "{", "<", "```", "<tool_call>", '{"tool_calls": [', "\ud800", "水" * 50, "[" * 500)


def _example_calls(protocol: CallingProtocol) -> list[list[ToolCall]]:
    """Returns calls that a model of this format could make."""
    if protocol.writes_programs:
        return [[ToolCall(CODE_EXECUTION, {"code": program})] for program in _PROGRAMS]
    return [
        [ToolCall(name, arguments, id=f"call_{place}") for place, (name, arguments) in enumerate(calls)]
        for calls in _CALLS
    ]


def _call_pairs(calls: Sequence[ToolCall]) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in calls]


def _what_is_rendered_is_read(protocol: CallingProtocol) -> None:
    for calls in _example_calls(protocol):
        reply = protocol.parse(protocol.render(calls), _TOOLS)
        holds(
            _call_pairs(reply.calls) == _call_pairs(calls),
            f"{_call_pairs(calls)} was rendered and read as {_call_pairs(reply.calls)}",
        )
        repaired = [problem.message for problem in reply.problems]
        holds(not repaired, f"its own rendering of {_call_pairs(calls)} needed repairs: {repaired}")


def _reading_is_pure(protocol: CallingProtocol) -> None:
    for calls in _example_calls(protocol):
        rendered = protocol.render(calls)
        before = json.dumps(rendered, default=str)
        first, second = (_without_ids(protocol.parse(rendered, _TOOLS)) for _ in range(2))
        holds(first == second, f"one reply was read twice, as {first} and as {second}")
        holds(json.dumps(rendered, default=str) == before, "reading a reply changed it")


def _nothing_makes_it_raise(protocol: CallingProtocol) -> None:
    for said in (*_GARBAGE, b"\xff\xfe", *_damaged_replies(protocol)):
        for tools in ((), _TOOLS):
            reply = _parse_reply(protocol, said, tools)
            what_is_unclear = [call for call in reply.calls if reply.is_refused]
            holds(not what_is_unclear, f"{said!r:.200} was refused, and has calls all the same: {what_is_unclear}")


def _parse_reply(protocol: CallingProtocol, said: Any, tools: Sequence[Tool]) -> Reply:
    try:
        return protocol.parse(said, tools)
    except Exception as error:
        holds(False, f"{said!r:.200} made it raise {error!r}")
        raise


def _damaged_replies(protocol: CallingProtocol) -> list[str]:
    """Returns its own text cut at every position, and with each single character removed."""
    found: list[str] = []
    for rendered in map(protocol.render, _example_calls(protocol)):
        if isinstance(rendered, str):
            found += [rendered[:place] for place in range(len(rendered))]
            found += [rendered[:place] + rendered[place + 1 :] for place in range(len(rendered))]
    return found


def _pieces_do_not_matter(protocol: CallingProtocol) -> None:
    texts = [text for text in map(protocol.render, _example_calls(protocol)) if isinstance(text, str)]
    for text in (*texts, *(f"Let me see.\n\n{one}\n" for one in texts), *_GARBAGE):
        if protocol.is_native:
            return
        whole = _without_ids(protocol.parse(text, _TOOLS))
        for size in (1, 2, 7, len(text) or 1):
            stream = protocol.stream(_TOOLS)
            for place in range(0, len(text), size):
                stream.feed(text[place : place + size])
            came = _without_ids(stream.reply())
            holds(came == whole, f"{text!r:.200} in pieces of {size} is {came}, and whole it is {whole}")


def _without_ids(reply: Reply) -> tuple[Any, ...]:
    problems = [(problem.message, problem.repaired) for problem in reply.problems]
    return _call_pairs(reply.calls), reply.text, reply.thought, reply.failure, problems


def _tells_of_every_tool(protocol: CallingProtocol) -> None:
    told = protocol.describe(_TOOLS)
    holds(isinstance(told, list) == protocol.is_native, "a text protocol describes by text, a native one by dicts")
    text = told if isinstance(told, str) else json.dumps(told)
    missing = [tool.name for tool in _TOOLS if tool.name not in text or tool.description not in text]
    holds(not missing, f"it describes tools and leaves out the name or the words of {missing}")
    holds(protocol.describe(_TOOLS) == told, "it describes the same tools differently the second time")


def _results_reach_the_model(protocol: CallingProtocol) -> None:
    calls = [ToolCall("search", {"query": "otters"}, id="call_0"), ToolCall("note", {"text": "b"}, id="call_1")]
    results = [
        ToolResult(True, "seven otters", call=calls[0]),
        ToolResult.failed("tool_error", "the pen is empty", call=calls[1]),
    ]
    told = json.dumps(protocol.format(results), ensure_ascii=False)
    missing = [text for text in ("seven otters", "the pen is empty") if text not in told]
    holds(not missing, f"the model does not read {missing}")


def _prompts_reach_the_model(protocol: CallingProtocol) -> None:
    for prompt in ("seven otters", ["seven otters", {"type": "text", "text": "swim"}]):
        messages = protocol.prompt(cast("Any", prompt))
        holds(json.dumps(messages).count("seven otters") == 1, f"the model reads {messages} as the prompt {prompt}")


def _a_refusal_says_why(protocol: CallingProtocol) -> None:
    for said in (*_GARBAGE, *_damaged_replies(protocol)):
        reply = protocol.parse(said, _TOOLS)
        if reply.is_refused:
            holds(bool(protocol.refuse(reply)), f"{said!r:.200} is refused, and the model is told nothing")


def _a_copied_reminder_does_nothing(protocol: CallingProtocol) -> None:
    if not protocol.is_native and protocol.reminder:
        copied = protocol.parse(protocol.reminder, _TOOLS)
        ended = copied.calls or copied.failure is not None
        holds(not ended, "its reminder makes a call or gives up, if a model copies it")


def _knows_its_own(protocol: CallingProtocol) -> None:
    for calls in _example_calls(protocol):
        rendered = protocol.render(calls)
        holds(protocol.recognises(rendered), f"it does not recognise its own {rendered!r:.200}")


PROTOCOL_CHECKS: Mapping[str, CheckProtocol] = {
    "what is rendered is read": _what_is_rendered_is_read,
    "reading is pure": _reading_is_pure,
    "nothing makes it raise": _nothing_makes_it_raise,
    "pieces do not matter": _pieces_do_not_matter,
    "tells of every tool": _tells_of_every_tool,
    "prompts reach the model": _prompts_reach_the_model,
    "results reach the model": _results_reach_the_model,
    "a refusal says why": _a_refusal_says_why,
    "a copied reminder does nothing": _a_copied_reminder_does_nothing,
    "knows its own": _knows_its_own,
}
"""The checks by name, to run one by one; each raises `PortFails`. Streaming is checked for text protocols only: the
provider defines the pieces of a native one.
"""
