"""The data that leave the process, through the real exporter to a collector."""

from __future__ import annotations

from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tests.observability.collector import Collector, collecting
from tests.observability.test_calls import CANARY
from toolwire import ToolRegistry


def echo(text: str) -> str:
    """Gives it back."""
    return text


def run_a_program(collector: Collector, **content: Any) -> None:
    traces = TracerProvider()
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector.url}/v1/metrics"), 3_600_000)
    metrics = MeterProvider(metric_readers=[reader])
    registry = ToolRegistry()
    registry.register(echo)
    registry.enable_code_execution()
    registry.enable_tracing(tracer_provider=traces, meter_provider=metrics, **content)
    assert registry.invoke("code_execution", {"code": f"print(echo(text={CANARY!r}))"}).success
    traces.shutdown()
    metrics.shutdown()


def test_a_collector_gets_spans_and_durations() -> None:
    with collecting() as collector:
        run_a_program(collector)
    inner, outer = collector.spans()
    assert [inner.name, outer.name] == ["execute_tool echo", "execute_tool code_execution"]
    assert (inner.parent_span_id, inner.trace_id) == (outer.span_id, outer.trace_id)
    assert {one.key: one.value.string_value for one in inner.attributes if one.key.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Gives it back.",
        "gen_ai.tool.call.id": {one.key: one.value.string_value for one in inner.attributes}["toolwire.call.id"],
    }
    (request,) = collector.metrics
    (metric,) = request.resource_metrics[0].scope_metrics[0].metrics
    assert (metric.name, metric.unit) == ("gen_ai.execute_tool.duration", "s")
    points = metric.histogram.data_points
    assert [(point.count, len(point.explicit_bounds)) for point in points] == [(1, 14), (1, 14)]


def test_no_byte_of_arguments_or_results_leaves_unasked() -> None:
    with collecting() as silent:
        run_a_program(silent)
    with collecting() as asked:
        run_a_program(asked, record_content=True, redact=lambda value: value)
    assert [any(CANARY.encode() in body for body in one.raw) for one in (silent, asked)] == [False, True]
