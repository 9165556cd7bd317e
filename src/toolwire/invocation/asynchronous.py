"""The asyncio driver: async tools on the running loop, everything that blocks in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from toolwire.invocation.blocking import BlockingPorts
from toolwire.invocation.ports import TimedOut
from toolwire.permission.approval import ApprovalRequest, Approver, Decision
from toolwire.runtime.runtime import Runtime
from toolwire.vocabulary.gate import Gate

T = TypeVar("T")

CANCEL_GRACE_S = 1.0
"""Seconds a cancelled async tool has to end: enough to close a connection. After that its outcome is unknown."""


class AsynchronousPorts:
    """Ports for whatever event loop awaits them; nothing in here belongs to one loop."""

    is_blocking = False

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.blocking = BlockingPorts(runtime)

    async def execute(self, function: Callable[[], Any], *, is_async: bool, limit_s: float | None) -> Any:
        if is_async:
            return await (function() if limit_s is None else _within(function(), limit_s))
        future = self._runtime.workers.start(function)
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait((waiting,), timeout=limit_s)
        if not done:
            waiting.cancel()
            raise TimedOut(limit_s or 0, stopped=False)
        return waiting.result()

    async def pass_gate(self, gate: Gate) -> None:
        turn = gate.enter()
        if turn is None:
            return
        try:
            await asyncio.wrap_future(turn)
        except BaseException:
            gate.withdraw(turn)
            raise

    async def ask(self, approver: Approver, request: ApprovalRequest) -> Decision | None:
        answer = approver(request)
        return await answer if isinstance(answer, Awaitable) else answer

    async def together(self, cores: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(core()) for core in cores]
        return [task.result() for task in tasks]


async def _within(work: Awaitable[T], limit_s: float) -> T:
    """What `work` gives, if it ends in time; else it is cancelled, and the outcome says whether that ended it."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait((task,), timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_GRACE_S)
        raise
    if not done:
        task.cancel()
        ended, _ = await asyncio.wait((task,), timeout=CANCEL_GRACE_S)
        if ended and not task.cancelled():
            task.exception()
        raise TimedOut(limit_s, stopped=bool(ended))
    return task.result()
