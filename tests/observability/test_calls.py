"""A call is one span: its attributes, its parent, and the values that it never holds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from tests.observability.world import Node, Telescope, called
from toolwire import CallContext, Caller, ConfigurationError, Decision, Toolkit, ToolRegistry
from toolwire.observability.content import CONTENT_LIMIT_BYTES, NOT_SHOWN, content_text
from toolwire.observability.tracing import MADE_UP_NAME_LIMIT

CANARY = "canary-7f3a91"


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int) -> int:
    """Adds, later."""
    await asyncio.sleep(0)
    return a + b


def leak(secret: str) -> str:
    """Raises what it was given."""
    raise ValueError(secret)


@pytest.fixture
def telescope() -> Telescope:
    return Telescope()


def traced(telescope: Telescope, *tools: Any, **options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    for tool in tools:
        registry.register(tool)
    registry.enable_tracing(**telescope.providers)
    return registry


@pytest.mark.parametrize("function", [add, add_later])
@pytest.mark.parametrize("driver", ["invoke", "ainvoke"])
def test_a_call_is_one_span(telescope: Telescope, function: Any, driver: str) -> None:
    registry = traced(telescope, function)
    if driver == "invoke":
        registry.invoke(function.__name__, {"a": 1, "b": 2})
    else:
        asyncio.run(registry.ainvoke(function.__name__, {"a": 1, "b": 2}))
    description = function.__doc__.strip()
    expected = called(function.__name__, "run1", gen_ai__tool__description=description)
    assert telescope.tree() == [Node(f"execute_tool {function.__name__}", expected)]


def test_the_scope_says_whose_names_these_are(telescope: Telescope) -> None:
    traced(telescope, add).invoke("add", {"a": 1, "b": 2})
    scope = telescope.spans()[0].instrumentation_scope
    assert scope is not None
    conventions = "semantic-conventions-genai of November 2026 (Development), on semantic-conventions 1.42"
    assert (scope.name, dict(scope.attributes or {})) == ("toolwire", {"toolwire.conventions": conventions})


def failing(name: str, kind: str, **more: Any) -> Node:
    attributes = called(name, "run1", error__type=kind, **{**more, "toolwire__call__outcome": "failed"})
    return Node(f"execute_tool {name}", attributes, is_error=True)


def test_a_tool_that_raises_is_an_error_of_its_kind(telescope: Telescope) -> None:
    traced(telescope, leak).invoke("leak", {"secret": CANARY})
    told = {"gen_ai__tool__description": "Raises what it was given.", "exception__type": "ValueError"}
    assert telescope.tree() == [failing("leak", "tool_error", **told)]


def test_a_denied_call_is_an_error_of_its_kind(telescope: Telescope) -> None:
    traced(telescope, add, rules=[{"effect": "deny", "tool": "add"}]).invoke("add", {"a": 1, "b": 2})
    assert telescope.tree() == [failing("add", "denied", gen_ai__tool__description="Adds.")]


def test_wrong_arguments_are_an_error_of_their_kind(telescope: Telescope) -> None:
    traced(telescope, add).invoke("add", {"a": CANARY, "b": 2})
    assert telescope.tree() == [failing("add", "invalid_arguments", gen_ai__tool__description="Adds.")]


@pytest.mark.parametrize("length", [MADE_UP_NAME_LIMIT, MADE_UP_NAME_LIMIT + 1])
def test_a_name_that_no_tool_has_names_no_span(telescope: Telescope, length: int) -> None:
    traced(telescope, add).invoke("n" * length)
    expected = failing("", "unknown_tool")
    expected.name = "execute_tool"
    expected.attributes["gen_ai.tool.name"] = "n" * MADE_UP_NAME_LIMIT
    assert telescope.tree() == [expected]
    metric = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function"}
    assert telescope.durations() == [({**metric, "gen_ai.tool.name": "_OTHER", "error.type": "unknown_tool"}, 1)]


def test_an_interrupted_call_is_an_error_of_its_kind(telescope: Telescope) -> None:
    async def stuck() -> None:
        """Waits."""
        await asyncio.Event().wait()

    registry = traced(telescope, stuck)

    async def cancelled() -> None:
        task = asyncio.ensure_future(registry.ainvoke("stuck"))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert telescope.tree() == [failing("stuck", "interrupted", gen_ai__tool__description="Waits.")]


# -- around and inside -------------------------------------------------------------------------------------------


OWN: list[trace.Tracer] = []


def opens_a_span() -> str:
    """Does work of its own."""
    with OWN[0].start_as_current_span("own work"):
        return "done"


async def opens_a_span_later() -> str:
    """Does work of its own."""
    return opens_a_span()


def streams() -> Iterator[str]:
    """Gives parts."""
    with OWN[0].start_as_current_span("own work"):
        yield "done"


async def streams_later() -> AsyncIterator[str]:
    """Gives parts."""
    with OWN[0].start_as_current_span("own work"):
        yield "done"


@pytest.fixture
def own(telescope: Telescope, monkeypatch: pytest.MonkeyPatch) -> trace.Tracer:
    tracer = telescope.tracer_provider.get_tracer("own")
    monkeypatch.setitem(globals(), "OWN", [tracer])
    return tracer


def names(nodes: list[Node]) -> list[Any]:
    return [(node.name, names(node.inside)) if node.inside else node.name for node in nodes]


@pytest.mark.parametrize("timeout_s", [None, 5.0])
@pytest.mark.parametrize("function", [opens_a_span, opens_a_span_later, streams, streams_later])
@pytest.mark.parametrize("driver", ["invoke", "ainvoke"])
def test_the_span_is_current_around_and_inside(
    telescope: Telescope, own: trace.Tracer, function: Any, driver: str, timeout_s: float | None
) -> None:
    registry = ToolRegistry()
    registry.register(function, "work", timeout_s=timeout_s)
    registry.enable_tracing(**telescope.providers)
    with own.start_as_current_span("around"):
        if driver == "invoke":
            assert registry.invoke("work").success
        else:
            assert asyncio.run(registry.ainvoke("work")).success
        inside_again = trace.get_current_span()
    assert telescope.spans()[-1].context == inside_again.get_span_context()
    assert names(telescope.tree()) == [("around", [("execute_tool work", ["own work"])])]
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_calls_that_a_tool_makes_are_inside_of_its_own(telescope: Telescope) -> None:
    async def twice(a: int, context: CallContext) -> int:
        """Adds twice."""
        results = await asyncio.gather(*(context.call("add_later", a=a, b=b) for b in (1, 2)))
        return sum(result.data for result in results)

    registry = traced(telescope, add_later, twice)
    assert registry.invoke("twice", {"a": 1}).data == 5
    assert names(telescope.tree()) == [("execute_tool twice", ["execute_tool add_later"] * 2)]


def test_a_wait_for_a_person_is_a_span_of_its_own(telescope: Telescope, own: trace.Tracer) -> None:
    def approver(request: Any) -> Decision:
        with own.start_as_current_span("asks"):
            return Decision(verdict="approve")

    registry = traced(telescope, add, rules=[{"effect": "confirm", "tool": "add"}], approver=approver)
    assert registry.invoke("add", {"a": 1, "b": 2}).data == 3
    asked = {
        "gen_ai.tool.name": "add",
        "toolwire.approval.request_id": "request1",
        "toolwire.approval.verdict": "approve",
    }
    expected = called("add", "run1", gen_ai__tool__description="Adds.")
    waits = Node("request_approval add", asked, inside=[Node("asks", {})])
    assert telescope.tree() == [Node("execute_tool add", expected, inside=[waits])]


@pytest.mark.parametrize(
    ("answer", "verdict"), [(None, "none"), (Decision(verdict="deny"), "deny"), (OSError("gone"), "none")]
)
def test_a_call_without_approval_says_so(telescope: Telescope, answer: Any, verdict: str) -> None:
    def approver(request: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    registry = traced(telescope, add, rules=[{"effect": "confirm", "tool": "add"}], approver=approver)
    registry.invoke("add", {"a": 1, "b": 2})
    (root,) = telescope.tree()
    assert [node.attributes["toolwire.approval.verdict"] for node in root.inside] == [verdict]
    assert root.attributes["error.type"] == ("denied" if verdict == "deny" else "approval_required")


# -- who is followed ---------------------------------------------------------------------------------------------


def test_without_tracing_there_is_no_span(telescope: Telescope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", telescope.tracer_provider)
    registry = ToolRegistry()
    registry.register(add)
    registry.invoke("add", {"a": 1, "b": 2})
    assert telescope.spans() == ()
    registry.enable_tracing()
    registry.invoke("add", {"a": 1, "b": 2})
    assert names(telescope.tree()) == ["execute_tool add"]


def test_toolkits_of_a_traced_registry_are_followed_from_then_on(telescope: Telescope) -> None:
    registry = ToolRegistry()
    registry.register(add)
    toolkit = registry.create_agent_toolkit("ada", ["add"])
    asyncio.run(toolkit.execute_tool("add", {"a": 1, "b": 2}))
    registry.enable_tracing(**telescope.providers)
    asyncio.run(toolkit.execute_tool("add", {"a": 1, "b": 2}))
    expected = called("add", "run1", gen_ai__tool__description="Adds.", gen_ai__agent__name="ada")
    assert telescope.tree() == [Node("execute_tool add", expected)]


def test_a_toolkit_can_be_followed_alone(telescope: Telescope) -> None:
    registry = ToolRegistry()
    registry.register(add)
    toolkit = registry.create_agent_toolkit("", ["add"])
    toolkit.enable_tracing(**telescope.providers)
    registry.invoke("add", {"a": 1, "b": 2})
    asyncio.run(toolkit.execute_tool("add", {"a": 1, "b": 2}))
    assert names(telescope.tree()) == ["execute_tool add"]


def test_a_toolkit_of_its_own_is_followed(telescope: Telescope) -> None:
    toolkit = Toolkit(caller=Caller(agent="bob"))
    toolkit.register_tool_function(add)
    toolkit.enable_tracing(**telescope.providers)
    asyncio.run(toolkit.execute_tool("add", {"a": 1, "b": 2}))
    assert [node.attributes["gen_ai.agent.name"] for node in telescope.tree()] == ["bob"]


def test_enabling_again_replaces(telescope: Telescope) -> None:
    other = Telescope()
    registry = traced(telescope, add)
    registry.enable_tracing(**other.providers)
    registry.invoke("add", {"a": 1, "b": 2})
    assert (telescope.spans(), names(other.tree())) == ((), ["execute_tool add"])


# -- attributes --------------------------------------------------------------------------------------------------


def echo(text: str) -> str:
    """Gives it back."""
    return f"{text} and {text}"


@pytest.mark.parametrize("name", ["echo", "leak"])
def test_nothing_of_arguments_or_results_is_told_unasked(telescope: Telescope, name: str) -> None:
    registry = traced(telescope, echo, leak)
    arguments = {"text": CANARY} if name == "echo" else {"secret": CANARY}
    assert CANARY in registry.invoke(name, arguments).text
    assert CANARY not in telescope.text()
    # The control: the same calls with content say it.
    registry.enable_tracing(record_content=True, redact=lambda value: value, **telescope.providers)
    registry.invoke(name, arguments)
    assert CANARY in telescope.text()


def content(telescope: Telescope) -> list[tuple[Any, Any]]:
    found = [node.attributes for node in telescope.tree()]
    return [(said["gen_ai.tool.call.arguments"], said["gen_ai.tool.call.result"]) for said in found]


def test_content_is_told_when_asked_for(telescope: Telescope) -> None:
    registry = traced(telescope, echo, add)
    registry.enable_tracing(record_content=True, redact=lambda value: value, **telescope.providers)
    registry.invoke("echo", {"text": "né"})
    registry.invoke("add", {"a": 1, "b": 2})
    assert content(telescope) == [('{"text": "né"}', '"né and né"'), ('{"a": 1, "b": 2}', "3")]


def test_content_is_redacted(telescope: Telescope) -> None:
    def redact(value: Any) -> Any:
        if isinstance(value, dict):
            return dict.fromkeys(value, "***")
        return value.replace(CANARY, "***")

    registry = traced(telescope, echo)
    registry.enable_tracing(record_content=True, redact=redact, **telescope.providers)
    registry.invoke("echo", {"text": CANARY})
    assert content(telescope) == [('{"text": "***"}', '"*** and ***"')]
    assert CANARY not in telescope.text()


def test_content_that_cannot_be_redacted_is_left_out(telescope: Telescope, caplog: pytest.LogCaptureFixture) -> None:
    def redact(value: Any) -> Any:
        raise TypeError("no such value")

    registry = traced(telescope, echo)
    registry.enable_tracing(record_content=True, redact=redact, **telescope.providers)
    with caplog.at_level(logging.ERROR, "toolwire.tracing"):
        assert registry.invoke("echo", {"text": CANARY}).success
    assert content(telescope) == [(NOT_SHOWN, NOT_SHOWN)]
    assert [record.message for record in caplog.records] == [
        "the redact function of tracing failed; the content was left out"
    ] * 2


def test_secrets_are_redacted_by_default(telescope: Telescope) -> None:
    def login(name: str, password: str) -> str:
        """Logs in."""
        return f"token: {password}"

    registry = traced(telescope, login)
    registry.enable_tracing(record_content=True, **telescope.providers)
    registry.invoke("login", {"name": "ada", "password": "hunter2hunter2"})
    assert content(telescope) == [('{"name": "ada", "password": "<redacted>"}', '"token: <redacted>"')]


def test_presets_are_never_told(telescope: Telescope) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(lambda_free, preset_kwargs={"key": CANARY})
    toolkit.enable_tracing(record_content=True, redact=lambda value: value, **telescope.providers)
    asyncio.run(toolkit.execute_tool("lambda_free", {"text": "hello"}))
    assert content(telescope) == [('{"text": "hello"}', '"hello"')]


def lambda_free(text: str, key: str) -> str:
    """Uses a key."""
    return text if key else ""


@pytest.mark.parametrize("extra", [0, 1])
def test_content_is_bounded(extra: int) -> None:
    text = "x" * (CONTENT_LIMIT_BYTES - 2 + extra)
    shown = content_text(text, lambda value: value)
    whole = f'"{text}"'
    cut = whole[:CONTENT_LIMIT_BYTES] + "\n[cut: the first 16,384 of 16,385 bytes are shown]"
    assert shown == (cut if extra else whole)


def test_a_value_that_json_has_no_word_for_is_told_by_its_type() -> None:
    assert content_text(object(), lambda value: value) == '"<object>"'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record_content": True, "redact": 5}, "redact=5: give a function that takes and gives a JSON value"),
        (
            {"redact": str},
            "redact: nothing is recorded that it could redact; add record_content=True",
        ),
    ],
)
def test_wrong_settings_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ToolRegistry().enable_tracing(**options)
    assert str(refused.value) == message


# -- metrics -----------------------------------------------------------------------------------------------------


def test_calls_are_measured_by_tool_and_error(telescope: Telescope) -> None:
    registry = traced(telescope, add, leak)
    for _ in range(3):
        registry.invoke("add", {"a": 1, "b": 2})
    registry.invoke("leak", {"secret": CANARY})
    same = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function"}
    assert telescope.durations() == [
        ({**same, "gen_ai.tool.name": "add"}, 3),
        ({**same, "gen_ai.tool.name": "leak", "error.type": "tool_error"}, 1),
    ]


def test_a_duration_is_that_of_its_span(telescope: Telescope) -> None:
    traced(telescope, add).invoke("add", {"a": 1, "b": 2})
    data = telescope.reader.get_metrics_data()
    assert data is not None
    (point,) = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
    (span,) = telescope.spans()
    assert span.end_time is not None
    assert span.start_time is not None
    assert point.sum == pytest.approx((span.end_time - span.start_time) / 1e9, abs=2e-9)  # type: ignore[union-attr]


# -- what breaks -------------------------------------------------------------------------------------------------


class Broken(SpanExporter):
    """A processor's worst day."""

    def export(self, spans: Any) -> Any:
        raise OSError("the collector is gone")


class BrokenProcessor(SimpleSpanProcessor):
    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise OSError("the processor is broken")


@pytest.mark.parametrize("processor", [SimpleSpanProcessor(Broken()), BrokenProcessor(InMemorySpanExporter())])
def test_no_call_fails_because_tracing_fails(processor: Any) -> None:
    provider = TracerProvider()
    provider.add_span_processor(processor)
    registry = ToolRegistry()
    registry.register(add)
    registry.enable_tracing(tracer_provider=provider)
    assert registry.invoke("add", {"a": 1, "b": 2}).data == 3
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_unsampled_calls_are_counted_but_not_traced() -> None:
    telescope = Telescope()
    telescope.tracer_provider = TracerProvider(sampler=ALWAYS_OFF)
    telescope.tracer_provider.add_span_processor(SimpleSpanProcessor(telescope.exporter))
    rendered: list[Any] = []
    registry = ToolRegistry()
    registry.register(add)
    registry.enable_tracing(record_content=True, redact=rendered.append, **telescope.providers)
    registry.invoke("add", {"a": 1, "b": 2})
    assert (telescope.spans(), rendered, [count for _, count in telescope.durations()]) == ((), [], [1])
