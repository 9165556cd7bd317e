"""Calls whose arguments stand where no reader takes them: they are refused, and never run with defaults."""

from __future__ import annotations

import pytest

from tests.protocols.test_leftovers import FORMATS, OFFERED, calls
from toolwire.protocols import get

WRAPPERS = {
    "tag": "<tool_call>\n{}\n</tool_call>",
    "tag with a list": "<tool_call>\n[{}]\n</tool_call>",
    "token with a list": "[TOOL_CALLS][{}]",
    "python tag": "<|python_tag|>{}",
    "token": "<|tool_call|>{}",
    "nothing": "{}",
    "envelope": '<tool_call>{{"tool_calls": [{}]}}</tool_call>',
}
LOST = {
    "a word like arguments": '{"name": "purge", "argument": {"table": "t1"}}',
    "another case": '{"name": "purge", "Arguments": {"table": "t1"}}',
    "a made-up key": '{"name": "purge", "body": {"table": "t1"}}',
    "an empty key": '{"name": "purge", "": {"table": "t1"}}',
    "a list": '{"name": "purge", "kwargs": [{"table": "t1"}]}',
    "a JSON text": '{"name": "purge", "kwargs": "{\\"table\\": \\"t1\\"}"}',
    "a parameter of another name": '{"name": "purge", "tabel": "t1"}',
    "two keys": '{"name": "purge", "arguments": {"where": "x"}, "params": {"table": "t1"}}',
    "empty arguments": '{"name": "purge", "arguments": {}, "body": {"table": "t1"}}',
    "a usual key": '{"name": "purge", "arguments": {}, "id": {"table": "t1"}}',
    "beside an action": '{"action": "purge", "action_input": {}, "body": {"table": "t1"}}',
    "beside an envelope": '{"function": {"name": "purge"}, "body": {"table": "t1"}}',
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("lost", LOST)
def test_arguments_under_an_unknown_key_are_refused(lost: str, wrapper: str, format: str) -> None:
    reply = get(format).parse(WRAPPERS[wrapper].format(LOST[lost]), OFFERED)
    is_data = wrapper == "nothing" and lost in ("a parameter of another name", "beside an envelope")
    assert (reply.calls, reply.is_refused) == ((), not is_data)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("wrapper", ["tag", "tag with a list", "token with a list", "python tag", "token"])
def test_params_alone_are_the_arguments(wrapper: str, format: str) -> None:
    reply = get(format).parse(WRAPPERS[wrapper].format('{"name": "purge", "params": {"table": "t1"}}'), OFFERED)
    assert calls(reply) == [("purge", {"table": "t1"})]


def test_a_remark_beside_the_arguments_is_no_argument() -> None:
    text = '<tool_call>{"name": "purge", "arguments": {"table": "t1"}, "thought": "Old."}</tool_call>'
    reply = get("json").parse(text, OFFERED)
    assert calls(reply) == [("purge", {"table": "t1"})]
