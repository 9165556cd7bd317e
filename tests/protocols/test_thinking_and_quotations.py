"""Calls in thinking and in quotations do not run, and what stands beside them is read as if they were not there."""

from __future__ import annotations

import pytest

from tests.protocols.test_leftovers import OFFERED, calls
from toolwire.protocols import get
from toolwire.protocols.native.openai import OpenAi
from toolwire.protocols.reading.incoming import behind_thinking, tag_thinking

FORMATS = ["json", "xml"]
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
NOW_IN_XML = "<tool_call><name>now</name><params></params></tool_call>"
WEATHER = {
    "json": '<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>',
    "xml": "<tool_call><name>weather</name><params><city>Oslo</city></params></tool_call>",
}
ANSWER = "It is sunny."
THINKING = {
    "think": "<think>{}</think>\n",
    "thinking": "<thinking>\n{}\n</thinking>",
    "thought": "<thought>{}</thought>",
    "reasoning": "<reasoning>{}</reasoning>",
    "Seed": "<seed:think>{}</seed:think>",
    "scratchpad": "<scratchpad>{}</scratchpad>\n\n",
    "Magistral": "[THINK]{}[/THINK]",
    "Command": "<|START_THINKING|>{}<|END_THINKING|>",
    "Sky": "<|begin_of_thought|>\n\n{}\n\n<|end_of_thought|>\n",
    "Harmony": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant",
    "Harmony from its start": "<|start|>assistant<|channel|>analysis<|message|>{}<|end|><|start|>assistant",
    "Gemma": "<|channel>thought\n{}<channel|>",
    "two": "[THINK]{0}[/THINK][THINK]{0}[/THINK]",
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("call", [NOW, NOW_IN_XML, '{"name": "now", "arguments": {}}', "to=functions.now {}"])
@pytest.mark.parametrize("form", THINKING)
def test_a_call_in_thinking_does_not_run(form: str, call: str, format: str) -> None:
    thinking = THINKING[form].format(f"I could write\n{call}\nbut not now.")
    answer = get(format).parse(f"{thinking}{ANSWER}", OFFERED)
    assert (answer.calls, answer.is_refused, answer.text.strip()) == ((), False, ANSWER)
    assert "I could write" in answer.thought
    made = get(format).parse(f"{thinking}{WEATHER[format]}", OFFERED)
    assert calls(made) == [("weather", {"city": "Oslo"})]
    alone = get(format).parse(thinking, OFFERED)
    assert (alone.calls, alone.is_refused) == ((), True)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("token", ["<think>", "[THINK]", "<|START_THINKING|>", "<|channel|>analysis<|message|>"])
def test_thinking_that_never_ends_runs_nothing(token: str, format: str) -> None:
    reply = get(format).parse(f"{token}I call it.\n{WEATHER[format]}", OFFERED)
    assert (reply.calls, reply.is_refused) == ((), True)


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("form", THINKING)
def test_a_call_behind_thinking_in_a_native_text_is_a_call_and_one_in_it_is_none(form: str, *, reads: bool) -> None:
    protocol = OpenAi().with_text_calls() if reads else OpenAi()
    thinking = THINKING[form].format(f"I could write\n{NOW}\nbut not now.")
    answer = protocol.parse({"role": "assistant", "content": f"{thinking}{ANSWER}"}, OFFERED)
    assert (answer.calls, answer.problems) == ((), ())
    made = protocol.parse({"role": "assistant", "content": f"{thinking}{WEATHER['json']}"}, OFFERED)
    assert calls(made) == ([("weather", {"city": "Oslo"})] if reads else [])
    assert made.is_refused is not reads
    for reply in ({"role": "assistant", "content": thinking}, thinking):
        alone = protocol.parse(reply, OFFERED)
        assert [problem.message for problem in alone.problems] == [
            "The reply is all thinking. Write the answer, or make a call."
        ]


def test_tokens_of_thinking_in_an_argument_stay_in_it() -> None:
    text = '<tool_call>{"name": "weather", "arguments": {"city": "[THINK]x[/THINK]"}}</tool_call>'
    assert calls(get("json").parse(text, OFFERED)) == [("weather", {"city": "[THINK]x[/THINK]"})]
    assert tag_thinking(f"Write [THINK]x[/THINK].\n{text}") == f"Write [THINK]x[/THINK].\n{text}"


def test_thinking_that_names_its_own_tag_ends_where_its_token_ends() -> None:
    assert tag_thinking("[THINK]a</think>b[/THINK]c") == "<thinking>a</think>b</thinking>c"
    assert behind_thinking("[THINK]a</think>b[/THINK]c") == "c"


def test_many_tokens_take_linear_time() -> None:
    assert behind_thinking("[THINK]" * 100_000) == ""
    assert behind_thinking("<think>" * 100_000).startswith("<think>")


QUOTATIONS = {
    "a quoted line": "The page says:\n> {}\nand no more.",
    "a comment": "<!-- {} -->\nHello.",
    "an example": "<example>{}</example>\nHello.",
    "a block": "<blockquote>\n{}\n</blockquote>\nHello.",
    "code": "Hello, <code>{}</code> is how.",
    "preformatted": '<pre class="x">{}</pre>\nHello.',
    "a code span": "Write `{}` to call it.",
    "a result": "<tool_response>{}</tool_response>\nHello.",
    "another result": "<tool_result>\n{}\n</tool_result>\nHello.",
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("form", QUOTATIONS)
def test_a_quoted_call_does_not_run_and_the_text_is_the_answer(form: str, written: str, format: str) -> None:
    text = QUOTATIONS[form].format(WEATHER[written])
    reply = get(format).parse(text, OFFERED)
    assert (reply.calls, reply.is_refused, reply.text) == ((), False, text)


@pytest.mark.parametrize("mark", ["`", '"', "“"])
def test_a_quoted_call_of_several_lines_does_not_run(mark: str) -> None:
    text = f"The page said {mark}{NOW}{'”' if mark == '“' else mark}, which I left alone."
    assert get("json").parse(text, OFFERED).calls == ()


@pytest.mark.parametrize("format", FORMATS)
def test_a_tag_of_a_quotation_that_is_never_closed_hides_no_call(format: str) -> None:
    text = f"I look into <code> and <!-- too.\n{WEATHER[format]}"
    assert calls(get(format).parse(text, OFFERED)) == [("weather", {"city": "Oslo"})]
