"""The duration of calls, as a histogram. Its counts are the numbers of calls."""

from __future__ import annotations

from opentelemetry.metrics import MeterProvider, get_meter

from toolwire.observability import names


class CallMetrics:
    """Records calls in the histogram defined by the conventions."""

    def __init__(self, provider: MeterProvider | None) -> None:
        """`provider` None uses the global meter provider, even if it is set later."""
        meter = get_meter(names.SCOPE, meter_provider=provider, attributes={names.SCOPE_CONVENTIONS: names.CONVENTIONS})
        self._durations = meter.create_histogram(
            names.EXECUTE_TOOL_DURATION,
            unit="s",
            description="The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=list(names.DURATION_BOUNDARIES_S),
        )

    def ended(self, tool: str | None, error_type: str, duration_s: float) -> None:
        """Records one call.

        All unknown tool names share one attribute value, because a model can invent any number of names.
        """
        attributes = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            names.TOOL_NAME: names.OTHER if tool is None else tool,
            names.TOOL_TYPE: names.FUNCTION,
        }
        if error_type:
            attributes[names.ERROR_TYPE] = error_type
        self._durations.record(duration_s, attributes)
