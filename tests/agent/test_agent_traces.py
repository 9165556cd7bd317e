"""The spans of an agent: its run, its requests, and the turns, calls and sub-agents below it."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.agent.worlds import Bank, calls
from toolwire import Agent
from toolwire.models import ModelFailed
from toolwire.testing import ScriptedModel


async def test_spans_are_nested_as_the_work_is() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    payer = Agent("payer", ScriptedModel([calls("pay", amount=5), "Paid."]), Bank().tools)
    model = ScriptedModel([calls("payer", task="Pay."), ModelFailed("rate", "too many")])
    lead_agent = Agent("lead", model, [payer.as_tool("Pays.")])
    lead_agent.enable_tracing(tracer_provider=provider)
    result = await lead_agent.run("Pay.", conversation="c")
    assert result.stop == "model"
    spans = exporter.get_finished_spans()
    names = {span.context.span_id: span.name for span in spans}
    found = sorted((span.name, names.get(span.parent.span_id, "") if span.parent else "") for span in spans)
    assert found == [
        ("chat", "invoke_agent lead"),
        ("chat", "invoke_agent lead"),
        ("chat", "invoke_agent payer"),
        ("chat", "invoke_agent payer"),
        ("execute_tool pay", "invoke_agent payer"),
        ("execute_tool payer", "run_turn lead"),
        ("invoke_agent lead", ""),
        ("invoke_agent payer", "execute_tool payer"),
        ("run_turn lead", "invoke_agent lead"),
    ]
    lead = next(span for span in spans if span.name == "invoke_agent lead")
    attributes = dict(lead.attributes or {})
    assert attributes["gen_ai.usage.input_tokens"] == 300
    assert attributes["gen_ai.conversation.id"] == "c"
    failed = [span for span in spans if span.name == "chat" and "error.type" in (span.attributes or {})]
    assert [dict(span.attributes or {})["error.type"] for span in failed] == ["ModelFailed"]
