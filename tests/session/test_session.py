"""`Session`: takes a reply, and returns the text that the model reads next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolwire import ConfigurationError, Decision, Rule, Session, ToolRegistry


def look_up(word: str) -> list[str]:
    """Looks a word up."""
    return [word, word.upper()]


async def look_up_later(word: str) -> list[str]:
    """Looks a word up, later."""
    return [word]


def reply(code: str) -> str:
    return f"thought = \"Look.\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"look\"\ncode = '''\n{code}\n'''\n"


def refuse() -> int:
    """Always fails."""
    raise FileNotFoundError("gone")


ENDING = "If this answers the request, reply with the answer in plain text."


async def test_a_program_runs_and_its_output_is_what_the_model_reads() -> None:
    turn = await Session([look_up]).turn(reply("for word in ['a', 'b']:\n    print(look_up(word))"))
    assert turn.messages == [{"role": "user", "content": f"['a', 'A']\n['b', 'B']\n{ENDING}"}]
    assert turn.text == "['a', 'A']\n['b', 'B']\n"
    assert [result.success for result in turn.results] == [True]


async def test_output_comes_before_the_result() -> None:
    turn = await Session([look_up]).turn(reply("print('seen')\n__result__ = look_up('a')"))
    assert turn.text == 'seen\n["a", "A"]'


async def test_async_tools_run_in_programs() -> None:
    turn = await Session([look_up, look_up_later]).turn(reply("print(look_up_later('a'), look_up('b'))"))
    assert turn.text == "['a'] ['b', 'B']\n"


async def test_a_caught_tool_exception_has_its_own_name() -> None:
    code = "try:\n    refuse()\nexcept FileNotFoundError as error:\n    print('caught', error)"
    assert (await Session([refuse]).turn(reply(code))).text == "caught gone\n"


async def test_a_refused_reply_runs_nothing_and_says_why() -> None:
    turn = await Session([look_up]).turn("x = 1: this is no <TOML>")
    assert turn.results == ()
    assert turn.reply.is_refused
    assert len(turn.messages) == 1


async def test_a_fail_reply_ends_without_a_message() -> None:
    turn = await Session([look_up]).turn('thought = "No."\n\n[tool_call]\nstatus = "fail"\nmessage = "I cannot."\n')
    assert (turn.reply.failure, turn.results, turn.messages) == ("I cannot.", (), [])


async def test_permissions_override_a_tools_default() -> None:
    session = Session([look_up], permissions={"look_up": "confirm"})
    turn = await session.turn(reply("look_up('a')"))
    assert turn.results[0].success is False
    assert "a person has to allow it" in turn.text


async def test_an_approver_is_asked_for_calls_of_programs() -> None:
    session = Session(
        [look_up], permissions={"look_up": "confirm"}, approver=lambda request: Decision(verdict="approve")
    )
    assert (await session.turn(reply("print(look_up('a'))"))).text == "['a', 'A']\n"


async def test_a_denied_tool_is_not_in_the_instructions() -> None:
    session = Session([look_up, refuse], policy=[Rule(effect="deny", tool="refuse")])
    assert "def look_up" in session.instructions
    assert "def refuse" not in session.instructions


def test_permissions_for_a_tool_that_is_not_there_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="permissions name 'lookup', and there is no such tool; did you mean"):
        Session([look_up], permissions={"lookup": "deny"})


@pytest.mark.parametrize("tools", [len, "len", {"len": len}, None], ids=repr)
def test_tools_that_are_not_a_list_are_an_error_that_says_what_to_give(tools: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Session(tools)
    assert str(refused.value) == f"Session(tools={tools!r}): give a list of tools, a ToolRegistry or a Toolkit"


def test_an_unknown_protocol_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ConfigurationError, match="attp"):
        Session([look_up], protocol="morse")


async def test_a_session_of_a_registry_uses_its_rules_and_log() -> None:
    registry = ToolRegistry(rules=[Rule(effect="deny", tool="refuse")])
    registry.register(look_up)
    registry.register(refuse)
    log = registry.enable_logging()
    await Session(registry).turn(reply("look_up('a')\ntry:\n    refuse()\nexcept ToolDenied:\n    pass"))
    entries = log.get_entries()
    assert [(entry.tool_name, entry.status) for entry in entries] == [
        ("code_execution", "success"),
        ("refuse", "denied"),
        ("look_up", "success"),
    ]
    assert entries[1].invocation_id == entries[2].invocation_id
    assert entries[1].invocation_id.startswith("tr_ptc_")
    assert entries[1].parent == entries[2].parent == entries[0].id
    assert registry.get_tool("code_execution") is None


async def test_a_session_of_a_toolkit_has_its_tools_alone() -> None:
    registry = ToolRegistry()
    registry.register(look_up)
    registry.register(refuse)
    toolkit = registry.create_agent_toolkit("reader", ["look_up"])
    assert [tool.name for tool in Session(toolkit).tools] == ["look_up"]


@pytest.mark.parametrize("protocol", ["attp", "xml", "json", "openai", "openai-responses", "anthropic", "gemini"])
async def test_plain_prose_ends_in_every_format_and_is_the_answer(protocol: str) -> None:
    turn = await Session([look_up], protocol=protocol).turn("There are two words.")
    assert (turn.is_final, turn.answer, turn.messages) == (True, "There are two words.", [])


async def test_a_turn_that_calls_fails_to_read_or_gives_up_says_whether_it_is_final() -> None:
    session = Session([look_up])
    assert (await session.turn(reply("look_up('a')"))).is_final is False
    refused = await session.turn("<tool_call>")
    assert (refused.is_final, refused.answer) == (False, None)
    failed = await session.turn('thought = "No."\n\n[tool_call]\nstatus = "fail"\nmessage = "I cannot."\n')
    assert (failed.is_final, failed.answer) == (True, "I cannot.")


def test_a_text_protocol_has_a_system_prompt_and_a_native_one_has_request_tools() -> None:
    text, native = Session([look_up]), Session([look_up], protocol="openai")
    assert text.system_prompt == text.instructions
    assert native.request_tools == native.instructions
    with pytest.raises(ConfigurationError, match=r"'openai' has no system prompt: give session[.]request_tools to the"):
        _ = native.system_prompt
    with pytest.raises(ConfigurationError, match=r"'attp' has no request tools: give session[.]system_prompt to the"):
        _ = text.request_tools


def test_blocking_code_takes_a_turn_and_so_does_code_inside_of_an_event_loop() -> None:
    session = Session([look_up], protocol="xml")
    call = "<tool_call><name>look_up</name><params><word>a</word></params></tool_call>"

    async def notebook() -> object:
        return session.run_turn(call).results[0].data

    assert (session.run_turn(call).results[0].data, asyncio.run(notebook())) == (["a", "A"], ["a", "A"])
