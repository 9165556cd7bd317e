"""`toolwire tools --openapi` and `toolwire serve --openapi`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import run_here, run_process
from tests.openapi.echo import Echo, document
from tests.openapi.servers import serving
from toolwire import MCPClient, ToolRegistry

PETS = document({"path": "/pets", "operationId": "list_pets", "summary": "Lists pets"}, {"path": "/x", "method": "put"})


@pytest.fixture
def pets(tmp_path: Path) -> str:
    path = tmp_path / "pets.json"
    path.write_text(json.dumps(PETS), "utf-8")
    return str(path)


def test_tools_shows_a_tool_for_each_operation(pets: str) -> None:
    ended = run_here("tools", "--openapi", pets, "--json")
    assert (ended.code, ended.stderr) == (0, "")
    assert [(tool["name"], tool["description"], tool["permission"]) for tool in json.loads(ended.stdout)] == [
        ("list_pets", "Lists pets", "auto"),
        ("put_x", "PUT /x", "confirm"),
    ]


@pytest.mark.parametrize("servers", [None, [], [{"url": "/v1"}], [{"url": "http://127.0.0.1:1"}]])
def test_tools_lists_whatever_server_the_document_has(servers: Any, tmp_path: Path) -> None:
    """Nothing is called, so where calls would go does not matter. `serve` refuses these."""
    path = tmp_path / "pets.json"
    path.write_text(json.dumps({**{key: PETS[key] for key in PETS if key != "servers"}, "servers": servers}))
    ended = run_here("tools", "--openapi", str(path), "--json")
    assert (ended.code, [tool["name"] for tool in json.loads(ended.stdout)]) == (0, ["list_pets", "put_x"])
    assert "give client=" in failed("serve", str(path))


def test_serve_gives_the_operations_to_a_client(tmp_path: Path) -> None:
    app = Echo(lambda _: (200, {"content-type": "application/json"}, json.dumps({**PETS, "servers": []}).encode()))
    with serving(app) as url:
        arguments = ["-m", "toolwire", "serve", "--store", "none", "--openapi", f"{url}/openapi.json"]
        registry = ToolRegistry()
        client = MCPClient.stdio(
            "pets", sys.executable, arguments, cwd=tmp_path, env={"PYTHONPATH": ":".join(sys.path)}
        )
        registry.register_mcp_client(client, permission="auto")
        try:
            assert sorted(registry) == ["pets/list_pets", "pets/put_x", "pets/read_result"]
            assert registry.invoke("pets/list_pets").success
        finally:
            registry.close()
    assert [request["path"] for request in app.requests] == ["/openapi.json", "/pets"]


@pytest.mark.parametrize("command", ["tools", "serve"])
def test_a_document_that_cannot_be_used_ends_the_command(command: str, tmp_path: Path, pets: str) -> None:
    assert "the tools cannot be loaded: the OpenAPI document 'gone.yaml' cannot be read" in failed(command, "gone.yaml")
    (tmp_path / "empty.json").write_text(json.dumps({**PETS, "paths": {}}))
    assert "has no operation that can be a tool" in failed(command, str(tmp_path / "empty.json"))
    (tmp_path / "old.json").write_text('{"swagger": "2.0"}')
    assert "is Swagger '2.0', and OpenAPI 3 is read: convert it" in failed(command, str(tmp_path / "old.json"))


def failed(command: str, source: str) -> str:
    ended = run_here(command, "--openapi", source)
    assert (ended.code, ended.stdout) == (3, "")
    return ended.stderr


def test_operations_are_added_to_the_tools_of_a_file(pets: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text('def add(a: int) -> int:\n    "Adds."\n    return a\n')
    ended = run_process("tools", "--openapi", pets, "--tools", "own.py", "--json", cwd=tmp_path)
    assert [tool["name"] for tool in json.loads(ended.stdout)] == ["add", "list_pets", "put_x"]
