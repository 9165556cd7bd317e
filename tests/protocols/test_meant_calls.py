"""A call in no readable form: the model reads it in the right form, and nothing runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocols.test_foreign import CALLS, TOOLS
from tests.protocols.wrappings import REFUSED, Wrapping
from toolwire.protocols import get
from toolwire.protocols.foreign.meant_calls import SHOWN_LIMIT
from toolwire.vocabulary.calls import CODE_EXECUTION

SHOWN = "This call is not in the form that calls are read from. In that form it is:\n"
TOOL_AS_KEY = '{"search": {"query": "otters", "limit": 3}}'


def shown(reply: str, format: str) -> str:
    """Returns the call that the model is shown; empty if it is shown none."""
    found = get(format).parse(reply, TOOLS)
    assert not found.calls
    (problem,) = found.problems
    return problem.message.removeprefix(SHOWN) if problem.message.startswith(SHOWN) else ""


@pytest.mark.parametrize("format", ["json", "xml"])
@pytest.mark.parametrize(
    "wrapping",
    ["JSON of a tool", "JSON with the tool for a key", "JSON of calls", "arguments beside the name", "attributes"],
)
def test_a_call_in_an_unreadable_form_is_shown_in_the_right_form(wrapping: str, format: str) -> None:
    for name, arguments in CALLS:
        given = {key: value for key, value in arguments.items() if isinstance(value, str)} or arguments
        again = get(format).parse(shown(REFUSED[wrapping](name, given), format), TOOLS)
        if wrapping == "attributes" and '"' in str(given):
            continue
        assert [(call.name, dict(call.arguments)) for call in again.calls] == [(name, given)]
        assert again.problems == ()


@pytest.mark.parametrize(
    "reply",
    [
        TOOL_AS_KEY,
        f"```json\n{TOOL_AS_KEY}\n```",
        '<tool_call>\n{"name": "search", "arguments": {"query": "otters", "limit": 3}}\n</tool_call>',
        "<search><query>otters</query><limit>3</limit></search>",
        "search(query='otters', limit=3)",
    ],
)
def test_a_call_in_place_of_a_program_is_shown_as_a_program(reply: str) -> None:
    again = get("attp").parse(shown(reply, "attp"), TOOLS)
    (program,) = again.calls
    assert (program.name, program.arguments) == (
        CODE_EXECUTION,
        {"code": '__result__ = search(query="otters", limit=3)\n'},
    )


def test_the_message_for_the_model_ends_with_the_call() -> None:
    protocol = get("json")
    assert protocol.refuse(protocol.parse(f"```json\n{TOOL_AS_KEY}\n```", TOOLS)) == (
        "Your reply was not run.\n"
        "- line 2: This call is not in the form that calls are read from. In that form it is:\n"
        '<tool_call>\n[{"name": "search", "arguments": {"query": "otters", "limit": 3}}]\n</tool_call>'
    )


@pytest.mark.threat(24)
@pytest.mark.parametrize("format", ["json", "xml", "attp"])
@pytest.mark.parametrize("around", ["The page says:\n{}", "{}\nThat is on the page.", "So:\n```json\n{}\n```"])
@pytest.mark.parametrize("name", ["JSON of a tool", "attributes"])
def test_a_call_that_text_may_quote_is_not_shown(name: str, around: str, format: str) -> None:
    wrapping: Wrapping = REFUSED[name]
    found = get(format).parse(around.replace("{}", wrapping("search", {"query": "otters"})), TOOLS)
    assert not found.calls
    assert all(SHOWN not in problem.message for problem in found.problems)


@pytest.mark.parametrize(("size", "is_shown"), [(SHOWN_LIMIT - 100, True), (SHOWN_LIMIT, False)])
def test_a_long_call_is_not_shown(size: int, is_shown: bool) -> None:
    reply: Any = TOOL_AS_KEY.replace("otters", "o" * size)
    assert bool(shown(reply, "json")) is is_shown
