"""The models of `toolwire chat`, by the name that a person writes."""

from __future__ import annotations

import os
from typing import Any

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop
from toolwire.models import AnthropicModel, GeminiModel, Model, OpenAIModel

_CLASSES: dict[str, Any] = {"openai": OpenAIModel, "anthropic": AnthropicModel, "gemini": GeminiModel}
_NO_KEY = "none"
"""The key for a server at another address: most ask for none, and the SDKs want a text."""


def model_of(named: str, base_url: str | None) -> Model:
    """Returns the model of a text such as `openai:gpt-x-mini`, at the address `base_url` if there is one.

    Raises:
        Stop: There is no such provider, its SDK or its key is missing, or the address is not one.
    """
    provider, _, name = named.partition(":")
    if provider not in _CLASSES or not name.strip():
        hint = f"Write {', '.join(f'{known}:NAME' for known in _CLASSES)}."
        raise Stop(ExitCode.WRONG_USAGE, f"--model {named!r:.80} names no model", hint=hint)
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        hint = "Write one that begins with http:// or https://."
        raise Stop(ExitCode.WRONG_USAGE, f"--base-url {base_url!r:.80} is no address", hint=hint)
    try:
        model: Model = _CLASSES[provider](name, client=None if base_url is None else _client(provider, base_url))
    except toolwire.ConfigurationError as error:
        # The rest of a message about a missing key is about Python.
        message, of_key, _ = str(error).partition(", or give client=")
        hint = "A server of your own needs none: give its --base-url." if of_key else ""
        raise Stop(ExitCode.WRONG_USAGE, message, hint=hint) from error
    return model


def _client(provider: str, base_url: str) -> Any:
    """Returns the SDK's client for an address. None without the SDK: the model then says what to install."""
    key = os.environ.get(f"{provider.upper()}_API_KEY") or _NO_KEY
    try:
        if provider == "gemini":
            from google.genai import Client, types

            retries = types.HttpRetryOptions(attempts=3)
            return Client(api_key=key, http_options=types.HttpOptions(base_url=base_url, retry_options=retries))
        if provider == "anthropic":
            from anthropic import AsyncAnthropic

            return AsyncAnthropic(api_key=key, base_url=base_url)
        from openai import AsyncOpenAI

        return AsyncOpenAI(api_key=key, base_url=base_url)
    except ImportError:
        return None
