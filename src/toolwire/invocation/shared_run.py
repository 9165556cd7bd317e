"""The state that all calls of one run share: the data that it has read, and its end."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from toolwire.invocation.ports.under_way import UnderWay
from toolwire.permission.seen_urls import with_urls
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.failures import stop_facts
from toolwire.vocabulary.results import ToolResult


class TurnEnd(Protocol):
    """The end of one turn, for a model that ends by a call (`session.finish`)."""

    @property
    def name(self) -> str:
        """The name of the tool by which the model ends."""
        ...

    @property
    def call_id(self) -> str:
        """The id of the call by which the model ended; empty until then."""
        ...

    def take(self, prepared: Any, /) -> ToolResult | None:
        """Ends the turn by this call (`invocation.validate.Prepared`), unless another call was first.

        None: its tool ends no turn.
        """
        ...

    def refusal(self, call: ToolCall, scope: Any, /) -> ToolResult | None:
        """Returns the result of a call that does not run because of a call before it; None if it may run.

        `scope` is the `invocation.scope.Scope` of the call.
        """
        ...

    def recall(self, call: ToolCall, result: ToolResult, scope: Any, /) -> None:
        """Ends the turn if this recorded call ended it, or a call of this recorded program.

        `scope` is the `invocation.scope.Scope` of the call.
        """
        ...


class AfterFailure:
    """The end of a turn for the calls of a sequence that follow one that failed: none of them runs."""

    name = call_id = ""

    def take(self, _prepared: Any, /) -> None:
        """Ends nothing."""

    def refusal(self, call: ToolCall, _scope: Any, /) -> ToolResult:
        """Returns the result of a call that does not run, because the call before it failed."""
        message = f"{call.name!r} was not run: the one before it in your reply had failed."
        data = stop_facts(is_started=False, may_repeat=True)
        return ToolResult.failed("interrupted", message, hint="Mend that one first.", data=data, call=call)

    def recall(self, call: ToolCall, result: ToolResult, scope: Any, /) -> None:
        """Ends nothing."""


class LastCall(Protocol):
    """The last call of a turn: its record waits for the end of the turn (`invocation.invoker.Trail`)."""

    async def tell(self, outcome: ToolResult, /) -> object:
        """Tells the end of the call, which is durable now."""
        ...

    def break_off(self) -> None:
        """Tells that the end of the call could not be recorded."""
        ...


class Run:
    """The state that all calls of one run share. Any thread may change it."""

    __slots__ = (
        "__weakref__",
        "_last",
        "_lock",
        "asked",
        "end",
        "open_calls",
        "stopped",
        "taints",
        "under_way",
        "urls",
    )

    def __init__(self, taints: Iterable[Label] = (), end: TurnEnd | None = None) -> None:
        self.taints = frozenset(taints)
        """Labels of the data that the run has read so far."""
        self.asked: frozenset[str] = frozenset()
        """Ids of the calls that a person was asked about in an earlier pass."""
        self.stopped: str | None = None
        """The reason why nothing more may start; None while the run continues."""
        self.end = end
        """The end of the turn; None if the model ends by no call."""
        self.urls: Mapping[str, None] = {}
        """URLs that stood whole in results which the run's conversation has read, the oldest first."""
        self.under_way = UnderWay()
        """The calls of the turn and of its programs that have begun and not ended, and how they stop."""
        self.open_calls = 0
        """Number of the turn's own calls that have not ended, if their ends are recorded."""
        self._last: tuple[LastCall, ToolResult] | None = None
        self._lock = threading.Lock()

    def hold_last(self, call: LastCall, result: ToolResult) -> None:
        """Keeps the turn's last call, whose end is recorded together with the end of the turn, until then."""
        self._last = call, result

    async def tell_last(self) -> None:
        """Tells the end of the turn's last call, which is durable now. Does nothing a second time."""
        if self._last is not None:
            (call, result), self._last = self._last, None
            await call.tell(result)

    def break_off_last(self) -> None:
        """Tells that the end of the turn's last call could not be recorded, unless it was told before."""
        if self._last is not None:
            (call, _), self._last = self._last, None
            call.break_off()

    def interrupt(self, reason: str) -> None:
        """Stops the running calls of the turn. Nothing more starts, and nothing waits for a person beyond the turn."""
        self.stopped = self.stopped or reason
        self.under_way.stop(reason)

    def read(self, labels: frozenset[Label]) -> None:
        """Adds the labels of a result. Labels are never removed."""
        if not labels <= self.taints:
            with self._lock:
                self.taints |= labels

    def saw(self, urls: Iterable[str]) -> None:
        """Adds URLs of a result. Beyond `SEEN_URLS_LIMIT` the oldest are dropped."""
        more = tuple(urls)
        if more:
            with self._lock:
                self.urls = with_urls(self.urls, more)
