"""Long histories become shorter ones that every provider takes."""

from __future__ import annotations

import base64
import copy
from functools import cache
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.agent.random_histories import IMAGE, TOOLS, random_history
from tests.protocols.outgoing_histories import check_request
from toolwire import ToolCall, ToolResult, protocols
from toolwire.agent.shortening import (
    EARLIER_LEFT_OUT,
    TokenCount,
    check_history,
    estimate_tokens,
    is_too_long,
    shorten_by_owner,
    shorten_history,
    split_history,
)
from toolwire.agent.wire_messages import is_of_model, results_in, size_of
from toolwire.vocabulary.errors import ConfigurationError

SEEDS = 200
NATIVE = ("openai", "openai-responses", "anthropic", "gemini")
LONG = "r" * 5_000
LINE = "[Left out to shorten the conversation: 5,000 characters]"
IMAGE_LINE = "[Left out to shorten the conversation: 1 image or sound]"


class Case(NamedTuple):
    messages: list[Any]
    copy: list[Any]
    limit: int
    found: list[Any]


def shorten(name: str, messages: list[Any], limit_tokens: int | None, count: TokenCount | None = None) -> list[Any]:
    return shorten_history(
        messages, protocols.get(name), TOOLS, limit_tokens=limit_tokens, count=count, before=("system", [])
    )


@cache
def cases(name: str) -> list[Case]:
    """Returns random histories, limits that they fill by 91 to 900 %, and what becomes of them."""
    found: list[Case] = []
    for seed in range(SEEDS):
        messages = random_history(name, seed)
        tokens = estimate_tokens(messages, None, ("system", []))
        limit = int(tokens / Random(seed).uniform(0.91, 9)) + 1
        found.append(Case(messages, copy.deepcopy(messages), limit, shorten(name, messages, limit)))
    return found


def steps_of(name: str, messages: list[Any]) -> list[list[Any]]:
    return [step for one in split_history(messages, protocols.get(name), TOOLS) for step in one.steps]


def texts_of_notice(messages: list[Any]) -> list[Any]:
    return [one for one in messages if EARLIER_LEFT_OUT in (one.get("content"), one.get("parts", [{}])[0].get("text"))]


@pytest.mark.parametrize("name", protocols.names())
def test_shortened_histories_are_taken_by_their_providers(name: str) -> None:
    for messages, _, _, found in cases(name):
        check_history(found, protocols.get(name), TOOLS, place="shorten_history")
        if name in NATIVE:
            check_request(name, messages)
            check_request(name, found)


@pytest.mark.parametrize("name", protocols.names())
def test_they_fit_the_goal_unless_only_what_always_stays_is_left(name: str) -> None:
    fitting = 0
    for _, _, limit, found in cases(name):
        if size_of(["system", found]) <= 0.6 * limit * 4:
            fitting += 1
            continue
        assert len([step for step in steps_of(name, found) if not texts_of_notice(step)]) <= 1
        assert len(split_history(found, protocols.get(name), TOOLS)) <= 3
    assert fitting > SEEDS / 4


@pytest.mark.parametrize("name", protocols.names())
def test_what_stays_is_unchanged_and_in_order(name: str) -> None:
    for messages, before, _, found in cases(name):
        assert messages == before
        prompts = [split_history(one, protocols.get(name), TOOLS)[0].prompt for one in (messages, found)]
        assert prompts[0] == prompts[1]
        notices = texts_of_notice(found)
        rest = iter(messages)
        replies = [message for message in found if is_of_model(message) and message not in notices]
        assert all(reply in rest for reply in replies)
        assert is_of_model(messages[-1]) == is_of_model(found[-1])
        assert results_in(messages[-1]) == results_in(found[-1])


@pytest.mark.parametrize("name", protocols.names())
def test_no_prompt_of_the_user_loses_a_part_of_its_exchange_while_older_steps_stay(name: str) -> None:
    for messages, _, _, found in cases(name):
        old, new = steps_of(name, messages), steps_of(name, found)
        kept = [step for step in new if not texts_of_notice(step)]
        replies = [[one for one in step if is_of_model(one)] for step in old][len(old) - len(kept) :]
        assert [[one for one in step if is_of_model(one)] for step in kept] == replies
        if len(kept) < len(old):
            assert all(len(str(one)) < 4_000 for step in kept[:-1] for one in step if not is_of_model(one))


@pytest.mark.parametrize("name", protocols.names())
def test_shortening_again_changes_nothing(name: str) -> None:
    for _, _, limit, found in cases(name):
        assert shorten(name, found, limit) is found


@pytest.mark.parametrize("name", protocols.names())
def test_prompts_and_replies_take_turns(name: str) -> None:
    for _, _, _, found in cases(name):
        exchanges = split_history(found, protocols.get(name), TOOLS)
        assert all(len(one.prompt) == 1 for one in exchanges)
        assert all(one.steps for one in exchanges[:-1])


def conversation(name: str, *contents: str) -> list[Any]:
    """Returns a prompt and one step with a call for each content."""
    protocol: Any = protocols.get(name)
    found = protocol.prompt("Begin.")
    for at, content in enumerate(contents):
        call = ToolCall("look", {"a": at}, id=f"call_{at}")
        blocks: Any = [{"type": "text", "text": content.strip("!")}, *([IMAGE] if "!" in content else [])]
        reply, results = protocol.render([call]), protocol.format([ToolResult(True, content=blocks, call=call)])
        results = [{"role": "user", "content": results}] if isinstance(results, str) else results
        reply = {"role": "assistant", "content": reply} if isinstance(reply, str) else reply
        found += [*(reply if isinstance(reply, list) else [reply]), *results]
    return found


ELIDED: dict[str, list[Any]] = {
    "openai": [{"role": "tool", "tool_call_id": "call_0", "content": LINE}],
    "openai-responses": [{"type": "function_call_output", "call_id": "call_0", "output": LINE}],
    "anthropic": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": LINE}]},
    ],
    "gemini": [
        {
            "role": "user",
            "parts": [{"function_response": {"id": "call_0", "name": "look", "response": {"output": LINE}}}],
        }
    ],
    "json": [{"role": "user", "content": LINE.replace("5,000", "5,069")}],
}


@pytest.mark.parametrize("name", ELIDED)
def test_a_long_result_becomes_a_line_that_says_how_much_is_left_out(name: str) -> None:
    messages = conversation(name, LONG, "short", LONG)
    found = shorten(name, messages, 2_700)
    start = len(protocols.get(name).prompt("a")) + 1
    assert found[start] == ELIDED[name][0]
    assert [*found[:start], *found[start + 1 :]] == [*messages[:start], *messages[start + 1 :]]


@pytest.mark.parametrize("name", NATIVE)
def test_an_image_becomes_a_line_and_a_short_text_beside_it_stays(name: str) -> None:
    found = shorten(name, conversation(name, "a chart!", "short"), 600)
    text = str(found)
    assert IMAGE_LINE in text
    assert "a chart" in text
    assert "base64" not in text
    assert "inline_data" not in text
    assert len(found) == len(conversation(name, "a chart!", "short"))
    check_request(name, found)


def test_an_error_stays_an_error() -> None:
    call = ToolCall("look", {}, id="call_0")
    result = ToolResult.failed("tool_error", LONG, hint="-", call=call)
    for name, words in (("anthropic", "'is_error': True"), ("gemini", "{'error': '[Left out ")):
        protocol: Any = protocols.get(name)
        old = [*protocol.prompt("Begin."), protocol.render([call]), *protocol.format([result])]
        found = shorten(name, [*old, *conversation(name, "short")[1:]], 1_000)
        assert len(found) == 5
        assert LONG not in str(found)
        assert words in str(found)


@pytest.mark.parametrize("name", NATIVE)
def test_the_newest_results_become_lines_only_if_nothing_else_can_go(name: str) -> None:
    messages = conversation(name, "short", LONG)
    first_step = steps_of(name, messages)[0]
    at_seventy = shorten(name, messages, 1_900)
    assert LONG in str(at_seventy)
    assert not any(message in at_seventy for message in first_step)
    assert LINE in str(shorten(name, messages, 1_000))


@pytest.mark.parametrize("name", protocols.names())
def test_results_that_the_model_has_not_read_stay_before_a_new_prompt(name: str) -> None:
    messages = [*conversation(name, "short " * 150, "unread"), *protocols.get(name).prompt("Go on.")]
    found = shorten(name, messages, 100)
    assert steps_of(name, found) == steps_of(name, messages)[1:]
    assert found[-1] == messages[-1]


def test_a_refused_reply_is_no_prompt_so_the_task_stays() -> None:
    messages = random_history("xml", 0)[:1]
    messages += [
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "The task."},
        {"role": "assistant", "content": "<tool_call><name>look"},
        {"role": "user", "content": "Your reply was not run.\n- line 1: write a call."},
        *conversation("xml", LONG, LONG)[1:],
    ]
    found = shorten("xml", messages, 1_900)
    assert [one["content"] for one in found if one["role"] == "user"][1] == "The task."
    assert found[1] == {"role": "assistant", "content": EARLIER_LEFT_OUT}


def test_without_a_limit_the_goal_is_half_of_what_was_sent() -> None:
    messages = conversation("openai", *["short " * 40] * 20)
    found = shorten("openai", messages, None)
    assert 0.4 < size_of(found) / size_of(messages) <= 0.5


def test_a_count_of_the_provider_counts_and_the_rest_is_estimated() -> None:
    messages = conversation("openai", "short", LONG)
    count = TokenCount(tokens=900, messages=3)
    assert estimate_tokens(messages, count, ("system", [])) == 900 + size_of(messages[3:]) // 4
    limit = int(estimate_tokens(messages, count, ()) / 0.9)
    assert not is_too_long(messages, limit_tokens=limit + 1, count=count, before=())
    assert is_too_long(messages, limit_tokens=limit - 1, count=count, before=())


@pytest.mark.parametrize("name", NATIVE)
def test_an_image_counts_alike_whatever_its_size(name: str) -> None:
    def size(content_bytes: int) -> int:
        data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * content_bytes).decode()
        source: Any = {"type": "base64", "media_type": "image/png", "data": data}
        return size_of(protocols.get(name).prompt([{"type": "image", "source": source}]))

    assert size(10_000) == size(900_000)
    assert 6_000 < size(10_000) < 6_200
    assert size(10) < 200


def test_the_goal_is_in_the_providers_tokens() -> None:
    messages = conversation("openai", *["short " * 40] * 20)
    half_a_byte = TokenCount(tokens=size_of(["system", messages]) * 2, messages=len(messages))
    found = shorten("openai", messages, half_a_byte.tokens, half_a_byte)
    assert 0.5 < size_of(found) / size_of(messages) <= 0.6


def test_a_short_history_stays_the_same_object() -> None:
    messages = conversation("openai", "short", "short")
    assert shorten("openai", messages, 10_000) is messages
    assert not is_too_long(messages, limit_tokens=10_000, count=None, before=())


async def test_an_owners_function_replaces_it_and_gets_a_copy() -> None:
    messages = conversation("openai", "short", "short")
    before = copy.deepcopy(messages)

    def cut(given: list[Any]) -> list[Any]:
        given[0]["content"] = "Begin again."
        return given[:3]

    async def wait(given: list[Any]) -> list[Any]:
        return cut(given)

    for function in (cut, wait):
        found = await shorten_by_owner(function, messages, protocols.get("openai"), TOOLS, agent="lead")
        assert found == [{"role": "user", "content": "Begin again."}, *messages[1:3]]
    assert messages == before


@pytest.mark.parametrize("name", protocols.names())
async def test_a_history_that_no_provider_takes_is_an_error_to_its_owner(name: str) -> None:
    protocol, messages = protocols.get(name), conversation(name, "short", "short")
    wrong: list[tuple[Any, str]] = [
        ([], "[], not a list of messages"),
        (None, "None, not a list of messages"),
        ([*messages, "a"], "'a', not a dict"),
        (messages[:-1], "call"),
        ([*messages[:2], *messages[3:]], "call"),
        (messages[1:], "a history that begins with a reply"),
    ]
    wrong += [([messages[0], *messages[2:]], "which no reply before it makes")] if protocol.is_native else []
    for value, words in wrong:
        with pytest.raises(ConfigurationError) as caught:
            await shorten_by_owner(lambda _, value=value: value, messages, protocol, TOOLS, agent="lead")
        assert str(caught.value).startswith("shorten= of the agent 'lead' gave ")
        assert words in str(caught.value)
    check_history(messages, protocol, TOOLS, place="nobody")


async def test_a_failing_function_is_an_error_that_names_it() -> None:
    def fail(messages: list[Any]) -> list[Any]:
        raise KeyError("summary")

    with pytest.raises(ConfigurationError) as caught:
        await shorten_by_owner(fail, [], protocols.get("openai"), TOOLS, agent="lead")
    assert str(caught.value) == "shorten= of the agent 'lead' failed with KeyError: 'summary'"
    assert isinstance(caught.value.__cause__, KeyError)
