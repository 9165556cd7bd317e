"""Calls in the background: started now, asked for later."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from toolwire.facade.driving import async_scope
from toolwire.facade.given_calls import host_call
from toolwire.invocation.invoker import invoke
from toolwire.invocation.middleware.onion import CallNext, PreparedCall, colourless
from toolwire.invocation.scope import Run, Scope, require_result
from toolwire.vocabulary.calls import CANCEL_CALL, POLL_CALL, START_CALL, Caller, ToolCall
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.errors import BoundValueError
from toolwire.vocabulary.results import ToolResult

RUNNING_LIMIT = 32
"""Calls that run in the background at once: half of the workers, so that calls in the foreground find one."""
KEPT_LIMIT = 100
"""Results that are kept. When there are more, fetched results are dropped first, then the oldest."""
CLOSE_GRACE_S = 2.0
"""Seconds that `close` waits for async tools that it cancelled, until they have cleaned up."""
_ID_BYTES = 16
_ITSELF = frozenset({START_CALL, POLL_CALL, CANCEL_CALL})


class BackgroundCall:
    """One call that was started. Any thread may read it."""

    def __init__(self, call: ToolCall, caller: Caller, run: Run) -> None:
        self.id = os.urandom(_ID_BYTES).hex()
        """The id to ask for it; it cannot be guessed."""
        self.call = call
        """The call."""
        self.caller = caller
        self.run = run
        self.started = time.monotonic()
        self.is_fetched = False
        self.begun: Future[None] = Future()
        """Done when its tool runs, or when it never will."""
        self.ended: Future[ToolResult] = Future()
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._is_cancelled = False
        self._scope: Scope | None = None

    def __repr__(self) -> str:
        result = self.result
        state = "running" if result is None else "done" if result.success else "failed"
        return f"<BackgroundCall {self.id} of {self.call.name!r}: {state}>"

    @property
    def result(self) -> ToolResult | None:
        """The call's result; None while it runs."""
        return self.ended.result() if self.ended.done() else None

    def cancel(self) -> bool:
        """Stops the call; returns False when it had ended already."""
        with self._lock:
            if self.ended.done():
                return False
            self._is_cancelled = True
            if self._cancel is not None:
                self._cancel()
        if self._scope is not None and self._is_in_thread(self._scope):
            # The result of a thread is ignored, so no caller waits until it ends.
            self.end(self._result_at_break(self._scope))
        return True

    def end(self, result: ToolResult) -> None:
        """Sets its result, unless it has one."""
        with self._lock:
            if not self.ended.done():
                self.ended.set_result(result)
        self.begin()

    def _fail(self, mistake: BoundValueError) -> None:
        """Raises the mistake in threads and tasks that wait for its start or its end."""
        with self._lock:
            for waited in (self.ended, self.begun):
                if not waited.done():
                    waited.set_exception(mistake)

    def begin(self) -> None:
        """Resolves `begun`, for threads and tasks that wait for its start."""
        with self._lock:
            if not self.begun.done():
                self.begun.set_result(None)

    async def go(self, scope: Scope) -> None:
        """Makes the call on the running event loop."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        with self._lock:
            self._scope = scope
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._is_cancelled:
                task.cancel()
        try:
            self.end(require_result(await invoke(self.call, scope)))
        except asyncio.CancelledError:
            self.end(self._result_at_break(scope))
        except BoundValueError as mistake:
            self._fail(mistake)

    def _result_at_break(self, scope: Scope) -> ToolResult:
        if self._is_in_thread(scope):
            message = (
                f"{self.call.name!r} was cancelled while it ran and cannot be stopped; its result will be ignored."
            )
            return ToolResult.failed("unknown_outcome", message, call=self.call)
        return cancellation_result(self.call)

    def _is_in_thread(self, scope: Scope) -> bool:
        entry = scope.tools.find(self.call.name)
        return self.begun.done() and entry is not None and not entry.tool.is_async and entry.composite is None


def cancellation_result(call: ToolCall) -> ToolResult:
    """Returns the result of a call that was cancelled."""
    return ToolResult.failed("interrupted", f"{call.name!r} was cancelled before it ended.", call=call)


class BackgroundCalls:
    """Starts calls and keeps their results until they are fetched. `registry.background` makes it.

    The calls run on the runtime's own loop and threads, independent of the loop that started them. Each goes down the
    whole path. A call that is wrong or denied has its result at once.
    """

    def __init__(self, scope: Callable[[], Scope]) -> None:
        """`scope` returns the present scope of the calls that are started here."""
        self._scope = scope
        self._lock = threading.Lock()
        self._calls: dict[str, BackgroundCall] = {}

    def start(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> BackgroundCall:
        """Starts a call; returns when its tool runs, or when it never will. Blocks while a person is asked.

        Bound parameters are looked up in `state` first, for this call and the calls that it makes.
        """
        started = self._start_own(name, arguments, state)
        started.begun.result()
        return started

    async def astart(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, state: Mapping[str, Any] | None = None
    ) -> BackgroundCall:
        """Works as `start`, for callers that run an event loop."""
        started = self._start_own(name, arguments, state)
        await asyncio.shield(asyncio.wrap_future(started.begun))
        return started

    def poll(self, id: str) -> ToolResult | None:
        """Returns the call's result; None while it runs. An unknown id gives a failed result."""
        return self.wait(id, 0)

    def wait(self, id: str, timeout_s: float | None = None) -> ToolResult | None:
        """Waits for the call and returns its result; None if it still runs after `timeout_s` (None: no limit)."""
        found = self._calls.get(id)
        if found is None:
            return _no_such_call(id)
        with suppress(TimeoutError):
            result = found.ended.result(timeout_s)
            found.is_fetched = True
            return result
        return None

    async def await_result(self, id: str) -> ToolResult:
        """Waits for the call's result, for callers that run an event loop. Cancelling the wait does not cancel the
        call.
        """
        found = self._calls.get(id)
        if found is None:
            return _no_such_call(id)
        result = await asyncio.shield(asyncio.wrap_future(found.ended))
        found.is_fetched = True
        return result

    def cancel(self, id: str) -> bool:
        """Stops the call; returns False when it had ended already or the id is unknown.

        An async tool is cancelled. A sync tool cannot be; the outcome of its call is then unknown.
        """
        found = self._calls.get(id)
        return found is not None and found.cancel()

    def close(self) -> None:
        """Cancels all running calls; their results say that they were interrupted."""
        running = [call for call in list(self._calls.values()) if call.cancel()]
        deadline = time.monotonic() + CLOSE_GRACE_S
        for call in running:
            with suppress(TimeoutError):
                call.ended.result(max(deadline - time.monotonic(), 0))
            call.end(cancellation_result(call.call))

    # -- for models ---------------------------------------------------------------------------------------------

    def start_for(self, context: CallContext, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Starts a call for a model; returns the result of the model's `start_call`."""
        if tool in _ITSELF:
            message = f"{tool!r} cannot be started in the background."
            return ToolResult.failed("invalid_arguments", message, hint="Call it directly.", path="tool")
        scope: Scope = context.scope
        call = ToolCall(tool, arguments, id=f"{context.call_id}/1", parent=context.call_id)
        # The call knows the labels that its starter had read. The labels it reads itself count when its result is read.
        run = Run(() if scope.run is None else scope.run.taints)
        run.saw(() if scope.run is None else scope.run.urls)
        started = self._start(call, replace(scope, run=run, result_limit_bytes=None), context.caller)
        started.begun.result()
        if scope.run is not None and run.stopped is not None:
            scope.run.stopped = run.stopped
        if started.result is not None:
            return self.poll_for(context, started.id, 0)
        text = f"{tool!r} was started. Call {POLL_CALL} with id={started.id!r} to get its result."
        return ToolResult(True, text, metadata={"background_id": started.id})

    def poll_for(self, context: CallContext, id: str, wait_s: float) -> ToolResult:
        """Returns the call's result, or a text that it still runs."""
        found = self._calls.get(id)
        if found is None or found.caller != context.caller:
            return _no_such_call(id)
        result = self.wait(id, wait_s)
        if result is None:
            seconds = round(time.monotonic() - found.started)
            text = f"{found.call.name!r} is still running, for {seconds} s so far. Ask again later."
            return ToolResult(True, text, metadata={"is_running": True})
        if context.scope.run is not None:
            context.scope.run.read(found.run.taints)
            context.scope.run.saw(found.run.urls)
        return result

    def cancel_for(self, context: CallContext, id: str) -> ToolResult:
        """Cancels the call, and returns a text that says if it was still running."""
        found = self._calls.get(id)
        if found is None or found.caller != context.caller:
            return _no_such_call(id)
        name = found.call.name
        return ToolResult(True, f"{name!r} was cancelled." if found.cancel() else f"{name!r} had ended already.")

    # -- inside -------------------------------------------------------------------------------------------------

    def _start_own(
        self, name: str, arguments: Mapping[str, Any] | None, state: Mapping[str, Any] | None
    ) -> BackgroundCall:
        scope = self._scope().with_state(state)
        return self._start(host_call(name, arguments, scope.tools), scope, scope.caller)

    def _start(self, call: ToolCall, scope: Scope, caller: Caller) -> BackgroundCall:
        started = BackgroundCall(call, caller, scope.run or Run())
        if not self._take(started):
            message = f"{call.name!r} was not started: {RUNNING_LIMIT} calls run in the background already."
            started.end(ToolResult.failed("overloaded", message, data={"is_started": False}, call=call))
            return started

        @colourless
        async def begin_call(prepared: PreparedCall, call_next: CallNext) -> ToolResult:
            started.begin()
            return await call_next(prepared)

        surrounded = replace(
            async_scope(scope),
            middleware=(begin_call, *scope.middleware),
            run=started.run,
            deadline=None,
            ledger=None,
            pages=None,
            can_suspend=False,
            sink=None,
            events=None,
        )
        task = scope.runtime.portal.start(lambda: started.go(surrounded))
        # A closed loop ends tasks that never began.
        task.add_done_callback(lambda _: started.end(cancellation_result(call)))
        return started

    def _take(self, started: BackgroundCall) -> bool:
        with self._lock:
            ended_ = [call for call in self._calls.values() if call.ended.done()]
            is_taken = len(self._calls) - len(ended_) < RUNNING_LIMIT
            for call in sorted(ended_, key=lambda call: not call.is_fetched)[: max(len(ended_) + 1 - KEPT_LIMIT, 0)]:
                del self._calls[call.id]
            self._calls[started.id] = started
            return is_taken


def _no_such_call(id: str) -> ToolResult:
    return ToolResult.failed(
        "invalid_arguments",
        f"There is no background call {id[:64]!r}: its result was dropped, or it is not yours.",
        hint="If you copied the id exactly, start a new call.",
        path="id",
    )
