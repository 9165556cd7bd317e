"""`Session(ending_line=True)`: results in a native format are followed by the line that says how to end."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import ConfigurationError, Session, ToolCall, protocols
from toolwire.agent.shortening import split_history
from toolwire.protocols.base import Language
from toolwire.protocols.outgoing import ENDINGS, FINISHES
from toolwire.testing import MemoryStore

NATIVE = [name for name in protocols.names() if protocols.get(name).is_native]
TEXT = [name for name in protocols.names() if not protocols.get(name).is_native]


def look_up(word: str) -> str:
    """Looks a word up."""
    if word == "gone":
        raise FileNotFoundError("no such word")
    return word.upper()


def made(*words: str) -> list[ToolCall]:
    return [ToolCall("look_up", {"word": word}, id=f"c_{word}") for word in words]


def session(protocol: str, **options: Any) -> Session:
    return Session([look_up], protocol=protocol, **options)


def rendered(one: Session, calls: list[ToolCall]) -> Any:
    return one.protocol.render(calls)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_line_follows_results_that_succeeded(name: str, language: Language) -> None:
    one, plain = session(name, ending_line=True, language=language), session(name)
    turn = one.run_turn(rendered(one, made("a", "b")))
    without = plain.run_turn(rendered(plain, made("a", "b")))
    assert turn.messages == [*without.messages, *one.protocol.prompt(ENDINGS[language])]
    assert turn.text == without.text == "A\nB"
    failed = one.run_turn(rendered(one, made("a", "gone")))
    assert failed.messages == plain.run_turn(rendered(plain, made("a", "gone"))).messages


@pytest.mark.parametrize("name", TEXT)
def test_a_text_format_has_it_anyway(name: str) -> None:
    reply = rendered(session(name), made("a"))
    messages = [session(name, ending_line=has_line).run_turn(reply).messages for has_line in (False, True)]
    assert messages[0] == messages[1]
    assert messages[0][0]["content"].endswith(ENDINGS["en"])


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_with_a_tool_that_ends_the_line_names_it_as_it_was_offered(name: str) -> None:
    one = session(name, ending_line=True, finish="work.done")
    offered = str(one.request_tools)
    turn = one.run_turn(rendered(one, made("a")))
    assert turn.messages[-1]["content"] == FINISHES["en"].format("work_dot_done")
    assert "'work_dot_done'" in offered
    ended = one.run_turn(rendered(one, [ToolCall("work.done", {"answer": 3}, id="e")]))
    assert (ended.final, len(ended.messages)) == (3, 1)


def test_a_resumed_turn_has_the_same_line() -> None:
    store = MemoryStore()
    turn = session("openai", ending_line=True, store=store).run_turn(rendered(session("openai"), made("a")))
    again = session("openai", ending_line=True, store=store).run_resume(turn.run_id)
    assert again.messages == turn.messages
    assert turn.messages[-1] == {"role": "user", "content": ENDINGS["en"]}


@pytest.mark.parametrize("name", NATIVE)
def test_a_shortened_history_does_not_take_the_line_for_a_prompt(name: str) -> None:
    for finish in (None, "answer"):
        one = session(name, ending_line=True, finish=finish)
        turn = one.run_turn(rendered(one, made("a")))
        said = turn.reply.message if isinstance(turn.reply.message, list) else [turn.reply.message]
        history = [*one.protocol.prompt("Look a up."), *said, *turn.messages]
        assert [len(exchange.steps) for exchange in split_history(history, one.protocol, one.tools)] == [1]


def test_an_unknown_language_is_refused_and_without_the_line_any() -> None:
    with pytest.raises(ConfigurationError, match="language='fr' is unknown"):
        session("openai", ending_line=True, language="fr")
    with pytest.raises(ConfigurationError, match="native and writes no prompt"):
        session("openai", language="zh")
