"""Metrics of a server's calls by client, server and tool, and of its places. They go where the registry's traces go."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from toolwire.gateway.slots import Slots
from toolwire.invocation.ports.ports import CallRecord
from toolwire.observability import names
from toolwire.observability.tracing import server_of
from toolwire.vocabulary.errors import ToolwireError
from toolwire.vocabulary.texts.lone_surrogates import encodable_text

if TYPE_CHECKING:
    from toolwire.journal.store import Store

PRINCIPALS = 200
"""Principals that have a name in metrics. Each is a series of its own for each tool; the others share one."""

FLUSH_MS = 2_000
"""Milliseconds in which spans and metrics leave before the process ends."""

_LOG = logging.getLogger("toolwire.gateway")


class ServedMetrics:
    """An observer of calls, and the counts of places."""

    def __init__(self, meter: Meter, calls: Slots, forms: Slots, store: Store | None) -> None:
        """`calls` and `forms` are the places of calls under way, and of those that wait for the answer to a form."""
        self._durations = meter.create_histogram(
            names.SERVED_DURATION,
            unit="s",
            description="The duration of a call of a client.",
            explicit_bucket_boundaries_advisory=list(names.DURATION_BOUNDARIES_S),
        )
        self._lock = threading.Lock()
        self._named: set[str] = set()
        places = (("calls", calls), ("forms", forms))
        used = [_reader(lambda one=slots: one.in_use, {names.PLACES: kind}) for kind, slots in places]
        limits = [_reader(lambda one=slots: one.limit, {names.PLACES: kind}) for kind, slots in places]
        meter.create_observable_gauge(names.PLACES_USED, used, description="Places that are taken.")
        meter.create_observable_gauge(names.PLACES_LIMIT, limits, description="Places that there are.")
        if store is not None:
            waiting = [_reader(lambda: store.waiting().count, {})]
            meter.create_observable_gauge(names.WAITING, waiting, description="Requests that wait for a person.")

    def ended(self, record: CallRecord, /) -> None:
        """Measures a call that ran, or was refused."""
        if record.is_from_record:
            return
        tool = names.OTHER if record.entry is None else record.entry.name
        attributes = {names.TOOL_NAME: tool}
        if server := server_of(tool):
            attributes[names.SERVER] = server
        if principal := record.caller.principal:
            attributes[names.PRINCIPAL] = self._shown(principal)
        if record.result.failure is not None:
            attributes[names.ERROR_TYPE] = record.result.failure.kind
        self._durations.record(record.duration_s, attributes)

    def _shown(self, principal: str) -> str:
        with self._lock:
            if principal not in self._named:
                if len(self._named) >= PRINCIPALS:
                    return names.OTHER
                self._named.add(principal)
        return encodable_text(principal)


def flush_telemetry() -> None:
    """Sends the spans and metrics that still wait. For a process that ends without the exit of Python."""
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        flush = getattr(provider, "force_flush", None)
        if flush is not None:
            flush(FLUSH_MS)


def _reader(read: Callable[[], int], attributes: dict[str, str]) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_: CallbackOptions) -> Iterable[Observation]:
        try:
            return [Observation(read(), attributes)]
        except ToolwireError as error:
            _LOG.warning("a metric cannot be read: %s", error)
            return []

    return observe
