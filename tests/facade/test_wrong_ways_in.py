"""Slips of a first hour that look like success, or raised another library's error: each says what to write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ConfigurationError, MCPClient, Session, Store, Toolkit, ToolRegistry, ToolSpec


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def untyped(value: object) -> Any:
    """A value that a type checker would refuse."""
    return value


def adding() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(add)
    return registry


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a toolkit of functions": (lambda: Toolkit([add]), r"write Session\(\[\.\.\.\]\) for a list of tools"),
    "a toolkit of a number": (lambda: Toolkit(5), "the first argument is the agent's name"),
    "a store by its class": (lambda: Store("sqlite:///x.db"), r"write Store\.open\(url\)"),
    "a client by its URL": (lambda: ToolRegistry().register_mcp_client("http://x"), "give an MCPClient, such as"),
    "a registry as a server": (lambda: MCPClient.in_memory("x", ToolRegistry()), r"ToolServer\(\.\.\.\)\.in_memory"),
    "a call with a provider's text": (
        lambda: adding().invoke("add", untyped('{"a": 1}')),
        r"decoded by json\.loads\(\.\.\.\)",
    ),
    "a call with a list": (
        lambda: adding().invoke("add", untyped([1, 2])),
        "give a mapping of names to values, such as",
    ),
    "a call of an unknown tool with a text": (
        lambda: adding().invoke("ad", untyped("a=1")),
        "a call of 'ad' with 'a=1'",
    ),
    "a call of a function": (lambda: adding().invoke(untyped(add), {"a": 1}), "give the name of the tool as text"),
    "a toolkit's call of a function": (
        lambda: asyncio.run(Toolkit("ann").execute_tool(untyped(add), {"a": 1})),
        "give the name of the tool as text",
    ),
    "a toolkit's call with a text": (
        lambda: asyncio.run(Toolkit("ann").execute_tool("add", untyped('{"a": 1}'))),
        r"decoded by json\.loads",
    ),
    "an owner's call with a text": (lambda: ToolSpec.from_function(add).run(untyped('{"a": 1}')), "a mapping of names"),
    "a program of bytes": (lambda: adding().run_program(untyped(b"1")), "give the source text of a program"),
    "limits of a program as a dict": (lambda: adding().run_program("1", limits=untyped({})), r"Limits\(deadline_s="),
    "limits of programs as a number": (
        lambda: adding().enable_code_execution(limits=untyped(5)),
        r"Limits\(deadline_s=30\)",
    ),
    "limits of a session as a number": (
        lambda: Session([add], limits=untyped(5)),
        r"write limits=Limits\(deadline_s=30\)",
    ),
    "limits without programs": (
        lambda: Session([add], protocol="xml", limits=untyped(5)),
        r"limits=Limits\(deadline_s=30\)",
    ),
    "no protocol": (lambda: Session([add], protocol=untyped(None)), "there is no protocol None: write one of 'attp'"),
    "a list as a protocol": (
        lambda: Session([add], protocol=untyped(["xml"])),
        r"there is no protocol \['xml'\]: write one of",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_slip_is_an_error_that_says_what_to_write(name: str) -> None:
    make, said = WRONG[name]
    with pytest.raises(ConfigurationError, match=said):
        make()
