"""How long calls take, as a histogram; its counts are the numbers of calls."""

from __future__ import annotations

from opentelemetry.metrics import MeterProvider, get_meter

from toolwire.observability import names


class CallMetrics:
    """Records calls in the histogram that the conventions name."""

    def __init__(self, provider: MeterProvider | None) -> None:
        """`provider` None: the global one, also when it is set later."""
        meter = get_meter(names.SCOPE, meter_provider=provider, attributes={names.SCOPE_CONVENTIONS: names.CONVENTIONS})
        self._durations = meter.create_histogram(
            names.EXECUTE_TOOL_DURATION,
            unit="s",
            description="The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=list(names.DURATION_BOUNDARIES_S),
        )

    def ended(self, tool: str | None, error_type: str, duration_s: float) -> None:
        """Records one call. A name that no tool has is counted as one and the same: a model can make up any number."""
        attributes = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            names.TOOL_NAME: names.OTHER if tool is None else tool,
            names.TOOL_TYPE: names.FUNCTION,
        }
        if error_type:
            attributes[names.ERROR_TYPE] = error_type
        self._durations.record(duration_s, attributes)
