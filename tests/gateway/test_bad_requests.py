"""Requests that no client of the SDK sends. Each gets an answer of the protocol, and the server goes on."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import serve_command
from tests.gateway.served_tools import new_registry
from tests.gateway.serving import MODERN, call_body, call_headers, raw, serving
from toolwire import ToolServer
from toolwire.gateway.stdio_lines import lines_of, too_long


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


def test_an_unknown_revision_of_the_protocol_is_told_the_known_ones(port: int) -> None:
    asked = json.loads(call_body())
    asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01"
    headers = [(name, "2031-01-01" if name == "MCP-Protocol-Version" else value) for name, value in call_headers()]
    status, content = raw(port, body=json.dumps(asked).encode(), own_headers=headers)
    error = json.loads(content)["error"]
    assert (status, error["code"], error["data"]["requested"]) == (400, -32022, "2031-01-01")
    assert MODERN in error["data"]["supported"]
    assert raw(port)[0] == 200


def claiming(version: object) -> bytes:
    """Returns a call whose body claims a version of the protocol."""
    meta = {**json.loads(call_body())["params"]["_meta"], "io.modelcontextprotocol/protocolVersion": version}
    return changed(_meta=meta)


OLD = "2025-11-25"


@pytest.mark.parametrize(
    ("header", "body", "code", "why"),
    [
        (MODERN, claiming(OLD), -32020, "does not match the request envelope's protocol version"),
        (MODERN, claiming(7), -32020, "does not match the request envelope's protocol version"),
        ("zzz", claiming(MODERN), -32020, "does not match the request envelope's protocol version"),
        (OLD, claiming(MODERN), -32600, "Missing session ID"),
        (MODERN, changed(_meta={}), -32602, "missing the required envelope key"),
    ],
    ids=["an older body", "a number", "no version", "an older header", "no claim"],
)
def test_a_client_that_lies_about_its_protocol_gets_the_protocols_error(
    port: int, header: str, body: bytes, code: int, why: str
) -> None:
    headers = [(name, header if name == "MCP-Protocol-Version" else value) for name, value in call_headers()]
    status, content = raw(port, body=body, own_headers=headers)
    error = json.loads(content)["error"]
    assert (status, error["code"], why in error["message"]) == (400, code, True), error
    assert raw(port)[0] == 200


async def lines_read(sent: bytes, limit: int) -> list[str | int]:
    """Sends bytes through a pipe, and returns the lines as they are read; a number stands for a line's kept bytes."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(sent)

    with os.fdopen(reading, "rb") as stdin:
        task = asyncio.create_task(asyncio.to_thread(write))
        read = [line if isinstance(line, str) else len(line) async for line in lines_of(stdin, limit)]
        await task
    return read


async def test_a_line_of_stdin_has_a_limit_and_the_lines_after_a_longer_one_are_read() -> None:
    assert await lines_read(b"x" * 10 + b"\n" + b"y" * 11 + b"\nz\n", 10) == ["x" * 10 + "\n", 11, "z\n"]
    assert await lines_read(b"x" * 300_000 + b"\n\xff\n", 10) == [11, "\ufffd\n"]
    assert await lines_read(b"x" * 3_000, 2_000) == [1_024]


IDS: list[tuple[bytes, Any]] = [
    (b'{"jsonrpc": "2.0", "id": 7, "method": "a", "params": {"id": 8}}', 7),
    (b'{"id":"a-1","method":"a","params":{}}', "a-1"),
    (b'{"method": "a", "params": {"id": 8, ', None),
    (b'{"method": "a", "x": "y', None),
]


@pytest.mark.parametrize(("start", "id"), IDS)
def test_the_error_for_a_long_line_has_no_id_that_may_be_anothers(start: bytes, id: Any) -> None:
    assert too_long(start, 10).message.id == id  # type: ignore[union-attr]


def test_a_stdio_server_answers_bad_lines_and_goes_on(tmp_path: Path) -> None:
    long = b'{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"id": 9, "' + b"x" * 5_000_000 + b'": 1}}'
    lines = [b"noise", b"\xff\xfe", b"{}", b"[]", b"[" * 100_000, b"", long, call_body(id=9)]
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
    told = {"code": -32600, "message": "The message has more than 4,194,304 bytes."}
    assert [one["error"] for one in answers if one.get("id") == 8] == [told]
    process.communicate()
    assert process.returncode == 0
