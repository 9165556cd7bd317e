"""The sessions that an adapter keeps open."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from toolwire import ConfigurationError, Store
from toolwire.frameworks import keyed_calls
from toolwire.frameworks.keyed_calls import Sessions
from toolwire.frameworks.langchain import langchain_tools
from toolwire.frameworks.openai_agents import function_tools
from toolwire.frameworks.pydantic_ai import ToolwireToolset


def test_the_session_that_was_used_longest_ago_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_calls, "SESSIONS", 2)
    with Store.open("memory:") as store:
        sessions = Sessions([], store, {})
        first, second = sessions.of("a"), sessions.of("b")
        assert [sessions.of("b"), sessions.of("a")] == [second, first]
        sessions.of("c")
        assert sessions.of("a") is first
        assert sessions.of("b") is not second


async def test_an_open_session_is_found_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open("memory:") as store:
        sessions = Sessions([], store, {})
        made = await sessions.wait_for("a")
        monkeypatch.setattr(keyed_calls.asyncio, "to_thread", None)
        assert await sessions.wait_for("a") is made


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def test_each_conversation_has_the_tools_of_a_generator() -> None:
    with Store.open("memory:") as store:
        sessions = Sessions((tool for tool in [add]), store, {"always": (name for name in ["add"])})
        offered = [[tool.name for tool in sessions.of(name).tools] for name in ("a", "b")]
        assert offered == [["add", "search_tools"]] * 2


MADE = pytest.mark.parametrize("made", [ToolwireToolset, langchain_tools, partial(function_tools, conversation="c-1")])


@MADE
def test_wrong_tools_and_values_are_refused_where_the_tools_are_made(made: Any, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/runs.db"
    with pytest.raises(ConfigurationError, match=r"Session\(tools=<function add .*give a list of tools"):
        made(add, store=store)
    with pytest.raises(ConfigurationError, match=r"the policy file nowhere\.toml cannot be read"):
        made([add], store=store, policy="nowhere.toml")
    assert list(tmp_path.iterdir()) == []


def test_the_sdk_without_a_conversation_is_refused() -> None:
    given: Any = None
    with Store.open("memory:") as store, pytest.raises(ConfigurationError, match="such as conversation='c-17'"):
        function_tools([add], store=store, conversation=given)


@MADE
def test_an_unknown_option_is_refused_at_once_with_a_near_one(made: Any) -> None:
    with Store.open("memory:") as store:
        with pytest.raises(
            ConfigurationError, match=r"permission=\{\}: .* no such option; did you mean 'permissions'\?"
        ):
            made([], store=store, permission={})
        with pytest.raises(ConfigurationError, match=r"colour='red': there is no such option$"):
            made([], store=store, colour="red")
        made([], store=store, permissions={})
