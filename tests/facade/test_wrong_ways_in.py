"""Slips of a first hour that look like success, or raised another library's error: each says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolwire import ConfigurationError, MCPClient, Store, Toolkit, ToolRegistry


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a toolkit of functions": (lambda: Toolkit([add]), r"write Session\(\[\.\.\.\]\) for a list of tools"),
    "a toolkit of a number": (lambda: Toolkit(5), "the first argument is the agent's name"),
    "a store by its class": (lambda: Store("sqlite:///x.db"), r"write Store\.open\(url\)"),
    "a client by its URL": (lambda: ToolRegistry().register_mcp_client("http://x"), "give an MCPClient, such as"),
    "a registry as a server": (lambda: MCPClient.in_memory("x", ToolRegistry()), r"ToolServer\(\.\.\.\)\.in_memory"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_slip_is_an_error_that_says_what_to_write(name: str) -> None:
    make, said = WRONG[name]
    with pytest.raises(ConfigurationError, match=said):
        make()
