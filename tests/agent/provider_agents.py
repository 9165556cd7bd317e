"""Agents whose models ask a local provider through the real SDKs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.agent.provider_replies import Voice
from tests.protocols.providers import Provider, provider
from toolwire import Agent, ToolSpec
from toolwire.models import AnthropicModel, GeminiModel, OpenAIModel

WAYS: dict[str, tuple[str, str]] = {
    "openai": ("openai", "openai"),
    "openai-responses": ("openai-responses", "openai-responses"),
    "anthropic": ("anthropic", "anthropic"),
    "gemini": ("gemini", "gemini"),
    "xml": ("openai", "xml"),
    "attp": ("anthropic", "attp"),
}
"""The API and the protocol of each way to ask a model."""


@dataclass
class World:
    """A provider, the model that asks it, and a tool with an effect."""

    provider: Provider
    voice: Voice
    closes: list[Any] = field(default_factory=list[Any])
    """What closes the clients of the models."""
    paid: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.model = self.make(retries=0)

    def make(self, *, retries: int) -> Any:
        """A model whose SDK makes a request again so often."""
        return _model(self.voice.api, self.voice.protocol, self.provider.url, retries, self.closes)

    def pay(self, amount: int) -> str:
        """Pays an amount."""
        self.paid.append(amount)
        return f"paid {amount}"

    def agent(self, *tools: Any, **options: Any) -> Agent[Any]:
        """An agent that can pay."""
        return Agent("clerk", options.pop("model", self.model), [ToolSpec.from_function(self.pay), *tools], **options)

    def script(self, *answers: Any) -> None:
        """Sets the next answers of the provider."""
        self.provider.script[:] = answers

    def call(self, *amounts: int, thought: str = "I have to pay.") -> list[Any]:
        """The stream of a reply that pays these amounts."""
        return self.voice.reply("", *(("pay", {"amount": amount}) for amount in amounts), thought=thought)


@pytest.fixture(scope="module")
def stand_in() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(params=WAYS)
async def world(request: pytest.FixtureRequest, stand_in: Provider) -> AsyncIterator[World]:
    """Each way to ask a model."""
    api, protocol = WAYS[request.param]
    voice = Voice(api, protocol)
    stand_in.script[:], stand_in.requests[:], stand_in.rule = [], [], voice.rule
    stand_in.silences = stand_in.closes = 0
    found = World(provider=stand_in, voice=voice)
    yield found
    for close in found.closes:
        await close()


def _model(api: str, protocol: str, url: str, retries: int, closes: list[Any]) -> Any:
    if api == "gemini":
        again = types.HttpRetryOptions(attempts=retries + 1, initial_delay=0.01, max_delay=0.02)
        client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url, retry_options=again))
        closes.append(client.aio.aclose)
        return GeminiModel("m", client=client, protocol=protocol)
    if api == "anthropic":
        claude = anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=retries)
        closes.append(claude.close)
        return AnthropicModel("m", client=claude, protocol=protocol)
    chat = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=retries)
    closes.append(chat.close)
    kind: Any = "responses" if api == "openai-responses" else "chat"
    return OpenAIModel("m", client=chat, api=kind, protocol=protocol)
