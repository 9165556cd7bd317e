"""The onion of middleware. Each layer gets the call and the next layer, and returns the result.

Middleware surrounds only the execution. A call that reaches it is validated, allowed and recorded as begun.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

from toolwire.catalogue.entry import Middleware
from toolwire.definition.arguments.canonical import unmask
from toolwire.invocation.authorize import authorize
from toolwire.invocation.execute import attempt
from toolwire.invocation.ports.ports import TimedOut
from toolwire.invocation.scope import Path, Scope
from toolwire.invocation.validate import Prepared, validate
from toolwire.vocabulary.calls import Caller, ToolCall
from toolwire.vocabulary.effects import Effects
from toolwire.vocabulary.errors import BoundValueError
from toolwire.vocabulary.machine.gate import Gate
from toolwire.vocabulary.results import Outcome, Pending, ToolResult
from toolwire.vocabulary.values import plain_value

_LOG = logging.getLogger("toolwire.tools")

T = TypeVar("T")
M = TypeVar("M", bound=Callable[..., Any])


class PreparedCall:
    """A validated and allowed call, as a middleware receives it.

    It cannot be changed; `with_arguments` makes another one.
    """

    __slots__ = ("_arguments", "prepared", "rewritten", "scope")

    def __init__(self, prepared: Prepared, scope: Scope, rewritten: Mapping[str, Any] | None = None) -> None:
        self.prepared = prepared
        self.scope = scope
        """The scope of the call, for the layers inside."""
        self.rewritten = rewritten
        """The arguments that a middleware set; None for an unchanged call."""
        self._arguments = rewritten

    @property
    def call(self) -> ToolCall:
        """The call with its id, its parent and the model's text."""
        return self.prepared.call

    @property
    def tool(self) -> str:
        """The tool's name in this registry."""
        return self.prepared.entry.name

    @property
    def tool_digest(self) -> str:
        """A digest of the tool's name, description and schemas, starting with `sha256:`."""
        return self.prepared.entry.tool.digest

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments exactly as they will run, in JSON types.

        Raises:
            Unrepresentable: JSON cannot hold one of the arguments.
        """
        if self._arguments is None:
            self._arguments = cast("Mapping[str, Any]", plain_value(self.prepared.canonical(self.scope)))
        return self._arguments

    @property
    def effects(self) -> Effects:
        """The tool's declaration of its effects, and of whether it may run twice."""
        return self.prepared.entry.tool.effects

    @property
    def caller(self) -> Caller:
        """The caller on whose behalf the call runs."""
        return self.scope.caller

    @property
    def deadline(self) -> float | None:
        """Time of `time.monotonic()` after which no new work starts. None: no limit."""
        return self.scope.deadline

    @property
    def has_own_values(self) -> bool:
        """True if the host fills in values. Two calls with equal arguments may then differ."""
        return bool(self.prepared.validated.bound)

    @property
    def is_composite(self) -> bool:
        """True for a tool whose only effects are its inner calls, such as a program.

        Those pass their own middleware.
        """
        return self.prepared.entry.composite is not None

    def with_arguments(self, arguments: Mapping[str, Any]) -> PreparedCall:
        """Returns the same call with other arguments. They are validated and judged again before they run."""
        return PreparedCall(self.prepared, self.scope, arguments)

    async def sleep(self, seconds: float) -> None:
        """Waits without blocking an event loop, under either driver.

        A middleware that only waits like this is colourless.
        """
        await self.scope.ports.sleep(seconds)

    async def arrived(self, future: Future[T]) -> T:
        """Waits for the future under either driver, and returns its result or raises its error."""
        return await self.scope.ports.wait_for(future)

    async def pass_gate(self, gate: Gate, limit_s: float) -> bool:
        """Waits for a turn at the gate, at most `limit_s` seconds and within the deadline. False if none came.

        The caller must call `gate.leave()` after a turn.

        Raises:
            GateFull: The queue of the gate is full.
        """
        deadline = self.scope.deadline
        left_s = limit_s if deadline is None else min(limit_s, max(deadline - time.monotonic(), 0.0))
        try:
            await self.scope.ports.pass_gate(gate, left_s)
        except TimedOut:
            return False
        return True

    def within(self, seconds: float) -> PreparedCall:
        """Returns the same call with at most this many seconds from now."""
        latest = time.monotonic() + seconds
        deadline = latest if self.scope.deadline is None else min(latest, self.scope.deadline)
        return PreparedCall(self.prepared, replace(self.scope, deadline=deadline), self.rewritten)


CallNext = Callable[[PreparedCall], Awaitable[ToolResult]]
"""Runs the remaining layers, down to the tool."""


class CallMiddleware(Protocol):
    """Surrounds the execution. It returns the result of `call_next`, or a result of its own.

    An exception of a middleware is logged on `toolwire.tools`, and the call fails as `internal`, a fault of the host. A
    cancellation propagates.
    """

    def __call__(self, call: PreparedCall, call_next: CallNext, /) -> Awaitable[ToolResult]: ...


def colourless(middleware: M) -> M:
    """Marks a middleware that awaits only `call_next` and the call's own methods. It then needs no event loop."""
    middleware.is_colourless = True  # type: ignore[attr-defined]
    return middleware


class _Suspended(BaseException):
    """A composite waits for a person. As a BaseException, it does not look like a failure to middleware."""

    def __init__(self, pending: Pending) -> None:
        super().__init__(pending)
        self.pending = pending


async def through(layers: tuple[Middleware, ...], prepared: Prepared, scope: Scope, invoke: Path) -> Outcome:
    """Runs the call through these layers, outermost first, to its tool, and returns its outcome."""

    async def core(call: PreparedCall) -> ToolResult:
        allowed = prepared if call.rewritten is None else await _authorize_again(call, prepared, scope)
        if not isinstance(allowed, Prepared):
            return _result_of(allowed)
        return _result_of(await attempt(allowed, call.scope, invoke))

    inner: CallNext = core
    for layer in reversed(layers):
        inner = _around(layer, inner)
    try:
        return await inner(PreparedCall(prepared, scope))
    except _Suspended as suspended:
        return suspended.pending
    except BoundValueError:
        raise
    except Exception as error:  # noqa: BLE001 - a middleware is its owner's code, like a tool
        call, name = prepared.call, type(error).__name__
        _LOG.exception("A middleware around %r raised %s.", call.name, name)
        message = f"The middleware around {call.name!r} raised {name}; the tool itself may have run."
        return ToolResult.failed("internal", message, data={"exception": name}, exception=error, call=call)


def _around(layer: Middleware, inner: CallNext) -> CallNext:
    async def outer(call: PreparedCall) -> ToolResult:
        result = await layer(call, inner)
        if not isinstance(cast("object", result), ToolResult):
            name = getattr(layer, "__name__", type(layer).__name__)
            raise TypeError(
                f"the middleware {name} gave {result!r:.80}: give a ToolResult, for example await call_next(call)"
            )
        return result

    return outer


async def _authorize_again(call: PreparedCall, prepared: Prepared, scope: Scope) -> Prepared | Outcome:
    arguments = unmask(call.arguments, prepared.validated, scope.secret_key)
    written = ToolCall(call.call.name, arguments, id=call.call.id, parent=call.call.parent)
    checked = validate(written, prepared.entry, scope.states)
    if isinstance(checked, ToolResult):
        return checked
    checked.idempotency_key, checked.started_at = prepared.idempotency_key, prepared.started_at
    return await authorize(checked, scope)


def _result_of(outcome: Outcome) -> ToolResult:
    if isinstance(outcome, Pending):
        raise _Suspended(outcome)
    return outcome
