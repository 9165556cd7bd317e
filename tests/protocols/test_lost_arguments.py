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


BESIDE_IN_XML = {
    "in the call": '<tool_call name="purge" table="t1"></tool_call>',
    "in the empty call": '<tool_call name="purge" table="t1"/>',
    "in the call with a name inside": '<tool_call table="t1"><name>purge</name><params></params></tool_call>',
    "in the name": '<tool_call><name table="t1">purge</name></tool_call>',
    "in the block": '<tool_call><name>purge</name><params table="t1"></params></tool_call>',
    "in the empty block": '<tool_call><name>purge</name><params table="t1"/></tool_call>',
    "without quotes": "<tool_call name='purge' table=t1></tool_call>",
    "as JSON": """<tool_call name="purge" arguments='{"table": "t1"}'></tool_call>""",
    "in the parameter": '<tool_call name="purge"><table value="t1"/></tool_call>',
    "in the parameter's tag": '<tool_call><name>purge</name><params><table value="t1"></table></params></tool_call>',
    "in a named parameter": (
        '<tool_call><name>purge</name><params><param name="table" value="t1"/></params></tool_call>'
    ),
    "as a name": '<tool_call><name>purge</name><params><table name="t1"/></params></tool_call>',
    "in an invoke": '<invoke name="purge"><parameter name="table" value="t1"></parameter></invoke>',
    "in an empty parameter of an invoke": '<invoke name="purge"><parameter name="table" value="t1"/></invoke>',
    "in the invoke": '<invoke name="purge" table="t1"></invoke>',
    "in the tool's tag": '<purge table="t1"></purge>',
    "in the tool's empty tag": '<purge table="t1"/>',
    "in a call of the other tag": '<call name="purge" table="t1"/>',
    "nowhere": "<purge/>",
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("place", BESIDE_IN_XML)
def test_an_argument_in_an_attribute_never_runs_with_defaults(place: str, format: str) -> None:
    reply = get(format).parse(BESIDE_IN_XML[place], OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True)


@pytest.mark.parametrize("text", ['<call name="purge" table="t1"/>', '<purge table="t1"/>'])
def test_the_right_form_of_a_call_has_its_attributes(text: str) -> None:
    said = get("json").parse(text, OFFERED).problems[0].message
    assert '{"name": "purge", "arguments": {"table": "t1"}}' in said


def test_an_attribute_is_told_with_how_to_write_it() -> None:
    for text, said in (
        (
            BESIDE_IN_XML["in the call"],
            "<tool_call> holds 'table', where no argument is read. Write each argument in a tag of its own.",
        ),
        (
            BESIDE_IN_XML["in the parameter"],
            "<table> holds 'value', where no argument is read. Write the value between <table> and </table>.",
        ),
        (
            BESIDE_IN_XML["in an invoke"],
            "A parameter holds 'value' in its tag. Write the value between its tags.",
        ),
    ):
        assert get("xml").parse(text, OFFERED).problems[0].message == said


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call id="1" type="function"><name>purge</name><table type="string">t1</table></tool_call>',
        '<tool_call name="purge"><param name="table" type="string">t1</param></tool_call>',
        '<invoke name="purge"><parameter name="table" string="true">t1</parameter></invoke>',
    ],
)
def test_an_attribute_that_is_no_argument_is_left_alone(text: str) -> None:
    assert calls(get("xml").parse(text, OFFERED)) == [("purge", {"table": "t1"})]


def drop(id: str = "all", status: str = "any") -> None:
    """Drops records."""


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "drop", "id": "5", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "drop", "status": "old"}</tool_call>',
        '<tool_call id="5"><name>drop</name></tool_call>',
        '<tool_call>{"function": {"name": "purge"}, "table": "t1"}</tool_call>',
        '<tool_call>{"name": "purge", "arguments": {}, "tabel": "t1"}</tool_call>',
        '<tool_call>{"name": "purge", "arguments": {"where": "x"}, "Table": "t1"}</tool_call>',
        '{"name": "purge", "arguments": {}, "Table": "t1"}',
        '<tool_call>{"name": "purge", "arguments": {}}</tool_call>\n{"table": "t1"}',
        '{"name": "purge", "arguments": {}}\n{"table": "t1", "where": "x"}',
    ],
)
@pytest.mark.parametrize("format", FORMATS)
def test_an_argument_beside_the_others_never_runs_with_defaults(text: str, format: str) -> None:
    reply = get(format).parse(text, [*OFFERED, drop])
    assert (reply.calls, reply.is_refused) == ((), True)
    assert '"arguments": {}' not in reply.problems[0].message


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<tool_call>{"name": "drop", "id": "c1", "arguments": {"id": "5"}}</tool_call>', {"id": "5"}),
        ('<tool_call>{"id": "c1", "type": "function", "function": {"name": "drop", "arguments": {}}}</tool_call>', {}),
        ('<tool_call id="c1"><name>drop</name><params><id>5</id></params></tool_call>', {"id": "5"}),
    ],
)
def test_the_id_of_a_call_is_no_argument(text: str, arguments: dict[str, object]) -> None:
    assert calls(get("json").parse(text, [drop])) == [("drop", arguments)]


def test_a_json_beside_a_call_that_has_its_keys_is_text() -> None:
    text = '<tool_call>{"name": "purge", "arguments": {"table": "t1"}}</tool_call>\n{"table": "t1"}'
    assert calls(get("json").parse(text, OFFERED)) == [("purge", {"table": "t1"})]


@pytest.mark.parametrize(
    "text",
    [
        '{"function_call": "{\\"name\\": \\"now\\", \\"arguments\\": {}}"}',
        '```json\n{"functionCall": "{\\"name\\": \\"now\\", \\"args\\": {}}"}\n```',
        '{"functionCalls": [{"name": "now", "args": {}}]}',
        '{"tool_use": {"name": "now", "input": {}}}',
        '{"id": "c", "type": "function", "Function": {"name": "now", "arguments": "{}"}}',
    ],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_call_in_an_envelope_of_another_form_is_no_answer(text: str, format: str) -> None:
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True)
