"""The models of `toolwire chat`, by the name that a person writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop
from toolwire.models import AnthropicModel, GeminiModel, Model, OpenAIModel

_NO_KEY = "none"
"""The key for a server that was named by its address: most of these ask for none, and the SDKs want a text."""


def model_of(named: str, base_url: str | None) -> Model:
    """Returns the model of a text such as `openai:gpt-x-mini`, at the address `base_url` if it is given.

    Raises:
        Stop: There is no such provider, its SDK or its key is missing, or the address is none.
    """
    provider, _, name = named.partition(":")
    if provider not in _PROVIDERS or not name.strip():
        hint = f"Write {', '.join(f'{known}:NAME' for known in _PROVIDERS)}; NAME is the provider's name of the model."
        raise Stop(ExitCode.WRONG_USAGE, f"--model {named!r:.80} names no model", hint=hint)
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        hint = "Write one that begins with http:// or https://."
        raise Stop(ExitCode.WRONG_USAGE, f"--base-url {base_url!r:.80} is no address", hint=hint)
    make, client = _PROVIDERS[provider]
    try:
        return make(name, client=None if base_url is None else client(base_url))
    except toolwire.ConfigurationError as error:
        # The rest of a message about a missing key is about Python.
        message, is_key, _ = str(error).partition(", or give client=")
        hint = "A server of your own needs none: name it by --base-url." if is_key else ""
        raise Stop(ExitCode.WRONG_USAGE, message, hint=hint) from error


def _openai(base_url: str) -> Any:
    try:
        from openai import AsyncOpenAI
    except ImportError:
        return None
    return AsyncOpenAI(base_url=base_url, api_key=os.environ.get("OPENAI_API_KEY") or _NO_KEY)


def _anthropic(base_url: str) -> Any:
    try:
        from anthropic import AsyncAnthropic
    except ImportError:
        return None
    return AsyncAnthropic(base_url=base_url, api_key=os.environ.get("ANTHROPIC_API_KEY") or _NO_KEY)


def _gemini(base_url: str) -> Any:
    try:
        from google.genai import Client, types
    except ImportError:
        return None
    key = os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY") or _NO_KEY
    retries = types.HttpRetryOptions(attempts=3)
    return Client(api_key=key, http_options=types.HttpOptions(base_url=base_url, retry_options=retries))


_PROVIDERS: dict[str, tuple[Callable[..., Model], Callable[[str], Any]]] = {
    "openai": (OpenAIModel, _openai),
    "anthropic": (AnthropicModel, _anthropic),
    "gemini": (GeminiModel, _gemini),
}
"""The class of each provider's models, and its SDK's client for an address. Without the SDK the class says so."""
