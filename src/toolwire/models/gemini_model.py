"""Models behind Google's SDK for Gemini."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
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
    without_key,
)
from toolwire.protocols import CallingProtocol
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from google.genai import Client

ATTEMPTS = 3
"""Tries of one request. This SDK has no retries by default; the others have two besides the first try."""


class GeminiModel:
    """A model of Google.

    `protocol` is `gemini`, or a text protocol such as `attp`. `settings` go into the `config` of each request, such as
    `temperature=0`. A client of your own has its own retries; without one, a request is tried 3 times.

    Attributes:
        name: The model's name.
        provider: The provider's name in traces.

    Raises:
        ConfigurationError: The SDK is not installed, or there is no key, or an option does not fit.
    """

    provider = "gcp.gemini"

    def __init__(
        self,
        model: str,
        *,
        client: Client | None = None,
        protocol: str | CallingProtocol | None = None,
        price: Price | None = None,
        **settings: Any,
    ) -> None:
        try:
            from google import genai
            from google.genai import errors, types
        except ImportError as error:
            raise ConfigurationError("GeminiModel needs Google's SDK: pip install google-genai") from error
        self.protocol = protocol_of(protocol, "gemini")
        self.price = price
        self.name = model
        self._settings = {"automatic_function_calling": {"disable": True}, **settings}
        retries = types.HttpRetryOptions(attempts=ATTEMPTS)
        check_client("GeminiModel", client, genai.Client, settings)
        with without_key("GeminiModel", "GEMINI_API_KEY", ValueError):
            self._client = client or genai.Client(http_options=types.HttpOptions(retry_options=retries))
        # A stream that is cut in the middle of a chunk is an UnknownApiResponseError, which is no APIError.
        self._errors = (errors.APIError, errors.UnknownApiResponseError, *connection_errors())

    async def stream(self, request: Request, /) -> AsyncGenerator[Any]:
        """Yields the chunks of one reply, or its texts for a text protocol, and its `Usage`.

        Raises:
            ModelFailed: There is no reply, or it broke off.
        """
        config: dict[str, Any] = {"system_instruction": request.system} if request.system else {}
        if request.tools:
            config["tools"] = request.tools
        contents = (
            request.messages if self.protocol == "gemini" else [_message_content(one) for one in request.messages]
        )
        models: Any = self._client.aio.models
        async with provider_errors(*self._errors):
            options = {"contents": contents, "config": {**config, **self._settings}}
            stream = await models.generate_content_stream(model=self.name, **options)
            async with aclosing(stream):
                has_ended, used = False, None
                async for chunk in stream:
                    used = chunk.usage_metadata or used
                    has_ended = has_ended or any(one.finish_reason for one in chunk.candidates or ())
                    has_ended = has_ended or bool(chunk.prompt_feedback and chunk.prompt_feedback.block_reason)
                    if self.protocol == "gemini":
                        yield chunk
                    elif text := _chunk_text(chunk):
                        yield text
                if used is not None:
                    yield _usage(used)
        if not has_ended:
            raise ModelFailed("network", ENDED_EARLY, has_begun=True)


def _message_content(message: Any) -> dict[str, Any]:
    """Returns a message of a text protocol in this API's form."""
    role = "model" if message["role"] == "assistant" else "user"
    return {"role": role, "parts": [{"text": message["content"]}]}


def _chunk_text(chunk: Any) -> str:
    """Returns the text of a chunk, without thinking. The SDK's own `text` warns of each chunk that has none."""
    contents = [one.content for one in (chunk.candidates or ())[:1] if one.content is not None]
    return "".join(part.text or "" for content in contents for part in content.parts or () if not part.thought)


def _usage(used: Any) -> Usage:
    output = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
    return Usage(input=used.prompt_token_count or 0, output=output, cached=used.cached_content_token_count or 0)
