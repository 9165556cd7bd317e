"""Requests on stdio that the SDK does not read: each gets an error with its id, and the next call runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.conftest import serve_command
from tests.gateway.serving import call_body
from toolwire.gateway.stdio_lines import answer_for
from toolwire.mcp.values.unread_messages import id_of, members_of

DEEP = "[" * 2_000 + "]" * 2_000


def request(**fields: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "add", "x": 7}, **fields})


LATE = '{"jsonrpc": "2.0", "method": "tools/call", "params": {"id": 8, "x": "@"}, "id": 5}'
NO_JSON, NO_MESSAGE = -32700, -32600
UNREAD: dict[str, tuple[str, int, str]] = {
    "a surrogate": (request().replace("7", r'"\ud83d"'), NO_JSON, "Invalid JSON: unexpected end of hex escape"),
    "the second half": (
        request().replace("7", r'"\ude00"'),
        NO_JSON,
        "Invalid JSON: lone leading surrogate in hex escape",
    ),
    "a surrogate before the id": (LATE.replace("@", r"\ud83d"), NO_JSON, "Invalid JSON: "),
    "2,000 brackets": (request().replace("7", DEEP), NO_JSON, "Invalid JSON: recursion limit exceeded"),
    "2,000 brackets before the id": (LATE.replace('"@"', DEEP), NO_JSON, "Invalid JSON: recursion limit exceeded"),
    "2,000 braces": (request().replace("7", '{"id":' * 2_000 + "1" + "}" * 2_000), NO_JSON, "Invalid JSON: "),
    "5,000 digits": (request().replace("7", "9" * 5_000), NO_JSON, "Invalid JSON: number out of range"),
    "half of a line": (request()[:-2], NO_JSON, "Invalid JSON: EOF while parsing"),
    "arguments in a list": (
        request(params=[1]),
        NO_MESSAGE,
        "It is not a message of JSON-RPC 2.0: params: Input should be an object",
    ),
    "a method that is a number": (
        request(method=7),
        NO_MESSAGE,
        "It is not a message of JSON-RPC 2.0: method: Input should be a valid string",
    ),
    "another version": (
        request(jsonrpc="1.0"),
        NO_MESSAGE,
        "It is not a message of JSON-RPC 2.0: jsonrpc: Input should be '2.0'",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_request_that_is_not_read_gets_an_error_with_its_id(name: str) -> None:
    line, code, message = UNREAD[name]
    due = answer_for(line)
    assert due is not None
    assert not isinstance(due, str)
    told = due.message.model_dump()
    assert (told["id"], told["error"]["code"]) == (5, code)
    assert told["error"]["message"].startswith(message)


def test_a_line_that_is_read_stays_as_it_is() -> None:
    for line in (request(), request(id="a"), '{"jsonrpc": "2.0", "method": "notifications/initialized"}\n'):
        assert answer_for(line) == line


def test_an_answer_that_is_not_read_becomes_an_error_for_the_one_who_asked() -> None:
    line = r'{"jsonrpc": "2.0", "id": 3, "result": {"content": {"answer": "\ud83d"}}}'
    due = answer_for(line)
    assert isinstance(due, str)
    told = json.loads(due)
    assert (told["id"], told["error"]["code"], "method" in told) == (3, NO_JSON, False)


@pytest.mark.parametrize("line", ["noise", "", "[1]", "[" * 100_000, '{"method": 7}', '{"id": {}}'])
def test_a_line_without_an_id_is_in_the_log_alone(line: str, caplog: pytest.LogCaptureFixture) -> None:
    assert answer_for(line) is None
    assert caplog.messages[0].startswith("a line of the client is not a message: ")


MEMBERS: list[tuple[str, dict[str, str], Any]] = [
    ('{"id": 7, "a": {"id": 8}, "b": [1, {"id": 9}], "c": "}"}', {"id": "7", "a": "", "b": "", "c": '"}"'}, 7),
    (r'{"a\"b": 1, "id": "x\"y"}', {r"a\"b": "1", "id": r'"x\"y"'}, 'x"y'),
    ('{"id": 1, "id": 2}', {"id": ""}, None),
    ('{"id": -3}{"id": 4}', {"id": "-3"}, -3),
    ('{"a": "x, "id": 7', {"a": ""}, None),
    ('{"a": 1, "id', {"a": "1"}, None),
    ('["id", 7]', {}, None),
    (r'{"id": "\ud83d"}', {"id": r'"\ud83d"'}, None),
    ('{"id": 1.5}', {"id": "1.5"}, None),
    ('{"id": true}', {"id": "true"}, None),
    ("", {}, None),
]


@pytest.mark.parametrize(("text", "members", "id"), MEMBERS)
def test_the_members_of_an_object_are_found_in_a_text_that_may_be_wrong(
    text: str, members: dict[str, str], id: Any
) -> None:
    found = members_of(text)
    assert (found, id_of(found)) == (members, id)


def test_a_stdio_server_answers_each_request_and_goes_on(tmp_path: Path) -> None:
    lines = [line for line, _, _ in UNREAD.values()]
    process = subprocess.Popen(
        serve_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(f"{line}\n" for line in lines).encode() + call_body(id=9) + b"\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline())]
    while len(answers) <= len(lines):
        answers.append(json.loads(process.stdout.readline()))
    assert [one["error"]["code"] for one in answers if one["id"] == 5] == [code for _, code, _ in UNREAD.values()]
    assert [one["result"]["structuredContent"] for one in answers if one["id"] == 9] == [{"result": 3}]
    process.communicate()
    assert process.returncode == 0
