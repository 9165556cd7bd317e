"""JSON in text: finding the calls in a reply, writing for a model, and the round trip."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.definition.from_function import from_function
from toolwire.definition.from_schema import from_schema
from toolwire.protocols.text_formats import JSON_TEXT as PROTOCOL
from toolwire.vocabulary.calls import CODE_EXECUTION, Problem, Reply, ToolCall
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.results import ToolResult

CALL = '{"name": "search", "arguments": {"query": "x"}}'
FENCED = f"```json\n{CALL}\n```"


def search(query: str, limit: int = 10, tags: list[str] | None = None) -> list[str]:
    """Finds pages.

    Args:
        query: Words to look for.
    """
    return [query] * limit


READING = from_function(search, effects=["read"])
PROGRAMS = from_schema(
    name=CODE_EXECUTION, description="Runs a program.", input_schema={"type": "object", "properties": {"code": {}}}
)


def calls(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in reply.calls]


ONE = [("search", {"query": "x"})]
TAKEN: dict[str, tuple[str, int]] = {
    "between tags": (f"<tool_call>\n{CALL}\n</tool_call>", 1),
    "tags dropped": (CALL, 1),
    "opening tag dropped": (f"{CALL}\n</tool_call>", 1),
    "closing tag dropped": (f"<tool_call>\n{CALL}", 1),
    "tags in a row": (f"<tool_call>\n{CALL}\n<tool_call>\n{CALL}", 2),
    "several between one pair of tags": (f"<tool_call>\n{CALL}\n{CALL}\n</tool_call>", 2),
    "text around": (f"Sure:\n{CALL}\nDone.", 1),
    "text before tags in one line": (f"Sure: <tool_call>{CALL}</tool_call>", 1),
    "a list": (f"[{CALL}, {CALL}]", 2),
    "one below the other": (f"{CALL}\n{CALL}", 2),
    "side by side": (f"{CALL} {CALL}{CALL}", 3),
    "side by side with commas": (f"{CALL}, {CALL}", 2),
    "side by side with semicolons": (f"{CALL}; {CALL}\nDone.", 2),
    "side by side before a closing tag": (f"{CALL} {CALL}</tool_call>", 2),
    "side by side in a fence": (f"```json\n{CALL}, {CALL}\n```", 2),
    "Llama": ('{"name": "search", "parameters": {"query": "x"}}', 1),
    "Llama with its mark": (f"<|python_tag|>{CALL}; {CALL}<|eom_id|>", 2),
    "Llama with the name in the tag": ('<function=search>{"query": "x"}</function>', 1),
    "Mistral": (f"[TOOL_CALLS] [{CALL}]", 1),
    "Granite": (f"<|tool_call|>[{CALL}]", 1),
    "Anthropic": ('{"type": "tool_use", "id": "t", "name": "search", "input": {"query": "x"}}', 1),
    "Gemini": ('{"functionCall": {"name": "search", "args": {"query": "x"}}}', 1),
    "OpenAI": (
        (
            '{"tool_calls": [{"id": "c1", "type": "function", '
            '"function": {"name": "search", "arguments": "{\\"query\\": \\"x\\"}"}}]}'
        ),
        1,
    ),
    "OpenAI before tools": ('{"function_call": {"name": "search", "arguments": "{\\"query\\": \\"x\\"}"}}', 1),
    "ReAct": ('{"action": "search", "action_input": {"query": "x"}}', 1),
    "fenced": (FENCED, 1),
    "fenced without a language": (f"```\n{CALL}\n```", 1),
    "tags in a fence": (f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```".replace("xml", "tool_call"), 1),
    "fenced, text before": (f"Here it is:\n{FENCED}", 1),
    "fenced, text behind": (f"{FENCED}\nI wait for the result.", 1),
    "several fences and nothing else": (f"{FENCED}\n{FENCED}", 2),
    "a fence that never ends": (f"```json\n{CALL}\n", 1),
    "an older assistant message": (
        (
            '{"role": "assistant", "content": null, '
            '"function_call": {"name": "search", "arguments": "{\\"query\\": \\"x\\"}"}}'
        ),
        1,
    ),
    "fenced on one line": (f"```json {CALL} ```", 1),
    "fenced on one line, text before": (f"Here it is:\n```{CALL}```", 1),
    "on the line that ends thinking": (f"<think>Hm.</think> {CALL}", 1),
    "on the line that ends thinking whose tag is in the prompt": (f"Hm.</think>{CALL}", 1),
    "fenced on the line that ends thinking": (f"<think>Hm.</think>{FENCED}", 1),
    "behind thinking": (f"<think>Maybe {CALL}?</think>\n{CALL}", 1),
    "behind thinking whose tag is in the prompt": (f"I search.\n</think>\n{CALL}", 1),
}

LEFT: dict[str, str] = {
    "text": "There is nothing to call.",
    "in thinking": f"<think>\n{CALL}\n</think>\nNothing to do.",
    "a fence with a call of no tool of ours": f"So:\n{FENCED.replace('search', 'order')}\nShall I?",
    "a fence with data": 'So:\n```json\n{"name": "Ada", "age": 36}\n```\nShall I?',
    "quoted lines": f"> {CALL}\n> <tool_call>{CALL}</tool_call>",
    "a quoted result": f"<tool_response>\n{CALL}\n</tool_response>",
    "a result cut off": f"<tool_response>\n<tool_call>{CALL}</tool_call>",
    "in quotes": f'It wrote "<tool_call>{CALL}</tool_call>".',
    "in backquotes": f"It wrote `<tool_call>{CALL}</tool_call>`.",
    "inside of data": f'{{"replies": [\n{CALL}\n]}}',
    "inside of a string": json.dumps({"note": f"<tool_call>{CALL}</tool_call>"}),
    "data with a name": '{"name": "Ada", "age": 36}',
    "data like a call": '{"name": "Ada", "parameters": {"a": 1}, "age": 36}',
    "data of names": '[{"name": "Ada"}, {"name": "Lin"}]',
    "the tag's name": "Calls stand between <tool_call> and </tool_call> here.",
    "a program that is an answer": "```python\nprint(1)\n```",
    "a program with text": "Try this:\n```python\nsearch('x')\n```",
}

UNREAD = (
    "This has the shape of a call of a tool, and is not in the form that calls are read from. "
    "Write each call in that form, by itself."
)
IN_RIGHT_FORM = (
    f"This call is not in the form that calls are read from. In that form it is:\n<tool_call>\n[{CALL}]\n</tool_call>"
)
AMONG_TEXT = (
    "The call stands in a code fence among other text, so it may not be meant. "
    "Write it by itself, between <tool_call> and </tool_call>."
)

REFUSED: dict[str, tuple[Any, str]] = {
    "fenced among text": (
        f"You could write:\n{FENCED}\nShall I?",
        AMONG_TEXT,
    ),
    "two fences with text": (
        f"Either:\n{FENCED}\nor:\n{FENCED}",
        AMONG_TEXT,
    ),
    "a damaged call in a fence among text": (
        f"So:\n```json\n{CALL[:-2]}\n```\nI wait.",
        AMONG_TEXT,
    ),
    "a fence with more than calls": (f"```json\n// an example\nx\n{CALL}\n```", UNREAD),
    "another language": (f"```text only\n{CALL}\n```\n".replace("text only", "yaml"), IN_RIGHT_FORM),
    "inside of a line": (f"The call {CALL} would do.", UNREAD),
    "nothing": ("", "The reply is empty. Write a call, or the answer."),
    "no content": (None, "The reply is empty. Write a call, or the answer."),
    "thinking alone": ("<think>Hm.</think>\n", "The reply is all thinking. Write a call, or the answer."),
    "cut off between tags": (
        f"<tool_call>\n{CALL[:-2]}",
        "The JSON ends before it is closed: it was cut off, so it was not run. Make it shorter.",
    ),
    "cut off without tags": (
        CALL[:30],
        "The JSON ends before it is closed: it was cut off, so it was not run. Make it shorter.",
    ),
    "the second of two cut off": (
        f"{CALL}\n{CALL[:-4]}",
        "The JSON ends inside of a string: it was cut off, so it was not run. Make it shorter.",
    ),
    "thinking that never ends": (
        f"<think>{CALL}",
        "<think> is never closed, so the reply is all thinking. Write the call or the answer after it.",
    ),
    "a call in what may be thinking": (
        f"{CALL}\n</think>\nNo.",
        "</think> stands behind a call: what is before it may be thinking. Write the call after it.",
    ),
    "no JSON behind the tag": (
        "<tool_call>\nsearch('x')\n</tool_call>",
        'No JSON follows <tool_call>. Write {"name": the tool\'s name, "arguments": {its parameters}} there.',
    ),
    "data between tags": (
        '<tool_call>{"query": "x"}</tool_call>',
        'This JSON is not a call. Write {"name": the tool\'s name, "arguments": {its parameters}}.',
    ),
    "arguments twice": (
        '{"name": "search", "arguments": {}, "parameters": {}}',
        "A call has both `arguments` and `parameters`. Write `arguments` once.",
    ),
    "arguments in a list": (
        '{"name": "search", "arguments": ["x"]}',
        "The arguments of 'search' are not a JSON object. Write the parameters' names with their values.",
    ),
    "the tool's description": (
        '{"name": "search", "description": "Finds pages", "parameters": {"type": "object"}}',
        "This describes the tool 'search' and does not call it. Write `arguments` with values.",
    ),
    "the tool's schema": (
        '{"name": "search", "parameters": {"type": "object", "properties": {"query": "x"}}}',
        ("The arguments are a JSON Schema, not values. "
        "Write the parameters' names (query, limit, tags) with their values."),
    ),
    "schema keys for a value": (
        '{"name": "search", "arguments": {"query": {"type": "string", "description": "x"}}}',
        "`query` is a piece of JSON Schema, not a value. Write the value itself.",
    ),
    "a key twice": (
        '{"name": "search", "arguments": {"query": "a", "query": "b"}}',
        "The key 'query' is given twice. Write it once.",
    ),
    "too many": (f"[{', '.join([CALL] * 65)}]", "The reply makes more than 64 calls. Make fewer at a time."),
    "no text": (b"\xff", "The reply is not UTF-8: byte 0 is 0xff. Write it in UTF-8."),
    "too long": ("x" * 262_145, "The reply has 262145 bytes; the limit is 262144. Write a shorter one."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "count"), TAKEN.values(), ids=TAKEN)
def test_a_call_is_read_in_every_form_that_models_write(text: str, count: int) -> None:
    reply = PROTOCOL.parse(text, [search])
    assert calls(reply) == ONE * count
    assert not reply.is_refused


@pytest.mark.threat(24)
@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_no_call_is_taken_out_of_text_that_makes_none(text: str) -> None:
    reply = PROTOCOL.parse(text, [search])
    assert (reply.calls, reply.problems) == ((), ())


@pytest.mark.parametrize(("text", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_reply_that_cannot_be_read_is_refused_with_its_reason(text: str | bytes | None, reason: str) -> None:
    reply = PROTOCOL.parse(text, [search])
    assert reply.calls == ()
    assert [(problem.message, problem.repaired) for problem in reply.problems] == [(reason, False)]


def test_an_answer_is_the_text_as_it_is() -> None:
    assert PROTOCOL.parse("It is 3.\n\nReally.") == Reply(text="It is 3.\n\nReally.")


def test_thinking_and_text_are_kept_apart_from_the_call() -> None:
    reply = PROTOCOL.parse(f"<think>Let me see.</think>\nI search.\n{CALL}\nSoon more.")
    assert (reply.thought, reply.text, calls(reply)) == ("Let me see.", "I search.\nSoon more.", ONE)


def test_a_call_beside_tagged_ones_is_left_out_and_told() -> None:
    reply = PROTOCOL.parse(f'{CALL}\n<tool_call>{{"name": "read", "arguments": {{}}}}</tool_call>')
    assert calls(reply) == [("read", {})]
    assert reply.problems == (
        Problem(
            message="A call outside of the tags was left out: those between tags were taken.",
            repaired=True,
            place="line 1",
        ),
    )


def test_a_fenced_call_beside_others_is_left_out_and_told() -> None:
    reply = PROTOCOL.parse(f"{CALL}\nFor example:\n{FENCED}\nSo.", [search])
    assert calls(reply) == ONE
    assert [(problem.message, problem.repaired, problem.place) for problem in reply.problems] == [
        ("A call in a code fence was left out: those outside of fences were taken.", True, "line 3")
    ]


@pytest.mark.parametrize("beside", [f"{CALL} and {CALL}", f"{CALL}\nThen I call {CALL}"])
def test_a_call_among_words_beside_a_call_is_left_out_and_told(beside: str) -> None:
    reply = PROTOCOL.parse(beside, [search])
    assert calls(reply) == ONE
    assert [(problem.message, problem.repaired) for problem in reply.problems] == [
        (
            (
                "The text beside the calls has the shape of a call, and was not run. Write each call on a line of its "
                "own."
            ),
            True,
        )
    ]


@pytest.mark.parametrize("beside", ["Done.", 'I searched for {"query": "x"}.', "It is `search`."])
def test_words_beside_a_call_are_not_a_problem(beside: str) -> None:
    reply = PROTOCOL.parse(f"{CALL}\n{beside}", [search])
    assert (calls(reply), reply.text, reply.problems) == (ONE, beside, ())


def test_problems_name_the_lines_of_the_reply() -> None:
    reply = PROTOCOL.parse(f"So:\n```json\n{CALL[:-1]},\n}}\n```")
    assert [problem.place for problem in reply.problems] == ["line 2", "line 3, column 47"]


def test_ids_are_kept_and_an_invented_name_passes_through() -> None:
    reply = PROTOCOL.parse('<tool_call>{"id": "c7", "name": "serch_web", "arguments": {}}</tool_call>', [search])
    assert reply.calls[0].id == "c7"
    assert calls(reply) == [("serch_web", {})]


def test_a_name_as_a_provider_would_write_it_is_the_tools() -> None:
    tool = from_schema(name="fs.read", description="", input_schema={"type": "object"})
    assert calls(PROTOCOL.parse('{"name": "fs_dot_read", "arguments": {}}', [tool])) == [("fs.read", {})]
    assert calls(PROTOCOL.parse('{"name": "fs_dot_read", "arguments": {}}')) == [("fs_dot_read", {})]


@pytest.mark.parametrize("tools", [[], [PROGRAMS], [search]], ids=["unknown tools", "programs offered", "tool called"])
def test_a_lone_block_of_python_is_a_program(tools: list[Any]) -> None:
    text = "<think>One program.</think>\n```python\n__result__ = search('x')\n```"
    assert calls(PROTOCOL.parse(text, tools)) == [(CODE_EXECUTION, {"code": "__result__ = search('x')\n"})]


def test_a_program_that_was_cut_off_is_refused() -> None:
    reply = PROTOCOL.parse("```python\nrows = search('x')\nfor row in ro", [PROGRAMS])
    assert [problem.message for problem in reply.problems] == [
        ("The program's code fence is never closed: it was cut off, so it was not run. Make it shorter.")
    ]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ["</tool_call>", "<think>", "]]>", "```", "\x00", '{"name": "a", "arguments": {}}', "1e5", "NaN"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True)
CALLS = st.lists(st.builds(ToolCall, NAMES, st.dictionaries(TEXT, JSON, max_size=3)), min_size=1, max_size=3)


@given(CALLS)
def test_rendered_calls_are_read_back(made: list[ToolCall]) -> None:
    reply = PROTOCOL.parse(PROTOCOL.render(made))
    assert calls(reply) == [(call.name, dict(call.arguments)) for call in made]
    assert (reply.text, reply.problems) == ("", ())


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["```\n", "x = '''a\n```\n'''\n", "a\r\n"]))
def test_a_rendered_program_is_read_back(code: str) -> None:
    made = ToolCall(CODE_EXECUTION, {"code": code})
    assert calls(PROTOCOL.parse(PROTOCOL.render([made]))) == [(CODE_EXECUTION, {"code": code})]


PROSE = st.text(st.characters(categories=["L", "N", "Zs"], include_characters=".,;:!?'\"()-"), max_size=40)


@given(CALLS, PROSE, PROSE)
def test_prose_around_calls_changes_none_of_them(made: list[ToolCall], before: str, after: str) -> None:
    text = f"{before}\n{PROTOCOL.render([*made, ToolCall('last')])}\n{after}"
    assert PROTOCOL.parse(text).calls == PROTOCOL.parse(PROTOCOL.render([*made, ToolCall("last")])).calls


@pytest.mark.threat(24)
@given(JSON | CALLS.map(PROTOCOL.render))
def test_no_call_is_taken_out_of_a_result(data: Any) -> None:
    call = ToolCall("search", {})
    text = PROTOCOL.format([ToolResult(True, data, call=call), ToolResult(False, error=str(data), call=call)])
    assert PROTOCOL.parse(text).calls == ()
    assert json.loads(text.split("\n")[1]) == {"result_of": "search", "content": data}


@given(st.text() | st.text('{}[]:,"\\ \n<>/`tool_cangume|think', max_size=60) | st.binary(max_size=40))
def test_nothing_makes_it_raise(text: str | bytes) -> None:
    assert isinstance(PROTOCOL.parse(text, [search]), Reply)
    assert PROTOCOL.recognises(text) in (True, False)


def test_a_result_is_one_object_between_tags() -> None:
    call = ToolCall("search", {})
    results = [
        ToolResult(True, [{"title": "你好"}], call=call),
        ToolResult.failed("tool_error", "no </tool_response> here", hint="Ask again.", call=call),
    ]
    assert PROTOCOL.format(results) == (
        '<tool_response>\n{"result_of": "search", "content": [{"title": "你好"}]}\n</tool_response>\n'
        '<tool_response>\n{"result_of": "search", "error": "no <\\/tool_response> here\\nAsk again."}\n</tool_response>'
    )


def test_a_refusal_names_the_reasons() -> None:
    assert PROTOCOL.refuse(PROTOCOL.parse(CALL)) == PROTOCOL.refuse(PROTOCOL.parse("text")) == ""
    assert PROTOCOL.refuse(PROTOCOL.parse(f"So:\n{CALL[:-1]}")) == (
        "Your reply was not run.\n"
        "- line 2, column 47: The JSON ends before it is closed: it was cut off, so it was not run. "
        "Make it shorter."
    )


def test_the_reminder_is_neither_a_call_nor_an_answer() -> None:
    copied = PROTOCOL.parse(PROTOCOL.reminder)
    assert (copied.calls, copied.is_refused) == ((), True)


def test_the_prompt_says_the_form_the_tools_and_an_example_made_of_them() -> None:
    assert (
        PROTOCOL.describe([READING])
        == """\
# Tools
To use tools, write a JSON list with a call for each thing that is asked, between <tool_call> tags, and stop: \
you read the results next.
- Strict JSON: double quotes, line breaks in strings as \\n, no comments, characters as they are.
- `arguments` holds values by parameter name; leave out those marked ? unless needed.
- Call only the tools listed. If none fits or is needed, answer in plain text.

## Your tools
search(query: string, limit?: integer = 10, tags?: string[] | null): Finds pages.
  query: Words to look for.

## Examples
> Finds pages.
<tool_call>
[{"name": "search", "arguments": {"query": "quarterly report"}}]
</tool_call>
> Use search twice.
<tool_call>
[{"name": "search", "arguments": {"query": "quarterly report"}},
{"name": "search", "arguments": {"query": "open questions"}}]
</tool_call>
"""
    )


def test_programs_are_spoken_of_only_where_they_are_offered() -> None:
    program = (
        "Where a task needs many calls, reply instead with nothing but one Python program that makes them. In it every "
        "tool is a function, called by keyword; assign what you want to read to `__result__`:\n"
        '```python\n__result__ = [search(query="quarterly report"), search(query="open questions")]\n```'
    )
    with_programs = PROTOCOL.describe([READING, PROGRAMS])
    assert PROTOCOL.describe([READING]) == with_programs.replace(f"{program}\n\n", "")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_calls_of_the_prompts_example_are_valid(language: Any) -> None:
    example = PROTOCOL.describe([READING], language=language).rpartition("\n## ")[2]
    assert calls(PROTOCOL.parse(example, [search])) == [
        ("search", {"query": "quarterly report"}),
        ("search", {"query": "quarterly report"}),
        ("search", {"query": "open questions"}),
    ]


def test_a_prompt_without_tools_asks_for_plain_text() -> None:
    assert PROTOCOL.describe([]) == "# Tools\nThere are none: answer in plain text.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"language": "fr"}, "language='fr' is unknown: write one of 'en', 'zh'"),
        ({"thought": "long"}, "thought='long' is unknown: write one of 'short', 'full'"),
    ],
)
def test_an_unknown_option_is_told_which_there_are(options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PROTOCOL.describe([READING], **options)
    assert str(caught.value) == message


RECOGNISED = [CALL, FENCED, f"<tool_call>{CALL}", f"<think>a</think>{CALL}".encode(), "[TOOL_CALLS] []"]
NOT_RECOGNISED = ["text", '{"a": 1}', "<tool_call><name>a</name>", "[1]", 7, {"name": "a", "arguments": {}}]


def test_it_recognises_replies_that_begin_with_a_call() -> None:
    assert [PROTOCOL.recognises(text) for text in RECOGNISED] == [True] * len(RECOGNISED)
    assert [PROTOCOL.recognises(text) for text in NOT_RECOGNISED] == [False] * len(NOT_RECOGNISED)
