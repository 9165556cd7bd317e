"""`toolwire serve --stateless`: two processes with one store answer the requests of one client by turns."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from starlette.testclient import TestClient

from mcp import Client
from tests.cli.command_line import run_here
from tests.gateway.conftest import TOOLS, Era, Served
from tests.gateway.served_tools import add
from tests.gateway.test_asking_clients import FAILURE, effects, told
from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from toolwire import CallContext, ConfigurationError, Decision, Store, ToolRegistry, ToolServer, ToolSpec

KEY = "the-token"


class Balancer(httpx2.AsyncHTTPTransport):
    """Sends each request to the next replica."""

    def __init__(self, ports: Iterator[int]) -> None:
        super().__init__()
        self._ports = ports

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(port=next(self._ports))
        return await super().handle_async_request(request)


@pytest.fixture
def replicas(url: str, served: Callable[..., Served]) -> Iterator[int]:
    options = ["--stateless", "--store", url, "--token-env", "KEY"]
    both = [served(*options, env={"KEY": KEY}) for _ in range(2)]
    return itertools.cycle([one.port for one in both])


@asynccontextmanager
async def balanced(ports: Iterator[int], **options: Any) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with (
        httpx2.AsyncClient(transport=Balancer(ports), headers=headers) as http,
        Client(streamable_http_client("http://127.0.0.1:1/mcp", http_client=http), **options) as client,
    ):
        yield client


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
async def test_replicas_answer_by_turns_in_both_eras(replicas: Iterator[int], era: Era) -> None:
    async with balanced(replicas, mode=era) as client:
        assert "add" in [tool.name for tool in (await client.list_tools()).tools]
        # A client may send other requests between two calls.
        processes = {str((await client.call_tool("process", {})).content) for _ in range(6)}
        assert len(processes) == 2
        if era == "legacy":
            assert client.server_capabilities.tools == types.ToolsCapability(list_changed=False)


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
async def test_a_person_answers_at_one_replica_what_another_asked(replicas: Iterator[int], tmp_path: Path) -> None:
    record = tmp_path / "record"
    asked: list[types.ElicitRequestParams] = []

    async def person(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"decision": "once"})

    async with balanced(replicas, elicitation_callback=person) as client:
        for amount in (5, 6):
            paid = await client.call_tool("pay", {"amount": amount, "record": str(record)})
            assert told(paid) == ("success", f"paid {amount}")
    assert (len(asked), effects(record)) == (2, ["5", "6"])


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
async def test_a_client_without_forms_finds_a_decision_at_each_replica(
    replicas: Iterator[int], url: str, tmp_path: Path, era: Era
) -> None:
    arguments = {"amount": 5, "record": str(tmp_path / "record")}
    async with balanced(replicas, mode=era) as client:
        asked = {(await client.call_tool("pay", arguments)).meta[FAILURE]["requestId"] for _ in range(3)}  # type: ignore[index]
        [request] = asked
        with Store.open(url) as store:
            store.decide(request, Decision(verdict="approve"))
        found = [told(await client.call_tool("pay", arguments))[0] for _ in range(3)]
    assert (found, effects(tmp_path / "record")) == (["success", *["approval_required"] * 2], ["5"])


def test_a_server_without_sessions_takes_posts_alone() -> None:
    with TestClient(ToolServer([add], "tests", stateless=True).asgi(), "http://localhost") as client:
        assert [client.request(method, "/mcp").status_code for method in ("GET", "DELETE")] == [405, 405]


def asking(context: CallContext) -> str:
    """May ask."""
    return ""


@pytest.mark.parametrize(
    ("tools", "what"),
    [
        (ToolSpec.from_function(add, permission="confirm"), "the tool 'add' can ask a person"),
        (asking, "the tool 'asking' can ask a person"),
    ],
)
def test_a_tool_that_can_ask_needs_a_token(tools: Any, what: str, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    with pytest.raises(ConfigurationError, match=what):
        ToolServer([tools], "tests", store=store, stateless=True)
    with pytest.raises(ConfigurationError, match=what):
        ToolServer([tools], "tests", store=store, stateless=True, mode="code")
    ToolServer([tools], "tests", store=store, stateless=True, token="x")
    ToolServer([tools], "tests", store=store)
    # Without a store no call waits.
    ToolServer([tools], "tests", stateless=True)
    ToolServer([add], "tests", store=store, stateless=True)


def test_a_rule_decides_whether_a_tool_can_ask_and_servers_behind_can(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    ruled = ToolRegistry(rules=[{"tool": "add", "effect": "auto"}])
    ruled.register(add, permission="confirm")
    ToolServer(ruled, "tests", store=store, stateless=True)
    sometimes = ToolRegistry(
        rules=[{"tool": "add", "effect": "confirm", "when": [{"path": "/arguments/a", "op": ">", "value": 5}]}]
    )
    sometimes.register(add)
    with pytest.raises(ConfigurationError, match="the tool 'add' can ask a person"):
        ToolServer(sometimes, "tests", store=store, stateless=True)
    ruled.mcp.add({"mcpServers": {"late": {"url": "http://127.0.0.1:9/mcp"}}}, wait_s=0)
    with pytest.raises(ConfigurationError, match="the MCP server 'late' can ask a person"):
        ToolServer(ruled, "tests", store=store, stateless=True)
    ruled.close()


@pytest.mark.parametrize("options", [["--http", "0"], ["--http", "8000", "--print-config", "claude"]])
def test_the_command_refuses_servers_that_can_ask_before_it_starts_one(options: list[str], tmp_path: Path) -> None:
    record = tmp_path / "started"
    entry = {"command": sys.executable, "args": ["-c", f"open({str(record)!r}, 'w')"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"ask": entry}}))
    refused = run_here("serve", "--config", str(tmp_path / "mcp.json"), "--stateless", *options)
    said = (
        "toolwire: --stateless without a token: the MCP server 'ask' can ask a person, and nothing tells the clients "
        "apart that wait for an answer\nGive --token-env NAME, profiles in the file, or --store none.\n"
    )
    assert (refused.code, refused.stdout, refused.stderr) == (2, "", said)
    assert not record.exists()


def test_the_command_says_what_to_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run_here("serve", "--tools", TOOLS, "--http", "0", "--stateless")
    assert refused.code == 2
    assert "--token-env, or profiles in the file" in refused.stderr
    for options in (["--stateless"], ["--host", "0.0.0.0"], ["--allow-host", "tools.example.com"]):
        refused = run_here("serve", "--tools", TOOLS, *options)
        said = f"toolwire: {options[0]} is for --http\nGive --http PORT, or leave it out.\n"
        assert (refused.code, refused.stderr) == (2, said)
