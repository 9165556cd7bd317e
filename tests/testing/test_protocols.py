"""The kit for calling formats passes the built-in ones, and names the fault of a wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import protocols
from toolwire.protocols.base import CallingProtocol
from toolwire.protocols.native.openai import OpenAi
from toolwire.testing import PROTOCOL_CHECKS, PortFails, check_protocol
from toolwire.vocabulary.calls import Problem, Reply, ToolCall


@pytest.mark.parametrize("name", protocols.names())
@pytest.mark.parametrize("check", PROTOCOL_CHECKS)
def test_the_built_in_ones_pass(name: str, check: str) -> None:
    PROTOCOL_CHECKS[check](protocols.get(name))


class Json:
    """The protocol `json`, for parts that do it wrong."""

    inner = protocols.get("json")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class DropsEmptyTexts(Json):
    def parse(self, reply: Any, tools: Any = ()) -> Reply:
        read = self.inner.parse(reply, tools)
        calls = [ToolCall(call.name, {k: v for k, v in call.arguments.items() if v != ""}) for call in read.calls]
        return Reply(calls=tuple(calls), text=read.text, problems=read.problems)


class Raises(Json):
    def parse(self, reply: Any, tools: Any = ()) -> Reply:
        if reply == "\x00":
            raise ValueError("no text")
        return self.inner.parse(reply, tools)


class RunsWhatItRefuses(Json):
    def parse(self, reply: Any, tools: Any = ()) -> Reply:
        read = self.inner.parse(reply, tools)
        if reply != "{":
            return read
        problem = Problem(message="no", repaired=False)
        return Reply(calls=(ToolCall("search", {}),), problems=(problem,))


class ForgetsTools(OpenAi):
    def describe(self, tools: Any, **options: Any) -> Any:
        return super().describe(list(tools)[:1], **options)


class HidesFailures(Json):
    def format(self, results: Any) -> Any:
        return self.inner.format([result for result in results if result.success])


class SaysNothing(Json):
    def refuse(self, reply: Any) -> Any:
        return ""


class RemindsByACall(Json):
    reminder = '<tool_call>{"name": "search", "arguments": {"query": "otters"}}</tool_call>'


class KnowsNothing(Json):
    def recognises(self, reply: Any) -> bool:
        return False


class Remembers(Json):
    """Gives another reading the second time."""

    count = 0

    def parse(self, reply: Any, tools: Any = ()) -> Reply:
        self.count += 1
        read = self.inner.parse(reply, tools)
        return Reply(calls=read.calls, text=f"{read.text}{self.count}", problems=read.problems)


class _Stream:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def feed(self, delta: Any) -> Any:
        # A piece of one character is taken for a sign of life.
        return [] if len(delta) == 1 else self.inner.feed(delta)

    def reply(self) -> Any:
        return self.inner.reply()


class LosesPieces(Json):
    def stream(self, tools: Any = ()) -> Any:
        return _Stream(self.inner.stream(tools))


@pytest.mark.parametrize(
    ("protocol", "broken"),
    [
        (DropsEmptyTexts(), ["what is rendered is read", "pieces do not matter"]),
        (Raises(), ["nothing makes it raise", "pieces do not matter", "a refusal says why"]),
        (RunsWhatItRefuses(), ["nothing makes it raise", "pieces do not matter"]),
        (ForgetsTools(), ["tells of every tool"]),
        (HidesFailures(), ["results reach the model"]),
        (SaysNothing(), ["a refusal says why"]),
        (RemindsByACall(), ["a copied reminder does nothing"]),
        (KnowsNothing(), ["knows its own"]),
        (Remembers(), ["reading is pure", "pieces do not matter"]),
        (LosesPieces(), ["pieces do not matter"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_a_wrong_protocol_is_told_by_what_it_does(protocol: CallingProtocol, broken: list[str]) -> None:
    with pytest.raises(PortFails) as failed:
        check_protocol(protocol)
    assert [line.partition(": ")[0] for line in str(failed.value).splitlines() if ": " in line] == broken
