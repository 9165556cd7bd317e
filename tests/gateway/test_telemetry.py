"""`toolwire serve` with variables of OpenTelemetry: spans and metrics by client, server and tool leave the process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp import Client
from tests.cli.command_line import run_here
from tests.gateway.conftest import TOOLS, Served, serve_command
from tests.gateway.test_config import said_until_served, serve_config, servers_of
from tests.gateway.test_overrides import RAW
from tests.gateway.test_tokens import client_of
from tests.observability.collector import Collector, collecting
from tests.patience import PATIENCE_S, eventually, until

PLACES_LIMIT = "toolwire.gateway.places.limit"


async def has_raw(client: Client) -> bool:
    return "raw" in await servers_of(client)


def attributes_of(point: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in point.attributes}


def points_of(collector: Collector, name: str) -> list[Any]:
    """The points of the last export of this metric."""
    found: list[Any] = []
    for request in collector.metrics:
        for metric in request.resource_metrics[0].scope_metrics[0].metrics:
            if metric.name == name:
                found = list(getattr(metric, metric.WhichOneof("data")).data_points)
    return found


async def test_spans_and_metrics_name_client_server_and_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "mcp.json"
    profiles = {"ops": {"token": "${OPS_TOKEN}", "tools": ["*"]}}
    config.write_text(json.dumps({"mcpServers": {"raw": RAW}, "profiles": profiles}))
    (tmp_path / "policy.toml").write_text('[[rule]]\ntool = "raw/*"\neffect = "auto"\n')
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
        monkeypatch.setenv("OPS_TOKEN", "ops-1")
        options = ["--config", str(config), "--policy", str(tmp_path / "policy.toml"), "--tools", TOOLS]
        process = serve_config(*options, cwd=tmp_path)
        try:
            *_, served = said_until_served(process)
            port = int(served.split(":")[-1].partition("/")[0])
            async with client_of(port, "ops-1") as client:
                await eventually(lambda: has_raw(client), True)
                assert (await client.call_tool("raw_say", {"text": "private"})).is_error is False
                assert (await client.call_tool("fail", {})).is_error
                assert (await client.call_tool("pay", {"amount": 1, "record": "x"})).is_error
            until(
                lambda: bool([one for one in points_of(collector, "toolwire.gateway.requests.waiting") if one.as_int])
            )
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
    durations = [attributes_of(point) for point in points_of(collector, "toolwire.gateway.call.duration")]
    by_ops = {"toolwire.principal": "ops"}
    assert {**by_ops, "gen_ai.tool.name": "raw/say", "toolwire.server": "raw"} in durations
    assert {**by_ops, "gen_ai.tool.name": "fail", "error.type": "tool_error"} in durations
    limits = {attributes_of(one)["toolwire.places"]: one.as_int for one in points_of(collector, PLACES_LIMIT)}
    assert limits == {"calls": 256, "forms": 1_000}
    assert points_of(collector, "toolwire.gateway.places.used") != []
    assert points_of(collector, "gen_ai.execute_tool.duration") != []
    spans = {span.name: span for span in collector.spans()}
    assert attributes_of(spans["execute_tool raw/say"]).items() >= {**by_ops, "toolwire.server": "raw"}.items()
    # The span of the request, which the SDK makes, is around it.
    assert spans["execute_tool raw/say"].trace_id == spans["tools/call raw_say"].trace_id
    resource = collector.traces[0].resource_spans[0].resource
    assert attributes_of(resource)["service.name"] == "toolwire"
    assert not any(b"private" in body or b"ops-1" in body for body in collector.raw)


def test_a_process_that_is_stopped_at_stdin_sends_the_rest(tmp_path: Path) -> None:
    start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": start},
        {"id": 2, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}},
    ]
    with collecting() as collector:
        env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_METRICS_EXPORTER": "none"}
        pipe = subprocess.PIPE
        command = serve_command("--store", "none")
        process = subprocess.Popen(command, env=env, cwd=tmp_path, stdin=pipe, stdout=pipe, text=True)
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
            assert '"result"' in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        process.stdin.close()
        process.stdout.close()
    assert "execute_tool add" in [span.name for span in collector.spans()]
    assert collector.metrics == []


async def test_the_console_is_stderr(served: Callable[..., Served]) -> None:
    process = served(env={"OTEL_TRACES_EXPORTER": "console"})
    async with Client(process.url) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
    process.process.send_signal(signal.SIGTERM)
    said = process.end()
    assert '"name": "execute_tool add"' in said
    assert "Failed to detach context" not in said


def test_without_the_extra_the_command_says_so_and_serves(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk.trace'] = None\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    command = [sys.executable, "-m", "toolwire", "serve", "--tools", TOOLS, "--store", "none"]
    ended = subprocess.run(command, env=env, cwd=tmp_path, input="", capture_output=True, text=True, check=False)
    assert (ended.returncode, "nothing is sent: pip install 'toolwire[otel]', or unset it" in ended.stderr) == (0, True)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("OTEL_TRACES_EXPORTER", "zipkin", "OTEL_TRACES_EXPORTER='zipkin' is not known\nWrite otlp, console or none."),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL='grpc' is not spoken here\nWrite http"),
    ],
)
def test_an_exporter_that_is_not_there_is_refused(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv(variable, value)
    ended = run_here("serve", "--tools", TOOLS, "--store", "none")
    assert ended.code == 2
    assert f"toolwire: {said}" in ended.stderr
