"""The `mcpServers` of a user's file become clients. A bad entry turns off its own server alone, and says why."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.mcp.client.conftest import MODULE, HttpServer
from toolwire import (
    ConfigurationError,
    MCPClient,
    McpCredentials,
    McpLogin,
    RegistrationError,
    Toolkit,
    ToolRegistry,
)
from toolwire.mcp.config import MILLISECONDS_FROM, read_servers

NPX = {"command": "npx"}


@pytest.fixture
def local(tmp_path: Path) -> dict[str, Any]:
    """An entry of a server that can be started here."""
    return {"command": sys.executable, "args": ["-m", MODULE, str(tmp_path / "record")], "cwd": str(ROOT)}


@pytest.fixture
def remote(shared_servers: dict[str, HttpServer]) -> dict[str, Any]:
    """An entry of a server that runs already. Starting one takes two seconds of the processor."""
    return {"type": "http", "url": shared_servers[""].url}


@pytest.fixture
def registry() -> Generator[ToolRegistry]:
    made = ToolRegistry()
    yield made
    made.close()


def problems(entry: object, **environ: str) -> list[str]:
    return [str(problem) for problem in read_servers({"mcpServers": {"fs": entry}}, environ)[1]]


def test_the_servers_of_a_file_are_registered_at_the_same_time(
    tmp_path: Path, local: dict[str, Any], http_server: HttpServer, registry: ToolRegistry
) -> None:
    servers = {"one": local, "two": {"type": "http", "url": http_server.url}, "three": {**local, "disabled": True}}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    assert registry.mcp.add(path, permission="auto") == []
    assert {name.partition("/")[0] for name in registry.tool_library} == {"one", "two"}
    assert registry.invoke("one/add", {"a": 2, "b": 3}).success
    assert registry.invoke("two/add", {"a": 2, "b": 3}).success
    registry.remove_mcp_servers(["one"])
    assert registry.mcp.add({"servers": {"one": local}}) == []
    assert registry.invoke("one/add", {"a": 2, "b": 3}).failure is not None  # A person confirms it.


def test_a_toml_file_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text('[mcpServers.fs]\ncommand = "npx"\nargs = ["server-filesystem", "."]\n')
    servers, wrong, _ = read_servers(path)
    assert ([server.client.name for server in servers], wrong) == (["fs"], [])


def test_a_bad_server_is_off_with_its_reason_and_the_others_are_on(
    tmp_path: Path, remote: dict[str, Any], registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp.json"
    entries = {
        "good": remote,
        "9lives": NPX,
        "gone": {"command": "/nonexistent/server"},
        "token": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH_TOKEN}"}},
        "choice": {**remote, "includeTools": ["add", "fly"]},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    with caplog.at_level(logging.WARNING, "toolwire.registry"):
        found = {problem.server: problem for problem in registry.mcp.add(path, permission="auto")}
    assert {name.partition("/")[0] for name in registry.tool_library} == {"good"}
    assert registry.invoke("good/add", {"a": 2, "b": 3}).success
    assert set(found) == set(entries) - {"good"}
    assert all(problem.is_off and problem.place.startswith(str(path)) for problem in found.values())
    assert found["token"].place == f"{path}: mcpServers.token.headers.Authorization"
    assert "no variable NO_SUCH_TOKEN: set it" in found["token"].reason
    assert "has no tool 'fly'" in found["choice"].reason
    told = {record.getMessage() for record in caplog.records if record.name == "toolwire.registry"}
    assert told == {str(problem) for problem in found.values()}


def test_tools_are_chosen_and_put_into_a_group(remote: dict[str, Any]) -> None:
    toolkit = Toolkit()
    toolkit.create_tool_group("remote", "Tools of servers.", active=True)
    try:
        assert toolkit.mcp.add({"mcpServers": {"s": {**remote, "includeTools": ["add"]}}}, group_name="remote") == []
        assert list(toolkit.tools) == ["s/add"]
        left_out = {"mcpServers": {"t": {**remote, "excludeTools": ["add"]}}}
        assert toolkit.mcp.add(left_out, group_name="remote") == []
        assert "t/add" not in toolkit.tools
        assert any(name.startswith("t/") for name in toolkit.tools)
    finally:
        toolkit.remove_mcp_servers(["s", "t"])


def test_an_unknown_group_is_refused_before_anything_starts(remote: dict[str, Any], registry: ToolRegistry) -> None:
    with pytest.raises(RegistrationError, match="only a toolkit has groups"):
        registry.mcp.add({"mcpServers": {"s": remote}}, group_name="remote")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${NAME}", "ada"),
        ("${env:NAME}/x", "ada/x"),
        ("${NONE:-b}", "b"),
        ("${EMPTY:-b}", "b"),
        ("${EMPTY}", ""),
        ("${NONE:-}", ""),
        ("${NAME:-b}${NAME}", "adaada"),
        ("$NAME {NAME} ${NAME", "$NAME {NAME} ${NAME"),
        ("${INNER}", "${NAME}"),
    ],
)
def test_variables_are_filled_in_once(text: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr("toolwire.mcp.config.MCPClient.stdio", lambda *given, **_: seen.append(given))
    entry = {"command": text, "args": [text], "env": {"KEY": text}, "cwd": text}
    environ = {"NAME": "ada", "EMPTY": "", "INNER": "${NAME}"}
    assert read_servers({"mcpServers": {"fs": entry}}, environ)[1] == []
    assert seen == [("fs", value, (value,), {"KEY": value}, value)]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("npx", "mcpServers.fs: write a table, such as {'command': 'npx'}"),
        ({}, "mcpServers.fs.command: is missing: a server with stdio needs it"),
        ({"type": "http", "command": "npx"}, "mcpServers.fs.url: is missing: a server with http needs it"),
        ({"command": "npx", "url": "https://example.com"}, "fs.url: does not belong to a server with stdio"),
        ({"type": "http", "url": "https://example.com", "command": "x"}, "fs.command: does not belong"),
        ({**NPX, "protocol": "1.0"}, "mcpServers.fs.protocol: '1.0' is not known: write one of 2024-11-05, "),
        ({**NPX, "required": "yes"}, "mcpServers.fs.required: 'yes': write true or false"),
        ({**NPX, "disabled": "yes"}, "mcpServers.fs.disabled: 'yes': write true or false"),
        ({**NPX, "enabled": 0}, "mcpServers.fs.enabled: 0: write true or false"),
        ({**NPX, "connectTimeout": 0}, "mcpServers.fs.connectTimeout: 0 is not a time: write seconds, or"),
        ({"type": "pigeon", "url": "https://example.com"}, "fs.type: 'pigeon' is not a transport: write stdio, http"),
        ({"type": ["stdio"], "command": "npx"}, "fs.type: ['stdio'] is not a transport: write stdio, http or sse"),
        ({"transport": {}, "command": "npx"}, "fs.transport: {} is not a transport: write stdio, http or sse"),
        ({"type": "sse", "transport": "http", "url": "https://example.com"}, "fs.transport: differs from type"),
        ({"url": "example.com"}, "write a URL with https:// or http://"),
        ({"command": 5}, "fs.command: write a text"),
        ({"command": "npx", "args": "a b"}, "fs.args: 'a b' is not a list of texts"),
        ({"command": "npx", "args": ["a", 5]}, "fs.args[1]: write a text"),
        ({"command": "npx", "env": ["A=b"]}, "fs.env: write a table of texts"),
        ({"command": "npx", "env": {"A": 5}}, "fs.env.A: write a text"),
        ({"command": "npx", "timeout": 0}, "fs.timeout: 0 is not a time"),
        ({"command": "npx", "timeout": 10**400}, "on, for at most a year"),
        ({"command": "npx", "connectTimeout": 31_536_000_001}, "fs.connectTimeout: 31536000001 is not a time"),
        ({"command": "npx", "timeout": math.nan}, "fs.timeout: nan is not a time"),
        ({"command": "npx", "timeout": True}, "fs.timeout: True is not a time"),
        ({"command": "npx", "timeout": "5"}, "fs.timeout: '5' is not a time"),
        ({"command": "${NONE}"}, "fs.command: the environment has no variable NONE: set it, or write ${NONE:-default}"),
        ({"command": "${NONE:-${NAME}}"}, "fs.command: ${NONE:-${NAME} cannot be filled in"),
        ({"command": "${input:key}"}, "fs.command: ${input:key} cannot be filled in"),
    ],
)
def test_a_bad_entry_names_its_key_and_what_to_write(entry: object, why: str) -> None:
    [problem] = problems(entry)
    assert why in problem
    assert problem.endswith("The MCP server 'fs' is off")


@pytest.mark.parametrize("key", ["alwaysAllow", "autoApprove", "trust"])
def test_a_grant_in_a_file_grants_nothing_and_says_so(key: str, remote: dict[str, Any], registry: ToolRegistry) -> None:
    granted: object = True if key == "trust" else ["add"]
    [problem] = registry.mcp.add({"mcpServers": {"s": {**remote, key: granted}}})
    assert problem.place == f"config: mcpServers.s.{key}"
    assert str(problem).endswith("The MCP server 's' is on")
    result = registry.invoke("s/add", {"a": 1, "b": 2})
    assert result.failure is not None
    assert result.failure.kind == "approval_required"


def test_an_unknown_key_is_told_and_the_server_is_on() -> None:
    [problem] = problems({**NPX, "colour": "red", "description": "Files."})
    assert problem == "config: mcpServers.fs.colour: is not known, and was not read. The MCP server 'fs' is on"


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(5, 5.0), (MILLISECONDS_FROM - 1, 999.0), (MILLISECONDS_FROM, 1.0), (2**31 - 1, 2_147_483.647)],
)
def test_a_timeout_is_in_seconds_or_from_1000_on_in_milliseconds(timeout: float, seconds: float) -> None:
    [server], _, _ = read_servers({"mcpServers": {"fs": {**NPX, "timeout": timeout}}})
    assert server.client._limits.call_s == seconds
    assert server.client._limits.call_max_s == max(600.0, seconds)


@pytest.mark.parametrize("text", ["{", '{"a": 1}', '{"mcpServers": 5}', "[1]", "[" * 100_000])
def test_a_file_without_servers_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"mcp\.json (cannot be read|has no table of servers)"):
        read_servers(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_servers(tmp_path / "none.json")


def test_the_kinds_of_transport_are_read_in_all_their_spellings() -> None:
    table = {
        "a": {"url": "https://example.com/mcp"},
        "b": {"type": "streamable-http", "url": "https://example.com/mcp"},
        "c": {"transport": "sse", "url": "https://example.com/sse"},
        "d": {"httpUrl": "https://example.com/mcp"},
        "e": {"type": "stdio", **NPX},
    }
    servers, wrong, _ = read_servers({"mcpServers": table})
    assert ([server.client.name for server in servers], wrong) == (list("abcde"), [])


URL = "https://mcp.example/mcp"
SECRET = {"clientId": "a", "clientSecret": "${SECRET}", "issuer": "https://login.example"}
AUTHENTICATED: list[tuple[dict[str, Any], object]] = [
    ({}, "oauth"),
    ({"headers": {"authorization": "Bearer x"}}, None),
    ({"url": "http://intranet.example/mcp"}, None),
    ({"auth": "oauth"}, "oauth"),
    ({"oauth": True}, "oauth"),
    ({"oauth": False}, None),
    ({"oauth": {"enabled": False, "clientId": "a"}}, None),
    ({"oauth": {"clientId": "a", "callbackPort": 8080}}, McpLogin(client_id="a", callback_port=8080)),
    ({"oauth": {"scopes": ["read", "write"]}}, McpLogin(scope="read write")),
    (
        {"auth": {"CLIENT_ID": "a", "CLIENT_SECRET": "${SECRET}", "issuer": "https://login.example", "scope": "read"}},
        McpLogin(client_id="a", client_secret="s", issuer="https://login.example", scope="read"),
    ),
    (
        {"oauth": {**SECRET, "grantType": "client_credentials"}},
        McpCredentials(client_id="a", client_secret="s", issuer="https://login.example"),
    ),
]


@pytest.mark.parametrize(("entry", "auth"), AUTHENTICATED)
def test_an_entry_says_how_the_client_proves_itself(
    entry: dict[str, Any], auth: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def http(name: str, url: str, headers: object, auth: object) -> MCPClient:
        seen.append(auth)
        return MCPClient.stdio(name, "never")

    monkeypatch.setattr("toolwire.mcp.config.MCPClient.http", http)
    assert read_servers({"mcpServers": {"fs": {"url": URL, **entry}}}, {"SECRET": "s"})[1] == []
    assert seen == [auth]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (
            {"auth": "Bearer x"},
            "auth: write 'oauth' or a table such as {'clientId': '...'}; a token belongs in headers",
        ),
        ({"oauth": {"clientId": 7}}, "clientid: write a text"),
        ({"oauth": {"clientId": "a", "clientSecret": "s"}}, ": client_secret: give client_id too, and issuer"),
        ({"oauth": {"grantType": "password"}}, "oauth.grantType: write authorization_code or client_credentials"),
        ({"oauth": {"grantType": "client_credentials"}}, "oauth: client_credentials need clientId, clientSecret and"),
        ({"oauth": {"callbackPort": "8080"}}, ": callback_port='8080': give a port from 1 to 65535"),
        ({"oauth": {"redirectUri": "x"}}, "oauth.redirecturi: is not known, and was not read"),
        ({"auth": "oauth", "headers": {"Authorization": "x"}}, ": headers has Authorization, and auth is given too"),
    ],
)
def test_what_is_wrong_with_an_authentication_is_told(entry: dict[str, Any], why: str) -> None:
    (problem,) = problems({"url": URL, **entry})
    assert why in problem


def test_the_command_of_a_login_names_the_server_and_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my servers.json"
    path.write_text(json.dumps({"mcpServers": {"issues": {"url": URL}, "fs": NPX}}))
    commands = [server.client.login_command for server in read_servers(path)[0]]
    assert commands == [f"toolwire mcp login issues --config '{path}'", ""]
    (server,) = read_servers({"mcpServers": {"issues": {"url": URL}}})[0]
    assert server.client.login_command == f"toolwire mcp login {URL}"
