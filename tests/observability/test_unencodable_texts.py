"""An exporter encodes the content of spans: one lone surrogate would lose its whole batch."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolwire import ToolRegistry


@pytest.mark.threat(75)
def test_every_text_of_a_span_can_be_encoded() -> None:
    def say(text: str) -> str:
        """Says it."""
        if text == "fail":
            raise ValueError("\ud83d\x00")
        return "\ud83d\x00\u2028"

    registry = ToolRegistry()
    registry.register(say)
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    registry.enable_tracing(tracer_provider=provider, record_content=True)
    registry.invoke("say", {"text": "\udc9b"})
    registry.invoke("say", {"text": "fail"})
    registry.invoke("no\ud83d", {})
    found = spans.get_finished_spans()
    values = [value for span in found for held in (span, *span.events) for value in (held.attributes or {}).values()]
    assert len(found) == 3
    for value in [*values, *(span.name for span in found)]:
        str(value).encode("utf-8")
    assert any("\ufffd" in str(value) for value in values)
