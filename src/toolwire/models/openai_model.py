"""Models behind OpenAI's SDK: its chat and responses APIs, and every server that speaks one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Literal

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
    without_key,
)
from toolwire.protocols import CallingProtocol
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

NATIVE = {"chat": "openai", "responses": "openai-responses"}
"""The native protocol of each API."""


class OpenAIModel:
    """A model of OpenAI, or of a server with its API: give a `client` with another `base_url`.

    `api` is `chat` or `responses`. `protocol` is the API's native one, or a text protocol such as `attp`. `settings` go
    into each request, such as `temperature=0`. Retries are those of the client.

    Attributes:
        name: The model's name.
        provider: The provider's name in traces.

    Raises:
        ConfigurationError: The SDK is not installed, or there is no key, or an option does not fit.
    """

    provider = "openai"

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        api: Literal["chat", "responses"] = "chat",
        protocol: str | CallingProtocol | None = None,
        price: Price | None = None,
        **settings: Any,
    ) -> None:
        try:
            import openai
        except ImportError as error:
            raise ConfigurationError("OpenAIModel needs OpenAI's SDK: pip install openai") from error
        if api not in NATIVE:
            raise ConfigurationError(f"OpenAIModel(api={api!r:.40}): write 'chat' or 'responses'")
        self.protocol = protocol_of(protocol, NATIVE[api])
        self.price = price
        self.name = model
        self._api, self._settings = api, settings
        check_client("OpenAIModel", client, openai.AsyncOpenAI, settings)
        with without_key("OpenAIModel", "OPENAI_API_KEY", openai.OpenAIError):
            self._client = client or openai.AsyncOpenAI()
        self._errors = (openai.APIError, *connection_errors())

    async def stream(self, request: Request, /) -> AsyncGenerator[Any]:
        """Yields the chunks or events of one reply, or its texts for a text protocol, and its `Usage`.

        Raises:
            ModelFailed: There is no reply, or it broke off.
        """
        is_native = self.protocol == NATIVE[self._api]
        async with provider_errors(*self._errors), await self._open(request) as stream:
            has_ended = False
            async for piece in stream:
                text, usage, is_end = _chunk(piece) if self._api == "chat" else _event(piece)
                has_ended = has_ended or is_end
                if usage is not None:
                    yield usage
                if is_native or text:
                    yield piece if is_native else text
        if not has_ended:
            raise ModelFailed("network", ENDED_EARLY, has_begun=True)

    async def _open(self, request: Request) -> Any:
        tools: dict[str, Any] = {"tools": request.tools} if request.tools else {}
        if self._api == "responses":
            system = {"instructions": request.system} if request.system else {}
            create: Any = self._client.responses.create
            return await create(
                model=self.name, input=request.messages, stream=True, **system, **tools, **self._settings
            )
        messages = [{"role": "system", "content": request.system}] if request.system else []
        options = {"stream_options": {"include_usage": True}, **tools, **self._settings}
        create = self._client.chat.completions.create
        return await create(model=self.name, messages=[*messages, *request.messages], stream=True, **options)


def _chunk(chunk: Any) -> tuple[str, Usage | None, bool]:
    """Returns the text, the usage and the end in a chunk of the chat API."""
    text = "".join(choice.delta.content or "" for choice in chunk.choices[:1])
    is_end = any(choice.finish_reason for choice in chunk.choices)
    used = chunk.usage
    if used is None:
        return text, None, is_end
    details = used.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details is not None else 0
    return text, Usage(input=used.prompt_tokens, output=used.completion_tokens, cached=cached), is_end


def _event(event: Any) -> tuple[str, Usage | None, bool]:
    """Returns the text, the usage and the end in an event of the responses API."""
    text = event.delta if event.type == "response.output_text.delta" else ""
    if event.type not in ("response.completed", "response.incomplete", "response.failed"):
        return text, None, event.type == "error"
    used = event.response.usage
    if used is None:
        return text, None, True
    cached = used.input_tokens_details.cached_tokens if used.input_tokens_details is not None else 0
    return text, Usage(input=used.input_tokens, output=used.output_tokens, cached=cached or 0), True
