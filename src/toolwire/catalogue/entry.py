"""A registered tool: the live tool, and its options in this registry."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from threading import TIMEOUT_MAX
from typing import Any, Protocol, cast, get_args

from toolwire.catalogue.groups import BASIC
from toolwire.definition.tool import Permission, Tool, Validated
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.kept_text import Spill
from toolwire.vocabulary.machine.gate import Gate
from toolwire.vocabulary.response import ToolResponse
from toolwire.vocabulary.results import Outcome, ToolResult

Middleware = Callable[..., Awaitable[ToolResult]]
"""A layer around the execution of calls (`invocation.middleware.onion.CallMiddleware`)."""


class Composite(Protocol):
    """A tool whose only effects are the calls it makes. The invocation path awaits it directly, in either driver.

    `inner` is the path's interface for making these calls (`invocation.inner.inner_calls.InnerCalls`).
    """

    def __call__(self, validated: Validated, inner: Any, /) -> Awaitable[Outcome]: ...


Rebind = Callable[["Entry", Callable[[], Any], bool], "Entry"]
"""Makes the entry for another catalogue; see `Entry.bound_to`."""

Finalise = Callable[[Any, ToolResponse], Any]
"""The owner's postprocessing of a tool's output. It receives the call as a tool-use block, and each chunk of the
output. It returns the replacement, directly or as an awaitable; None keeps the chunk.
"""


@dataclass(slots=True, kw_only=True, eq=False)
class Entry:
    """One tool under one name.

    Raises:
        ConfigurationError: The permission is unknown, the time limit is out of range, or a middleware cannot be called.
    """

    name: str
    """The registered name; the tool's own name may differ."""
    tool: Tool
    """The live tool. Later changes of its bindings take effect at once."""
    handle: object
    """The object that was registered."""
    permission: Permission | None = None
    """Replaces the tool's own permission; None keeps it."""
    timeout_s: float | None = None
    """Maximum seconds for one call; None limits it only by the run's deadline."""
    composite: Composite | None = None
    """Set for a tool that consists of inner calls; its `tool.function` is then never called."""
    middleware: tuple[Middleware, ...] = ()
    """Layers around each call, the first outermost. They run inside the middleware of the registry."""
    gate: Gate | None = None
    """Lets calls through one by one; None allows concurrent calls."""
    alone: str | None = None
    """The resource that a call uses exclusively; its tools share one gate. None: the gate is the tool's own."""
    finalise: Finalise | None = None
    """The owner's postprocessing, or None."""
    group: str = BASIC
    """The group that must be active for a call."""
    disabled: str | None = None
    """The owner's reason to refuse every call; None accepts calls."""

    spill: Spill | None = None
    """Storage for long results, for the tool that reads them; else None."""
    is_spill_given: bool = False
    """True if the owner gave `spill`. It then counts before the store of a session."""

    rebind: Rebind | None = None
    """Set for a tool that describes, searches or serves the other tools of its catalogue."""

    _tool_view: tuple[object, Tool] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.permission is not None:
            self.permission = _permission(self.name, self.permission)
        if self.timeout_s is not None and not 0 < self.timeout_s <= TIMEOUT_MAX:
            raise ConfigurationError(
                f"tool {self.name!r}: timeout_s={self.timeout_s!r}: give seconds above 0, or None for no limit"
            )
        for layer in self.middleware:
            check_middleware(layer)

    @property
    def own_permission(self) -> Permission:
        """The permission that counts if no rule applies: the registration's, or else the tool's."""
        return self.permission or self.tool.permission

    def bound_to(self, scope: Callable[[], Any], *, is_conversation: bool = False) -> Entry:
        """Returns the entry for another catalogue, so that it does not reach into the old one.

        `scope` returns the present scope of the calls there (`invocation.scope.Scope`). `is_conversation` means that a
        single conversation uses that catalogue. Most tools do not depend on their catalogue and stay as they are.
        """
        return self if self.rebind is None else self.rebind(self, scope, is_conversation)

    def has_options_of(self, other: Entry) -> bool:
        """True if the other entry has the same permission, time limit, middleware, composite and concurrency."""
        mine, theirs = (
            (entry.permission, entry.timeout_s, entry.gate is None, entry.alone, entry.composite, entry.middleware)
            for entry in (self, other)
        )
        return mine == theirs

    @property
    def is_async(self) -> bool:
        """True if a call needs an event loop."""
        return self.tool.is_async or (bool(self.middleware) and not all(map(is_colourless, self.middleware)))

    @property
    def is_deferred(self) -> bool:
        """True if a program's thread should not wait for a call: it needs an event loop, or gives a future."""
        return self.is_async or self.tool.gives_future

    @property
    def tool_view(self) -> Tool:
        """The tool as models see it, under its registered name."""
        if self.tool.name == self.name:
            return self.tool
        revision, described = self.tool.revision, self._tool_view
        if described is None or described[0] is not revision:
            view = copy.copy(self.tool)
            view.name = self.name
            self._tool_view = described = (revision, view)
        return described[1]


def is_colourless(layer: Middleware) -> bool:
    """True if a middleware can also run without an event loop (`invocation.middleware.onion.colourless`)."""
    return getattr(layer, "is_colourless", False)


def check_middleware(layer: object) -> None:
    """Checks that a middleware can be called.

    Raises:
        ConfigurationError: It is a class or cannot be called.
    """
    if isinstance(layer, type):
        raise ConfigurationError(f"middleware {layer.__name__} is a class: give one of it, {layer.__name__}(...)")
    if not callable(layer):
        raise ConfigurationError(f"middleware {layer!r}: give a function `async def middleware(call, call_next)`")


def _permission(name: str, given: object) -> Permission:
    # Takes the value of an enum member. Otherwise a member for `deny` would not equal "deny", so its calls would be
    # asked about and run.
    plain = getattr(given, "value", given)
    if plain not in get_args(Permission):
        raise ConfigurationError(f"tool {name!r}: permission={plain!r} is unknown: write 'auto', 'confirm' or 'deny'")
    return cast("Permission", plain)
