"""A tool as registered: the live tool, and what is true of it only here."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from threading import TIMEOUT_MAX
from typing import Any, Protocol, cast, get_args

from toolwire.catalogue.groups import BASIC
from toolwire.definition.tool import Permission, Tool, Validated
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.gate import Gate
from toolwire.vocabulary.pending import Outcome
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.spill import Spill

Middleware = Callable[..., Awaitable[ToolResult]]
"""Stands around the execution of calls (`invocation.middleware.onion.CallMiddleware`)."""


class Composite(Protocol):
    """A tool whose only effects are the calls it makes: it is awaited by the path itself, in either driver.

    `inside` is what the path lends it (`invocation.scope.Inside`), to make calls of its own.
    """

    def __call__(self, validated: Validated, inside: Any, /) -> Awaitable[Outcome]: ...


Amend = Callable[[Any, ToolResponse], Any]
"""An owner's postprocessing: called with the call as a tool-use block and what the tool gave, each chunk of it. It
gives, now or awaited, what stands in its place; None: it stays."""


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """One tool under one name.

    Raises:
        ConfigurationError: an unknown permission, or a time limit out of its range.
    """

    name: str
    """The name here; the tool's own may differ."""
    tool: Tool
    """The live tool: what is bound on it later counts at once."""
    handle: object
    """The very object that was registered."""
    permission: Permission | None = None
    """Stands in for the tool's own permission here; None: the tool's own counts."""
    timeout_s: float | None = None
    """Seconds one call may take; None: as long as it likes, within the run's deadline."""
    composite: Composite | None = None
    """Set for a tool that is made of inner calls; its `tool.function` is then never called."""
    middleware: tuple[Middleware, ...] = ()
    """What stands around each call of it, the first outermost; inside of what its registry has."""
    gate: Gate | None = None
    """What calls pass one by one; None when they may run beside each other."""
    alone: str | None = None
    """The resource that a call has to itself, whose gate it passes; None: it shares its gate with no other tool."""
    amend: Amend | None = None
    """The owner's postprocessing; None: there is none."""
    group: str = BASIC
    """The group that must be active for it to be called."""

    spill: Spill | None = None
    """Of the tool that reads on in long results: where these are kept."""

    def __post_init__(self) -> None:
        if self.permission is not None:
            self.permission = _permission(self.name, self.permission)
        if self.timeout_s is not None and not 0 < self.timeout_s <= TIMEOUT_MAX:
            raise ConfigurationError(
                f"tool {self.name!r}: timeout_s={self.timeout_s!r}: give seconds above 0, or None for no limit"
            )
        for layer in self.middleware:
            check_middleware(layer)

    def has_options_of(self, other: Entry) -> bool:
        """Whether the other was registered with the same permission, time limit, middleware and room beside itself."""
        mine, theirs = (
            (entry.permission, entry.timeout_s, entry.gate is None, entry.alone, entry.composite, entry.middleware)
            for entry in (self, other)
        )
        return mine == theirs

    @property
    def is_async(self) -> bool:
        """Whether a call needs an event loop."""
        return self.tool.is_async or (bool(self.middleware) and not all(map(is_colourless, self.middleware)))

    @property
    def described(self) -> Tool:
        """The tool as models are told of it here: under the name it has here."""
        if self.tool.name == self.name:
            return self.tool
        view = copy.copy(self.tool)
        view.name = self.name
        return view


def is_colourless(layer: Middleware) -> bool:
    """Whether a middleware runs without an event loop too (`invocation.middleware.onion.colourless`)."""
    return getattr(layer, "is_colourless", False)


def check_middleware(layer: object) -> None:
    """Does nothing if it can be called for a result.

    Raises:
        ConfigurationError: it cannot.
    """
    if isinstance(layer, type):
        raise ConfigurationError(f"middleware {layer.__name__} is a class: give one of it, {layer.__name__}(...)")
    if not callable(layer):
        raise ConfigurationError(f"middleware {layer!r}: give a function `async def middleware(call, call_next)`")


def _permission(name: str, given: object) -> Permission:
    # An enum member is taken by its value: beside the words it would be none of them, and a `deny` that is not "deny"
    # would be asked about and run.
    plain = getattr(given, "value", given)
    if plain not in get_args(Permission):
        raise ConfigurationError(f"tool {name!r}: permission={plain!r} is unknown: write 'auto', 'confirm' or 'deny'")
    return cast("Permission", plain)
