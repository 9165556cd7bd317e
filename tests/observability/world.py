"""Spans and metrics as tests read them: whole, with ids that are the same in every run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

_ID = re.compile(r"\b(tr_ptc|r|a)_[0-9a-zA-Z_]+")


@dataclass
class Node:
    """A span and those inside of it, in the order of their beginning."""

    name: str
    attributes: dict[str, Any]
    is_error: bool = False
    inside: list[Node] = field(default_factory=list["Node"])


class Telescope:
    """A real SDK that keeps its spans and metrics."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meter_provider = MeterProvider(metric_readers=[self.reader])

    @property
    def providers(self) -> dict[str, Any]:
        return {"tracer_provider": self.tracer_provider, "meter_provider": self.meter_provider}

    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def text(self) -> str:
        """Everything that left the process, as one text."""
        return "\n".join(span.to_json() for span in self.spans()) + self.metrics_text()

    def metrics_text(self) -> str:
        data = self.reader.get_metrics_data()
        return "" if data is None else data.to_json()

    def tree(self) -> list[Node]:
        """The spans as trees; attributes that are the same everywhere are left out once they were looked at."""
        spans = sorted(self.spans(), key=lambda span: span.start_time or 0)
        ids: dict[str, str] = {}
        nodes = {span.context.span_id: _node(span, ids) for span in spans if span.context is not None}
        roots: list[Node] = []
        for span in spans:
            assert span.context is not None
            parent = None if span.parent is None else nodes.get(span.parent.span_id)
            (roots if parent is None else parent.inside).append(nodes[span.context.span_id])
        return roots

    def durations(self) -> list[tuple[dict[str, Any], int]]:
        """The points of the one metric: attributes and how many calls."""
        data = self.reader.get_metrics_data()
        found: list[tuple[dict[str, Any], int]] = []
        for resource in [] if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    assert (metric.name, metric.unit) == ("gen_ai.execute_tool.duration", "s")
                    for point in metric.data.data_points:
                        assert isinstance(point, HistogramDataPoint)
                        found.append((dict(point.attributes or {}), point.count))
        return found


def called(name: str, call_id: str, run_id: str = "", **more: Any) -> dict[str, Any]:
    """The attributes of every call's span."""
    given = {key.replace("__", "."): value for key, value in more.items()}
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call_id,
        "toolwire.call.id": call_id,
        "toolwire.run.id": run_id or call_id,
        "toolwire.call.outcome": "answered",
        **given,
    }


def _node(span: ReadableSpan, ids: dict[str, str]) -> Node:
    assert span.kind is (SpanKind.CLIENT if span.name.startswith("chat") else SpanKind.INTERNAL)
    assert span.events == ()
    assert span.status.description is None
    attributes = {key: _plain(value, ids) for key, value in _sorted(span.attributes or {})}
    return Node(span.name, attributes, not span.status.is_ok)


def _sorted(attributes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(attributes.items())


def _plain(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, tuple):
        return [_plain(item, ids) for item in value]
    if not isinstance(value, str):
        return value

    def known(match: re.Match[str]) -> str:
        kind = {"tr_ptc": "program", "r": "run", "a": "request"}[match[1]]
        number = 1 + sum(label.startswith(kind) for label in ids.values())
        return ids.setdefault(match[0], f"{kind}{number}")

    return _ID.sub(known, value)
