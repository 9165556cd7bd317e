"""Models behind Anthropic's SDK."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from toolwire.models.model import (
    ENDED_EARLY,
    ModelFailed,
    Price,
    Request,
    Usage,
    check_client,
    connection_errors,
    protocol_of,
    provider_errors,
)
from toolwire.protocols import CallingProtocol
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

MAX_TOKENS = 8_192
"""Tokens of a reply at most, which this API asks for. All its present models allow as many."""


class AnthropicModel:
    """A model of Anthropic, or of a server with its API: give a `client` with another `base_url`.

    `protocol` is `anthropic`, or a text protocol such as `attp`. `settings` go into each request; without `max_tokens`
    among them a reply has at most 8,192 tokens. Retries are those of the client.

    Attributes:
        name: The model's name.
        provider: The provider's name in traces.

    Raises:
        ConfigurationError: The SDK is not installed, or there is no key, or an option does not fit.
    """

    provider = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        client: AsyncAnthropic | None = None,
        protocol: str | CallingProtocol | None = None,
        price: Price | None = None,
        **settings: Any,
    ) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise ConfigurationError("AnthropicModel needs Anthropic's SDK: pip install anthropic") from error
        self.protocol = protocol_of(protocol, "anthropic")
        self.price = price
        self.name = model
        self._settings = {"max_tokens": MAX_TOKENS, **settings}
        check_client("AnthropicModel", client, anthropic.AsyncAnthropic, settings)
        # This client looks for its key at the first request.
        if client is None and not (os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_AUTH_TOKEN")):
            raise ConfigurationError("AnthropicModel found no key: set ANTHROPIC_API_KEY, or give client=")
        self._client = client or anthropic.AsyncAnthropic()
        self._errors = (anthropic.APIError, *connection_errors())

    async def stream(self, request: Request, /) -> AsyncGenerator[Any]:
        """Yields the events of one reply, or its texts for a text protocol, and its `Usage`.

        Raises:
            ModelFailed: There is no reply, or it broke off.
        """
        options: dict[str, Any] = {"system": request.system} if request.system else {}
        if request.tools:
            options["tools"] = request.tools
        create: Any = self._client.messages.create
        asking = create(model=self.name, messages=request.messages, stream=True, **options, **self._settings)
        has_ended = False
        async with provider_errors(*self._errors), await asking as stream:
            async for event in stream:
                has_ended = has_ended or event.type in ("message_stop", "error")
                if (usage := _usage(event)) is not None:
                    yield usage
                if self.protocol == "anthropic":
                    yield event
                elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                    yield event.delta.text
        if not has_ended:
            raise ModelFailed("network", ENDED_EARLY, has_begun=True)


def _usage(event: Any) -> Usage | None:
    """Returns the tokens of the request at the beginning, and those of the reply at the end."""
    if event.type == "message_start":
        used = event.message.usage
        cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
        return Usage(input=used.input_tokens + cached + written, cached=cached)
    return Usage(output=event.usage.output_tokens or 0) if event.type == "message_delta" else None
