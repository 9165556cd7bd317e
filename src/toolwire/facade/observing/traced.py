"""Switches tracing on, for registries and toolkits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolwire.runtime.tracer import Tracer
from toolwire.vocabulary.errors import ConfigurationError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider


class Traceable:
    """A base for classes whose calls can be traced."""

    def _trace_with(self, tracer: Tracer) -> None:
        """Sets the tracer for every call from now on, in place of the one before."""
        raise NotImplementedError

    def enable_tracing(
        self,
        *,
        record_content: bool = False,
        redact: Callable[[Any], Any] | None = None,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Makes OpenTelemetry spans and metrics of calls from now on, as `docs/tracing.md` lists them.

        Without providers the global ones of `opentelemetry` are used. With `record_content` spans also hold arguments,
        results and error messages, after `redact` has removed private parts of these JSON values. By default it removes
        values that look like secrets or have the name of one. A second call replaces the first.

        Raises:
            ConfigurationError: `redact` cannot be called, or is given without `record_content`.
        """
        self._trace_with(span_tracer(record_content, redact, tracer_provider, meter_provider))


def span_tracer(
    record_content: bool,
    redact: Callable[[Any], Any] | None,
    tracer_provider: TracerProvider | None,
    meter_provider: MeterProvider | None,
) -> Tracer:
    """Returns a tracer with these settings.

    Raises:
        ConfigurationError: see `enable_tracing`.
    """
    from toolwire.observability.tracing import SpanTracer

    if redact is not None and not callable(redact):
        raise ConfigurationError(f"redact={redact!r:.80}: give a function that takes and gives a JSON value")
    if redact is not None and not record_content:
        raise ConfigurationError("redact: nothing is recorded that it could redact; add record_content=True")
    return SpanTracer(
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
        redact=(redact or default_redact()) if record_content else None,
    )


def default_redact() -> Callable[[Any], Any]:
    """Returns a function that removes values which look like secrets, or have the name of one, from a JSON value."""
    from toolwire.journal.log.redaction import redact

    return redact
