"""Sessions with many tools: the prompt describes a few, and the model finds the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire import ConfigurationError, Rule, Session, ToolRegistry
from toolwire.facade.finding import REMEMBERED_LIMIT


def send_email(to: str) -> str:
    """Sends an email."""
    return f"sent to {to}"


def read_calendar(day: str) -> str:
    """Reads the calendar."""
    return day


def now() -> str:
    """Tells the time."""
    return "12:00"


TOOLS = [send_email, read_calendar, now]


def openai(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def attp(code: str) -> str:
    return f"thought = \"Look.\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"look\"\ncode = '''\n{code}\n'''\n"


def told(session: Session) -> list[str]:
    return [tool.name for tool in session.tools]


async def test_a_found_tool_is_declared_in_the_next_request() -> None:
    session = Session(TOOLS, protocol="openai", always=["now"])
    assert told(session) == ["now", "search_tools"]
    turn = await session.turn(openai("search_tools", query="write a mail"))
    assert turn.text.startswith("1 tool:\n\ndef send_email(to: str)")
    declared = [tool["function"]["name"] for tool in session.instructions if isinstance(tool, dict)]
    assert declared == ["send_email", "now", "search_tools"]
    assert (await session.turn(openai("send_email", to="Ann"))).text == "sent to Ann"


async def test_a_tool_can_be_called_before_it_was_found() -> None:
    session = Session(TOOLS, protocol="openai", always=())
    assert (await session.turn(openai("send_email", to="Ann"))).text == "sent to Ann"


async def test_a_name_that_a_provider_writes_otherwise_is_understood_before_it_was_found() -> None:
    registry = ToolRegistry()
    registry.register(send_email, name="mail.send")
    registry.configure(tool_search=True)
    session = Session(registry, protocol="openai")
    assert (await session.turn(openai("mail_dot_send", to="Ann"))).text == "sent to Ann"


async def test_a_program_finds_and_calls() -> None:
    session = Session(TOOLS, always=())
    assert "def send_email" not in str(session.instructions)
    assert "def search_tools" in str(session.instructions)
    assert (await session.turn(attp("__result__ = search_tools('mail')"))).text.startswith("1 tool:\n\ndef send_email(")
    assert (await session.turn(attp("print(send_email('Ann'))"))).text == "sent to Ann\n"
    assert told(session) == ["send_email", "search_tools"]


async def test_found_tools_of_one_session_are_hidden_from_another() -> None:
    registry = ToolRegistry()
    for tool in TOOLS:
        registry.register(tool)
    registry.configure(tool_search=["now"])
    one, other = Session(registry, protocol="openai"), Session(registry, protocol="openai")
    await one.turn(openai("search_tools", query="email"))
    assert (told(one), told(other)) == (["send_email", "now", "search_tools"], ["now", "search_tools"])


def test_a_session_has_its_own_idea_of_what_is_always_told() -> None:
    registry = ToolRegistry()
    for tool in TOOLS:
        registry.register(tool)
    registry.configure(tool_search=["now"])
    assert told(Session(registry, always=["read_*", "send_email"])) == ["send_email", "read_calendar", "search_tools"]
    assert told(Session(registry)) == ["now", "search_tools"]


def test_the_prompt_that_forbids_what_is_not_listed_says_that_what_was_found_is() -> None:
    assert "A found tool counts as listed: call it." in str(Session(TOOLS, always=()).instructions)


def test_without_a_search_all_are_told() -> None:
    assert told(Session(TOOLS)) == ["send_email", "read_calendar", "now"]


async def test_a_denied_tool_is_neither_told_nor_found_nor_called() -> None:
    session = Session(TOOLS, protocol="openai", always=["send_email"], policy=[Rule(effect="deny", tool="send_*")])
    assert told(session) == ["search_tools"]
    assert (await session.turn(openai("search_tools", query="email"))).results[0].metadata["found"] == []
    turn = await session.turn(openai("send_email", to="Ann"))
    assert turn.results[0].failure is not None
    assert turn.results[0].failure.kind == "denied"
    open_session = Session(TOOLS, protocol="openai", always=["send_email"])
    assert (await open_session.turn(openai("search_tools", query="email"))).results[0].metadata["found"] == [
        "send_email"
    ]


async def test_code_execution_lists_what_the_session_tells_of() -> None:
    registry = ToolRegistry()
    for tool in TOOLS:
        registry.register(tool)
    registry.enable_code_execution()
    session = Session(registry, protocol="openai", always=())

    def listed() -> list[str]:
        description = next(tool for tool in session.tools if tool.name == "code_execution").description
        return [tool.__name__ for tool in TOOLS if f"- {tool.__name__}(" in description]

    assert listed() == []
    await session.turn(openai("code_execution", code="search_tools('mail')"))
    assert listed() == ["send_email"]
    assert "- send_email(" in registry.get_tool("code_execution").description


async def test_the_latest_found_stay_told() -> None:
    registry = ToolRegistry()
    for number in range(REMEMBERED_LIMIT + 1):
        registry.register(now, name=f"clock{number}x")
    session = Session(registry, protocol="openai", always=())
    for number in range(REMEMBERED_LIMIT):
        await session.turn(openai("search_tools", query=f"clock{number}x", limit=1))
    assert len(told(session)) == REMEMBERED_LIMIT + 1
    await session.turn(openai("search_tools", query="clock0x", limit=1))
    await session.turn(openai("search_tools", query=f"clock{REMEMBERED_LIMIT}x", limit=1))
    assert (len(told(session)), "clock0x" in told(session), "clock1x" in told(session)) == (
        REMEMBERED_LIMIT + 1,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("send_mail", "always names 'send_mail', and there is no such tool; did you mean 'send_email'?"),
        ("zzz*", "always names 'zzz*', and there is no such tool"),
    ],
)
def test_a_name_that_is_not_there_is_an_error(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Session(TOOLS, always=[name])
    assert str(caught.value) == message


def test_names_may_come_from_an_iterator() -> None:
    assert told(Session(TOOLS, always=iter(["now"]))) == ["now", "search_tools"]
