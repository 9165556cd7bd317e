"""`ScriptedModel` plays replies in every protocol, and notes what it was asked."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ConfigurationError, Session
from toolwire.models import ModelFailed, Price, Request, Usage
from toolwire.testing import ScriptedModel

PROTOCOLS = ["openai", "openai-responses", "anthropic", "gemini", "json", "xml"]


def double(n: int) -> int:
    """Doubles."""
    return 2 * n


async def played(model: Any) -> tuple[list[Any], str | None, Usage]:
    """Returns the results and the answer of a loop over the model, and what it used."""
    session, results, used = Session([double], protocol=model.protocol), list[Any](), Usage()
    messages: list[Any] = [{"role": "user", "content": "?"}]
    while True:
        stream = session.stream()
        async for piece in model.stream(Request(messages=list(messages))):
            if isinstance(piece, Usage):
                used += piece
            else:
                stream.feed(piece)
        turn = await session.turn(stream.reply())
        results += [result.data for result in turn.results]
        if turn.is_final:
            return results, turn.answer, used
        messages += turn.messages


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_list_of_replies_is_played(protocol: str) -> None:
    model = ScriptedModel([[("double", {"n": 2}), ("double", {"n": 3})], "Done."], protocol=protocol)
    assert await played(model) == ([4, 6], "Done.", Usage(input=200, output=20))
    assert len(model.requests) == 2
    assert "6" in str(model.requests[1].messages)


async def test_a_function_gives_the_reply_to_a_request() -> None:
    model = ScriptedModel(lambda request: "Bye." if len(request.messages) > 1 else [("double", {"n": 1})])
    assert (await played(model))[:2] == ([2], "Bye.")


async def test_an_exception_is_raised() -> None:
    with pytest.raises(ModelFailed, match="no key") as failed:
        await played(ScriptedModel([ModelFailed("auth", "no key")]))
    assert failed.value.kind == "auth"


async def test_the_end_of_the_script_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="has no reply to request 2"):
        await played(ScriptedModel([[("double", {"n": 1})]]))


async def test_the_usage_and_the_price_are_those_that_are_given() -> None:
    price, usage = Price(input=1, output=2), Usage(input=5, output=1, cached=4)
    model = ScriptedModel(["Hi."], price=price, usage=usage)
    assert (await played(model), model.price) == (([], "Hi.", usage), price)


def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(ConfigurationError):
        ScriptedModel([], protocol="morse")
