"""The onion: each middleware gets the call and what comes next, and gives the result.

Middleware stands around execution alone: a call that reaches it is validated, allowed and on record as begun.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from toolwire.catalogue.entry import Middleware
from toolwire.definition.canonical import unmasked
from toolwire.invocation.authorize import authorize
from toolwire.invocation.ports import TimedOut
from toolwire.invocation.scope import Prepared, Scope
from toolwire.invocation.validate import validate
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.effects import Effects
from toolwire.vocabulary.gate import Gate
from toolwire.vocabulary.pending import Outcome, Pending
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import plain

_LOG = logging.getLogger("toolwire.tools")

T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class PreparedCall:
    """A call that may run: what a middleware is given. It changes nothing; `with_arguments` makes another."""

    __slots__ = ("_arguments", "_rewritten", "_scope", "prepared")

    def __init__(self, prepared: Prepared, scope: Scope, rewritten: Mapping[str, Any] | None = None) -> None:
        self.prepared = prepared
        self._scope = scope
        self._rewritten = rewritten
        self._arguments: Mapping[str, Any] | None = rewritten

    @property
    def call(self) -> ToolCall:
        """The call: its id, its parent, what the model wrote."""
        return self.prepared.call

    @property
    def tool(self) -> str:
        """The tool's name here."""
        return self.prepared.entry.name

    @property
    def tool_digest(self) -> str:
        """`sha256:` of the tool's name, description and schemas."""
        return self.prepared.entry.tool.digest

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Exactly what will run, in JSON types.

        Raises:
            Unrepresentable: an argument has no JSON form.
        """
        if self._arguments is None:
            self._arguments = cast("Mapping[str, Any]", plain(self.prepared.canonical(self._scope)))
        return self._arguments

    @property
    def effects(self) -> Effects:
        """What the tool declares: what it does, whether it may be done twice."""
        return self.prepared.entry.tool.effects

    @property
    def caller(self) -> Caller:
        """On whose behalf."""
        return self._scope.caller

    @property
    def deadline(self) -> float | None:
        """`time.monotonic()` seconds after which nothing more is started; None: no limit."""
        return self._scope.deadline

    @property
    def has_own_values(self) -> bool:
        """Whether the host fills in values of its own: two calls with equal arguments may then differ."""
        return bool(self.prepared.validated.bound)

    @property
    def is_composite(self) -> bool:
        """Whether its only effects are calls of its own, which pass their own middleware: a program."""
        return self.prepared.entry.composite is not None

    @property
    def rewritten(self) -> Mapping[str, Any] | None:
        """The arguments that a middleware gave it; None for the call as it came."""
        return self._rewritten

    def with_arguments(self, arguments: Mapping[str, Any]) -> PreparedCall:
        """The same call with other arguments, which are validated and judged again before they run."""
        return PreparedCall(self.prepared, self._scope, arguments)

    async def sleep(self, seconds: float) -> None:
        """Waits, in whichever driver; a middleware that waits by this alone is colourless."""
        await self._scope.ports.sleep(seconds)

    async def arrived(self, future: Future[T]) -> T:
        """What the future gives or raises, waited for in whichever driver."""
        return await self._scope.ports.arrived(future)

    async def pass_gate(self, gate: Gate, limit_s: float) -> bool:
        """Waits for its turn, no longer than these seconds or its deadline; then whoever was let in has to `leave`.

        Raises:
            GateFull: no more may wait there.
        """
        deadline = self._scope.deadline
        left_s = limit_s if deadline is None else min(limit_s, max(deadline - time.monotonic(), 0.0))
        try:
            await self._scope.ports.pass_gate(gate, left_s)
        except TimedOut:
            return False
        return True

    def within(self, seconds: float) -> PreparedCall:
        """The same call with no more than these seconds from now on."""
        latest = time.monotonic() + seconds
        deadline = latest if self._scope.deadline is None else min(latest, self._scope.deadline)
        return PreparedCall(self.prepared, replace(self._scope, deadline=deadline), self._rewritten)

    @property
    def scope(self) -> Scope:
        """What surrounds it; for what is inside."""
        return self._scope


CallNext = Callable[[PreparedCall], Awaitable[ToolResult]]
"""Runs what is further inside, down to the tool."""


class CallMiddleware(Protocol):
    """Stands around execution: gives what `call_next` gave, or a result of its own.

    Whatever it raises is logged on `toolwire.tools` and makes the call's result `internal`, a fault of the host. A
    cancellation passes.
    """

    def __call__(self, call: PreparedCall, call_next: CallNext, /) -> Awaitable[ToolResult]: ...


def colourless(middleware: M) -> M:
    """Says that a middleware awaits `call_next` and the call's own methods only: it then runs without an event loop."""
    middleware.is_colourless = True  # type: ignore[attr-defined]
    return middleware


class _Suspended(BaseException):
    """A composite waits for a person: no middleware is to see this as a failure."""

    def __init__(self, pending: Pending) -> None:
        super().__init__(pending)
        self.pending = pending


Innermost = Callable[[Prepared, Scope], Awaitable[Outcome]]


async def through(layers: tuple[Middleware, ...], prepared: Prepared, scope: Scope, innermost: Innermost) -> Outcome:
    """What the call comes to with these around it, the first one outermost."""

    async def core(call: PreparedCall) -> ToolResult:
        allowed = prepared if call.rewritten is None else await _judged_again(call, prepared, scope)
        if not isinstance(allowed, Prepared):
            return _result_of(allowed)
        return _result_of(await innermost(allowed, call.scope))

    inner: CallNext = core
    for layer in reversed(layers):
        inner = _around(layer, inner)
    try:
        return await inner(PreparedCall(prepared, scope))
    except _Suspended as suspended:
        return suspended.pending
    except Exception as error:  # noqa: BLE001 - a middleware is its owner's code, as a tool is
        call, name = prepared.call, type(error).__name__
        _LOG.exception("A middleware around %r raised %s.", call.name, name)
        message = f"The middleware around {call.name!r} raised {name}; the tool itself may have run."
        return ToolResult.failed("internal", message, data={"exception": name}, exception=error, call=call)


def _around(layer: Middleware, inner: CallNext) -> CallNext:
    async def outer(call: PreparedCall) -> ToolResult:
        result = await layer(call, inner)
        if not isinstance(cast("object", result), ToolResult):
            name = getattr(layer, "__name__", type(layer).__name__)
            raise TypeError(f"the middleware {name} gave {result!r:.80}: give a ToolResult, await call_next(call) say")
        return result

    return outer


async def _judged_again(call: PreparedCall, prepared: Prepared, scope: Scope) -> Prepared | Outcome:
    arguments = unmasked(call.arguments, prepared.validated, scope.secret_key)
    written = ToolCall(call.call.name, arguments, id=call.call.id, parent=call.call.parent)
    checked = validate(written, prepared.entry, scope.states)
    if isinstance(checked, ToolResult):
        return checked
    checked.idempotency_key = prepared.idempotency_key
    return await authorize(checked, scope)


def _result_of(outcome: Outcome) -> ToolResult:
    if isinstance(outcome, Pending):
        raise _Suspended(outcome)
    return outcome
