"""Requests that no client of the SDK sends. Each gets an answer of the protocol, and the server goes on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import serve_command
from tests.gateway.served_tools import new_registry
from tests.gateway.serving import call_body, raw, serving
from toolwire import ToolServer


@pytest.fixture(scope="module")
def port() -> Generator[int]:
    with serving(ToolServer(new_registry(), "tests").asgi()) as port:
        yield port


def changed(**fields: Any) -> bytes:
    message = json.loads(call_body())
    message["params"].update(fields)
    return json.dumps(message).encode()


BAD: dict[str, bytes] = {
    "no JSON": b"{",
    "empty": b"",
    "a batch": b"[" + call_body() + b"]",
    "a number": b"7",
    "invalid UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}',
    "a NUL": b"\x00",
    "deep arrays": b"[" * 100_000,
    "a deep argument": changed(arguments={"a": 1, "b": None}).replace(b"null", b"[" * 5_000 + b"]" * 5_000),
    "a long integer": changed(arguments={"a": 1, "b": 0}).replace(b'"b": 0', b'"b": ' + b"9" * 5_000),
    "arguments as a list": changed(arguments=[1, 2]),
    "a name as a number": changed(name=7),
    "a state as a number": changed(requestState=7),
    "an invented state": changed(requestState="v1.AAAA"),
    "an id as an object": json.dumps({**json.loads(call_body()), "id": {}}).encode(),
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused_and_the_next_call_runs(port: int, name: str) -> None:
    status, content = raw(port, body=BAD[name])
    answer = json.loads(content)
    assert status in (200, 400)
    assert ("error" in answer) or answer["result"]["isError"]
    assert b"Internal" not in content
    assert raw(port)[0] == 200


@pytest.mark.parametrize("depth", [50, 200, 900])
def test_a_nested_argument_is_an_answer_at_any_depth(port: int, depth: int) -> None:
    body = changed(arguments={"a": 1, "b": None}).replace(b"null", b"[" * depth + b"]" * depth)
    status, content = raw(port, body=body)
    assert (status in (200, 400), b"Internal" in content) == (True, False)


def test_a_stdio_server_answers_bad_lines_and_goes_on(tmp_path: Path) -> None:
    lines = [b"noise", b"\xff\xfe", b"{}", b"[]", b"[" * 100_000, b"", call_body(id=9)]
    process = subprocess.Popen(
        serve_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n".join(lines) + b"\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline())]
    while answers[-1].get("id") != 9:
        answers.append(json.loads(process.stdout.readline()))
    assert answers[-1]["result"]["structuredContent"] == {"result": 3}
    process.communicate()
    assert process.returncode == 0
