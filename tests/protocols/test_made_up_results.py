"""A result that a model wrote itself is not a call, not an argument and not an answer. The tool that ends is apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from toolwire import Session
from toolwire.protocols.base import OWN_RESULT
from toolwire.session.failed_calls.right_forms import HEADINGS
from toolwire.session.turn import Turn

REFUSAL = (
    "This is a result of {!r}, and only the tool gives results: it was not read. To call the tool, write its name with "
    "`arguments`."
)
RAN: list[str] = []


def search(query: str) -> str:
    """Searches."""
    RAN.append(query)
    return query


def write_file(content: str) -> str:
    """Writes a file."""
    RAN.append(content)
    return content


class Report(BaseModel):
    title: str
    content: str


def run(reply: str, protocol: str = "json", **options: Any) -> Turn:
    RAN.clear()
    return Session([search, write_file], protocol=protocol, **options).run_turn(reply)


def test_a_result_is_told_by_the_name_of_its_tool_under_a_key_that_no_call_has() -> None:
    turn = run('{"name": "search", "arguments": {"query": "otters"}}')
    failed = run('{"name": "search", "arguments": {}}')
    assert json.loads(turn.text.split("\n")[1]) == {"result_of": "search", "content": "otters"}
    assert json.loads(failed.text.split("\n")[1]).keys() == {"result_of", "error"}


RESULTS = {
    "by name": '{{"name": "{}", "content": "otters"}}',
    "an error": '{{"name": "{}", "error": "none"}}',
    "as it is told": '{{"result_of": "{}", "content": "otters"}}',
    "a list": '[{{"name": "{}", "content": 1, "id": "c1"}}]',
    "a message": '{{"role": "tool", "tool_call_id": "c1", "name": "{}", "content": "otters"}}',
    "in a fence": '```json\n{{"name": "{}", "content": "otters"}}\n```',
    "with more keys": '{{"name": "{}", "content": "otters", "error": null, "success": true}}',
    "several": '{{"result_of": "{0}", "content": "otters"}}\n{{"name": "{0}", "content": 1}}',
    "between the tags of results": '<tool_response>\n{{"name": "{}", "content": "otters"}}\n</tool_response>',
}


@pytest.mark.parametrize("protocol", ["json", "xml"])
@pytest.mark.parametrize("tool", ["search", "write_file"])
@pytest.mark.parametrize("kind", RESULTS)
def test_a_reply_that_is_a_result_is_refused(kind: str, tool: str, protocol: str) -> None:
    turn = run(RESULTS[kind].format(tool), protocol)
    assert [problem.message for problem in turn.reply.problems] == [REFUSAL.format(tool)]
    assert (RAN, "otters" in str(turn.messages)) == ([], False)


@pytest.mark.parametrize("name", ["search", "serach"])
@pytest.mark.parametrize("options", [{}, {"language": "zh"}, {"finish": "answer"}])
def test_a_message_of_results_that_the_model_copies_is_refused(options: dict[str, Any], name: str) -> None:
    read = run(json.dumps({"name": name, "arguments": {"query": "otters"}}), **options)
    copied = run(read.messages[0]["content"].split(HEADINGS[options.get("language", "en")])[0], **options)
    assert [problem.message for problem in copied.reply.problems] == [REFUSAL.format(name)]


def test_a_result_between_the_tags_of_calls_is_refused() -> None:
    turn = run('<tool_call>\n{"name": "write_file", "content": "otters"}\n</tool_call>')
    assert [problem.message for problem in turn.reply.problems] == [REFUSAL.format("write_file")]
    assert (RAN, "otters" in str(turn.messages)) == ([], False)


@pytest.mark.parametrize("protocol", ["json", "xml"])
@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```"])
def test_a_result_of_the_tool_that_ends_is_the_answer(fence: str, protocol: str) -> None:
    turn = run(fence.replace("{}", '{"name": "answer", "content": "Two."}'), protocol, finish="answer")
    assert (turn.final, turn.answer, turn.is_final) == ("Two.", "Two.", True)
    for other in ('{"result_of": "answer", "content": "Two."}', '{"name": "answer", "content": "Two.", "error": "x"}'):
        assert run(fence.replace("{}", other), protocol, finish="answer").reply.is_refused


def test_the_content_of_the_tool_that_ends_has_the_fields_of_its_model() -> None:
    whole = run('{"name": "report", "content": {"title": "Otters", "content": "Two."}}', finish=Report)
    assert whole.final == Report(title="Otters", content="Two.")
    part = run('{"name": "report", "content": "Two."}', finish=Report)
    assert (part.final, part.results[0].success, "Two." in str(part.messages)) == (None, False, False)
    named = run('{"name": "answer", "content": {"answer": "Two."}}', finish="answer")
    assert named.final == "Two."


@pytest.mark.parametrize(
    "reply",
    [
        'The tool said:\n{"name": "search", "content": "otters"}\nThere are two.',
        '{"name": "Eva", "content": "otters"}',
        '{"name": "Eva", "content": "otters"}\n{"name": "search", "content": "otters"}',
        '<tool_response>\n{"result_of": "search", "content": 2}\n</tool_response>\nThere are two.',
        '{"name": "search", "content": "otters", "lines": 3}',
        '[{"name": "search", "content": 1}, {"name": "Eva", "content": 2}]',
    ],
)
def test_other_json_is_an_answer(reply: str) -> None:
    turn = run(reply)
    assert (turn.is_final, turn.answer) == (True, reply)


FIRST, SECOND = (f'{{"name": "search", "arguments": {{"query": "{query}"}}}}' for query in ("otters", "9 otters"))
OWN = '<tool_response>\n{"result_of": "search", "content": 9}\n</tool_response>'
GONE_ON = {
    "between tags": f"<tool_call>\n[{FIRST}]\n</tool_call>\n{OWN}\n<tool_call>\n[{SECOND}]\n</tool_call>",
    "unreadable": f"<tool_call>\n[{FIRST}]\n</tool_call>\n{OWN}\n<function=search>{{9}}</function>",
    "without tags": f"{FIRST}\n{OWN}\n{SECOND}",
    "as it is told": f'{FIRST}\n{{"result_of": "search", "content": 9}}\n{SECOND}',
    "by name": f'{FIRST}\n{{"name": "search", "content": 9}}\n{SECOND}',
    "in tokens": f"<|tool_call|>{FIRST}\n{OWN}\n<|tool_call|>{SECOND}",
    "in Python": f"<tool_call>[search(query='otters')]</tool_call>\n{OWN}\n<tool_call>[search(query='9')]</tool_call>",
    "as ReAct": (
        'Action: search\nAction Input: {"query": "otters"}\nObservation: 9\nAction: search\nAction Input: {"query":"9"}'
    ),
}


@pytest.mark.parametrize("protocol", ["json", "xml"])
@pytest.mark.parametrize("kind", GONE_ON)
def test_calls_after_a_result_of_the_models_own_are_left_out(kind: str, protocol: str) -> None:
    turn = run(GONE_ON[kind], protocol)
    assert (RAN, [problem.message for problem in turn.reply.problems if problem.is_loss]) == (["otters"], [OWN_RESULT])


@pytest.mark.parametrize(
    "reply", [f"{OWN}\n{FIRST}\n{SECOND}", f"{FIRST}\n{SECOND}\n{OWN}", f"<think>{OWN}</think>\n{FIRST}\n{SECOND}"]
)
def test_calls_with_no_result_between_them_all_run(reply: str) -> None:
    turn = run(reply)
    assert (RAN, turn.reply.problems) == (["otters", "9 otters"], ())
