"""Tools and checks that the tests of agents share."""

from __future__ import annotations

from typing import Any

from toolwire import ToolSpec


class Bank:
    """A tool that pays, and what it has paid."""

    def __init__(self, permission: Any = "auto") -> None:
        self.paid: list[int] = []
        self.tools = [ToolSpec.from_function(self.pay, permission=permission)]

    def pay(self, amount: int) -> int:
        """Pays an amount."""
        self.paid.append(amount)
        return amount


def calls(name: str, **arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    """A reply of one call, for `ScriptedModel`."""
    return [(name, arguments)]


def conversation_is_well_formed(messages: list[Any]) -> None:
    """Fails unless each call of OpenAI's chat has one result behind it, and each result a call."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == [], message
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
    assert waiting == []
