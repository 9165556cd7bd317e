"""Agents over the real SDKs, and a strict stand-in for each provider: whole runs, and every fault of a request."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from typing import Any

import pytest
from pydantic import BaseModel

from tests.agent.provider_agents import World
from tests.agent.provider_agents import stand_in as stand_in
from tests.agent.provider_agents import world as world
from tests.patience import until
from tests.protocols.providers import Fault
from toolwire import Budget, ConfigurationError
from toolwire.models import Usage

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(32)).decode()


class Report(BaseModel):
    """The end of the work."""

    total: int


async def goes_on(world: World, agent: Any, *, asked: int) -> None:
    """The next prompt of the conversation is answered, with one request that the provider takes."""
    world.script(world.voice.reply("Welcome."))
    result = await agent.run("Thanks.", conversation="c")
    assert (result.stop, result.text) == ("answered", "Welcome."), result.error
    assert len(world.provider.requests) == asked + 1


async def test_a_whole_run_thinks_calls_and_ends(world: World) -> None:
    agent = world.agent(output=Report, instructions="Be kind.")
    world.script(
        world.call(5),
        world.call(6, 7, thought="Two more."),
        world.voice.reply("I report.", ("report", {"total": 18}), thought="Done."),
    )
    events = [event async for event in agent.stream("Pay.", conversation="c")]
    result = events[-1].result
    assert result is not None
    assert (result.stop, result.output, sorted(world.paid)) == ("answered", Report(total=18), [5, 6, 7]), result.error
    assert result.usage == Usage(input=120, output=12)
    assert "Be kind." in str(world.provider.requests[0])
    assert "paid 5" in str(world.provider.requests[1])
    assert [event.attempt for event in events if event.type == "reply"] == [1, 1, 1]
    await goes_on(world, agent, asked=3)


async def test_an_image_of_the_prompt_reaches_the_provider(world: World) -> None:
    world.script(world.voice.reply("A pixel."))
    source: Any = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    agent = world.agent()
    if world.model.protocol != world.voice.api:
        with pytest.raises(ConfigurationError, match="cannot take this image block"):
            await agent.run(["What is it?", {"type": "image", "source": source}], conversation="c")
        return
    result = await agent.run(["What is it?", {"type": "image", "source": source}], conversation="c")
    assert (result.stop, result.text) == ("answered", "A pixel."), result.error
    assert PIXEL[:12] in str(world.provider.requests[0]).replace("_", "/").replace("-", "+")
    await goes_on(world, agent, asked=1)


FAULTS = {
    "429": (429, (), "rate"),
    "429 retry-after": (429, (("retry-after-ms", "20"), ("retry-after", "0.02")), "rate"),
    "500": (500, (), "overloaded"),
    "503": (503, (), "overloaded"),
    "529": (529, (), "overloaded"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_a_result_and_the_run_goes_on(world: World, fault: str) -> None:
    status, headers, kind = FAULTS[fault]
    agent = world.agent()
    world.script(world.call(5), Fault(status=status, headers=headers))
    result = await agent.run("Pay.", conversation="c")
    assert (result.stop, result.error and result.error.kind, world.paid) == ("model", kind, [5])
    assert len(world.provider.requests) == 2
    world.script(world.voice.reply("Paid."))
    assert (await agent.run(conversation="c")).text == "Paid."
    await goes_on(world, agent, asked=3)


async def test_the_sdk_makes_a_request_again_when_the_provider_says_when(world: World) -> None:
    agent = world.agent(model=world.make(retries=2))
    fault = Fault(status=429, headers=(("retry-after-ms", "20"), ("retry-after", "0.02")))
    world.script(world.call(5), fault, fault, world.voice.reply("Paid."))
    events = [event async for event in agent.stream("Pay.", conversation="c")]
    assert (events[-1].result and events[-1].result.text, world.paid) == ("Paid.", [5])
    # The SDK's retries are none of the agent's.
    assert [event.attempt for event in events if event.type == "reply"] == [1, 1]
    await goes_on(world, agent, asked=4)


@pytest.mark.parametrize("broken", ["text", "calls"])
async def test_a_stream_that_is_cut_anywhere_is_asked_for_again(world: World, broken: str, whole: bool) -> None:
    for at in range(16) if whole else (0, 5, 10, 15):
        conversation, agent = f"c{at}", world.agent()
        world.paid.clear()
        world.provider.requests.clear()
        call, text = world.call(5), world.voice.reply("Paid, and that was all.")
        # Behind the end of a reply, the chat API tells its usage.
        uncut = [event for event in (call if broken == "calls" else text) if event.get("choices") != []]
        cut = Fault(events=tuple(uncut), share=at / 16, breaks=at % 2 == 1)
        script = [cut, call, text] if broken == "calls" else [call, cut, text]
        world.script(*script)
        events = [event async for event in agent.stream("Pay.", conversation=conversation)]
        result = events[-1].result
        assert result is not None
        place = f"{at}/16: {result.error}"
        if result.stop == "model":
            # Nothing of the reply had come, so that its SDK may ask again, and nobody else.
            assert result.error is not None
            assert (result.error.kind, result.error.has_begun) == ("network", False), place
            world.script(*script[-len(world.provider.script) or len(script) :])
            result = await agent.run(conversation=conversation)
        else:
            attempts = [event.attempt for event in events if event.type == "reply"]
            assert attempts == ([1, 2, 1] if broken == "calls" else [1, 1, 2]), place
        assert (result.stop, result.text, world.paid) == ("answered", "Paid, and that was all.", [5]), place
        assert len(world.provider.requests) == 3, place
        world.script(world.voice.reply("Welcome."))
        assert (await agent.run("Thanks.", conversation=conversation)).text == "Welcome.", place


async def test_three_cuts_end_the_run_and_it_goes_on(world: World) -> None:
    agent = world.agent()
    cut = Fault(events=tuple(world.call(5)), share=0.5)
    world.script(cut, cut, cut)
    events = [event async for event in agent.stream("Pay.", conversation="c")]
    result = events[-1].result
    assert result is not None
    assert (result.stop, result.error and result.error.kind, world.paid) == ("model", "network", [])
    assert [event.attempt for event in events if event.type == "reply"] == [1, 2, 3]
    await goes_on(world, agent, asked=3)


@pytest.mark.parametrize("share", [0.0, 0.6], ids=["at the beginning", "in the middle"])
async def test_silence_ends_with_the_seconds_and_the_connection_is_closed(world: World, share: float) -> None:
    agent = world.agent(budget=Budget(seconds=1.5))
    world.script(world.call(5), Fault(events=tuple(world.call(6)), share=share, is_silent=True))
    begun = time.monotonic()
    result = await agent.run("Pay.", conversation="c")
    assert (result.stop, world.paid) == ("seconds", [5])
    assert 1.4 < time.monotonic() - begun < 2.5
    await asyncio.to_thread(until, lambda: world.provider.closes == 1)
    await goes_on(world, agent, asked=2)


LONG = 10_000_000


async def test_an_answer_of_ten_megabytes_is_read(world: World) -> None:
    agent, words = world.agent(), "word " * (LONG // 5)
    world.script(world.voice.reply(words), world.voice.reply("Shorter."))
    result = await agent.run("Write.", conversation="c")
    # A text protocol reads no reply of this length, and the responses API sends each text three times. The model is
    # told that it is too long, and the same request is not made again.
    is_read = world.model.protocol in ("openai", "anthropic", "gemini")
    assert (result.stop, result.text) == ("answered", words if is_read else "Shorter."), result.error
    asked = 1 if is_read else 2
    assert is_read or re.search("Write less|Write a shorter one", str(world.provider.requests[-1]))
    await goes_on(world, agent, asked=asked)


async def test_arguments_of_ten_megabytes_are_refused_and_the_model_is_told(world: World) -> None:
    def note(text: str) -> str:
        """Notes a text."""
        raise AssertionError("it ran")

    agent = world.agent(note)
    world.script(world.voice.reply("", ("note", {"text": "word " * (LONG // 5)})), world.voice.reply("Noted."))
    result = await agent.run("Write.", conversation="c")
    assert (result.stop, result.text) == ("answered", "Noted."), result.error
    assert re.search("Write less|Write a shorter one", str(world.provider.requests[1]))
    await goes_on(world, agent, asked=2)


TOO_LONG = {
    "openai": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "anthropic": "prompt is too long: 201337 tokens > 200000 maximum",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
}


async def test_a_conversation_that_is_too_long_is_shortened_once(world: World) -> None:
    def read() -> str:
        """Reads."""
        return "x" * 20_000

    agent = world.agent(read)
    too_long = Fault(status=400, words=TOO_LONG[world.voice.api])
    reads = [world.voice.reply("", ("read", {}), thought=f"Page {page}.") for page in range(2)]
    world.script(world.call(5), *reads, too_long, world.voice.reply("Read."))
    result = await agent.run("Read.", conversation="c")
    assert (result.stop, result.text, world.paid) == ("answered", "Read.", [5]), result.error
    sizes = [len(str(request)) for request in world.provider.requests]
    assert len(sizes) == 5
    assert sizes[4] < 0.7 * sizes[3]
    # A second error is the end of the run: nothing is left out twice for one reply.
    world.script(world.voice.reply("", ("read", {})), world.voice.reply("", ("read", {})), too_long, too_long)
    result = await agent.run("More.", conversation="c")
    assert (result.stop, result.error and result.error.kind) == ("model", "context_length")
    assert len(world.provider.requests) == 9
    await goes_on(world, agent, asked=9)
