"""What a model is: a protocol, a price, and a stream of one reply. And the ways in which asking one fails."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolwire.protocols import CallingProtocol, get
from toolwire.vocabulary.errors import ConfigurationError

FailureCause = Literal["auth", "rate", "overloaded", "context_length", "refused", "network"]
"""Why a model gave no reply: the key, too many requests, a provider without room or with a fault, a conversation that
is too long, a request that it does not take, or a connection that failed or broke off."""

ENDED_EARLY = "the stream ended before the reply did"

_OF_CLIENT = frozenset({"api_key", "base_url", "max_retries", "http_client", "organization", "http_options"})
"""Settings of the SDKs' clients, which no request takes."""

_CONNECTION_ERRORS = {"httpx": "HTTPError", "httpx2": "HTTPError", "aiohttp": "ClientError"}
"""The errors of the libraries that SDKs use, by module."""

_TOO_LONG = (
    "context_length",
    "context length",
    "context window",
    "context limit",
    "too long",
    "maximum number of tokens",
    "exceeds the max",
)
"""Words by which providers say that a conversation is too long: they share no code of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a model in any currency, for a million tokens."""

    input: float
    output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The tokens of a request, as its provider counts them. Usages can be added.

    Attributes:
        input: Tokens of the request, those from a cache included.
        output: Tokens of the reply, its thinking included.
        cached: Tokens of the request that came from the provider's cache.
    """

    input: int = 0
    output: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input, output=self.output + other.output, cached=self.cached + other.cached
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a model.

    Attributes:
        system: The system prompt: the instructions, and for a text protocol `session.system_prompt`.
        messages: The conversation so far: messages of the user, `turn.reply.message` and `turn.messages`.
        tools: For a native protocol `session.request_tools`; else empty.
    """

    system: str = ""
    messages: list[Any] = field(default_factory=list[Any])
    tools: list[Any] = field(default_factory=list[Any])


class Model(Protocol):
    """A model. A class of your own needs these three."""

    @property
    def protocol(self) -> str | CallingProtocol:
        """The calling format: its name, or a text protocol such as `protocols.get("xml", tag="call")`."""
        ...

    @property
    def price(self) -> Price | None:
        """Its price; None if that is not known."""
        ...

    def stream(self, request: Request, /) -> AsyncIterator[Any]:
        """Asks for one reply, and yields what `session.stream().feed` takes, and a `Usage` once it is known.

        Raises:
            ModelFailed: There is no reply, or it broke off.
        """
        ...


class ModelFailed(Exception):
    """A model gave no whole reply.

    Attributes:
        kind: The cause.
        has_begun: True if the reply had begun and its stream broke off. An agent asks for it again.
    """

    def __init__(self, kind: FailureCause, message: str, *, has_begun: bool = False) -> None:
        super().__init__(message)
        self.kind: FailureCause = kind
        self.has_begun = has_begun


@asynccontextmanager
async def provider_errors(*kinds: type[Exception]) -> AsyncGenerator[None]:
    """Turns these errors of an SDK into `ModelFailed`.

    An error of the provider has its HTTP status as `status_code` or `code`. Any other is one of the connection.
    """
    try:
        yield
    except kinds as error:
        raise ModelFailed(_cause(error), f"{type(error).__name__}: {error}") from error


def _cause(error: Exception) -> FailureCause:
    status: object = getattr(error, "status_code", None) or getattr(error, "code", None)
    text = str(error).lower()
    if not isinstance(status, int):
        return "network"
    if status in (400, 413) and any(words in text for words in _TOO_LONG):
        return "context_length"
    if status in (401, 403):
        return "auth"
    if status == 429:
        return "rate"
    return "overloaded" if status >= 500 else "refused"


def connection_errors() -> tuple[type[Exception], ...]:
    """Returns the errors of a connection that breaks off in a stream: SDKs pass on those of the library they use."""
    found = ((sys.modules.get(module), name) for module, name in _CONNECTION_ERRORS.items())
    return tuple(getattr(module, name) for module, name in found if module is not None)


def check_client(model: str, client: object, kind: type[Any], settings: Mapping[str, Any]) -> None:
    """Checks that a given client is one of the model's SDK, and that no setting belongs to the client.

    Raises:
        ConfigurationError: One of them is not so.
    """
    if client is not None and not isinstance(client, kind):
        raise ConfigurationError(f"{model}(client={type(client).__name__}): give a {kind.__module__}.{kind.__name__}")
    if of_client := ", ".join(f"{name}=..." for name in settings if name in _OF_CLIENT):
        raise ConfigurationError(f"{model}(...): that belongs to its client: write client={kind.__name__}({of_client})")


@contextmanager
def without_key(model: str, variable: str, *kinds: type[Exception]) -> Generator[None]:
    """Turns the errors of an SDK whose client finds no key into a `ConfigurationError` that says what to set."""
    try:
        yield
    except kinds as error:
        raise ConfigurationError(f"{model} found no key: set {variable}, or give client= ({error})") from error


def protocol_of(protocol: str | CallingProtocol | None, native: str) -> str | CallingProtocol:
    """Returns a model's protocol: the name of the native one of its API, or a text protocol as it was given.

    Raises:
        ConfigurationError: It is a native protocol as an object or of another API, or there is none of this name.
    """
    if protocol is None or protocol == native:
        return native
    found = get(protocol) if isinstance(protocol, str) else protocol
    if not found.is_native:
        return protocol
    raise ConfigurationError(
        f"protocol={found.name!r}: this model's API is that of {native!r}: leave it out, or take a text protocol"
    )
