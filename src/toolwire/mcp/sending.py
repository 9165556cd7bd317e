"""One call on its way to a server: how far its request has come, its time, and its person."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import anyio

from toolwire.mcp.client_limits import ClientLimits
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.questions import Question
from toolwire.vocabulary.results import ToolResult

Ask = Callable[[Question], Any]
"""Asks the person of one call, and blocks until the answer."""


class Listener(Protocol):
    """The client of a gateway, which hears of a call while it runs. Any thread may call it; nothing here blocks."""

    def tell_progress(self, done: float, total: float | None, message: str | None) -> None: ...

    def tell_log(self, level: str, data: Any, logger: str | None) -> None: ...

    @property
    def can_ask(self) -> bool:
        """True if it has a person, who can be asked while the call waits."""
        ...

    def ask(self, server: str, question: Question) -> Future[Any]:
        """Asks the person. The future gives the answer, or None if no answer can come."""
        ...

    def pass_on(self, call: ToolCall) -> Future[ToolResult]:
        """Makes the call by which a server's request goes to the client: on record, and within the client's limits."""
        ...

    def begin(self, calls: Sequence[ToolCall]) -> Future[list[ToolResult | None]]:
        """Begins such calls together. None is the result of one that waits for the client; `pass_on` waits for it."""
        ...

    def send(self, method: str, arguments: Mapping[str, Any]) -> Future[ToolResult]:
        """Sends the request of such a call to the client. The data of the result are the client's answer as JSON."""
        ...


LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""The client for which the calls of the current task are made; None for any other caller."""


class Sending:
    """One call, from its start to its answer. Its time stands still while a person is asked."""

    def __init__(self, limits: ClientLimits, ask: Ask | None, listener: Listener | None = None) -> None:
        """`ask` is None for a call without a person, and `listener` for one whose caller hears of nothing."""
        self.ask, self.listener = ask, listener
        self.is_sent = False
        """True from the moment at which the request may have reached the server."""
        self.questions = 0
        """How many questions the server has asked during this request."""
        self._limits = limits
        self._started = anyio.current_time()
        self._asked_s, self._asking, self._since = 0.0, 0, 0.0
        self.scope = anyio.CancelScope(deadline=self._started + limits.call_s)
        """Ends the wait for the answer."""

    @property
    def elapsed_s(self) -> float:
        """The seconds since the start."""
        return anyio.current_time() - self._started

    def renew(self) -> None:
        """Grants the time without an answer anew: the server has shown progress."""
        if not self._asking:
            end = self._started + self._asked_s + self._limits.call_max_s
            self.scope.deadline = min(anyio.current_time() + self._limits.call_s, end)

    @contextmanager
    def asking(self) -> Generator[None]:
        """Stops the time during the block."""
        if not self._asking:
            self._since = anyio.current_time()
        self._asking += 1
        self.scope.deadline = math.inf
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._asked_s += anyio.current_time() - self._since
                self.renew()


SENDING: ContextVar[Sending | None] = ContextVar("sending", default=None)
"""The call whose request the current task sends, or whose stream brought the current message."""
