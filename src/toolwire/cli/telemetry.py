"""Sends the traces and metrics of a command, as the variables `OTEL_*` of OpenTelemetry say."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

import toolwire
from toolwire.cli.exit_codes import ExitCode, Stop
from toolwire.cli.output import Output

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter

Signal = Literal["TRACES", "METRICS"]
_EXPORTERS = ("otlp", "console", "none")
_HTTP = "http/protobuf"


def start_telemetry(registry: toolwire.ToolRegistry, output: Output) -> None:
    """Sends the spans and metrics of a registry from now on, if a variable says where to.

    `OTEL_TRACES_EXPORTER` and `OTEL_METRICS_EXPORTER` are `otlp`, `console`, which is standard error, or `none`.
    Without them, an `OTEL_EXPORTER_OTLP_ENDPOINT` means both. The other variables are those of the SDK.

    Raises:
        Stop: A variable names an exporter that is not there.
    """
    traces, metrics = _exporter_for("TRACES"), _exporter_for("METRICS")
    if traces == metrics == "none":
        return
    try:
        _set_providers(traces, metrics)
    except ImportError:
        output.say("a variable OTEL_* is set, and nothing is sent: pip install 'toolwire[otel]', or unset it")
        return
    registry.enable_tracing()


def _exporter_for(signal: Signal) -> str:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "none"
    variable = f"OTEL_{signal}_EXPORTER"
    given = os.environ.get(variable, "").strip()
    if given and given not in _EXPORTERS:
        raise Stop(ExitCode.WRONG_USAGE, f"{variable}={given!r:.80} is not known", hint="Write otlp, console or none.")
    places = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    found = given or ("otlp" if any(os.environ.get(place, "").strip() for place in places) else "none")
    for variable in ("OTEL_EXPORTER_OTLP_PROTOCOL", f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"):
        protocol = os.environ.get(variable, "").strip() or _HTTP
        if found == "otlp" and protocol != _HTTP:
            hint = f"Write {_HTTP}, or leave it out."
            raise Stop(ExitCode.WRONG_USAGE, f"{variable}={protocol!r:.80} is not spoken here", hint=hint)
    return found


def _set_providers(traces: str, metrics: str) -> None:
    """Sets the global providers, which the SDK of MCP uses as well. At the end of Python they send the rest.

    Raises:
        ImportError: The packages of the extra are not here.
    """
    from opentelemetry import metrics as metrics_api
    from opentelemetry import trace as trace_api
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # Both before either is set, so that a missing package changes nothing.
    spans, points = _span_exporter(traces), _metric_exporter(metrics)
    if spans is not None:
        tracer = TracerProvider(resource=_resource())
        tracer.add_span_processor(BatchSpanProcessor(spans))
        trace_api.set_tracer_provider(tracer)
    if points is not None:
        reader = PeriodicExportingMetricReader(points)
        metrics_api.set_meter_provider(MeterProvider(metric_readers=[reader], resource=_resource()))


def _resource() -> Resource:
    from opentelemetry.sdk.resources import Resource

    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    more = {} if named else {"service.name": "toolwire"}
    return Resource.create({"service.version": toolwire.__version__, **more})


def _span_exporter(name: str) -> SpanExporter | None:
    if name == "console":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter(out=sys.stderr)
    if name == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    return None


def _metric_exporter(name: str) -> MetricExporter | None:
    if name == "console":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter

        return ConsoleMetricExporter(out=sys.stderr)
    if name == "otlp":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter()
    return None
