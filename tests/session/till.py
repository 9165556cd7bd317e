"""A shop's till for tests of suspended turns: tools that record their effects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolwire import Session, ToolSpec
from toolwire.session.runs.resume import RunStore


class Till:
    """The payments and look-ups, in order."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.asked: list[str] = []

    def pay(self, amount: int, to: str = "shop") -> str:
        """Pays."""
        self.paid.append(amount)
        return f"paid {amount} to {to}"

    def price(self, thing: str) -> int:
        """The price of a thing."""
        self.asked.append(thing)
        return len(thing)

    def session(self, store: RunStore | None, **options: Any) -> Session:
        """A session of this till, as a process that has just started would make it."""
        tools = [ToolSpec.from_function(self.pay, permission="confirm"), self.price]
        return Session(tools, protocol=options.pop("protocol", "openai"), store=store, **options)


def calls(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A model's message with these calls, as OpenAI's API gives it."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for place, (name, arguments) in enumerate(made, 1)
        ],
    }


def program(code: str) -> str:
    """A reply that runs this program."""
    return f"thought = \"Go.\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"go\"\ncode = '''\n{code}\n'''\n"


def texts(messages: Sequence[Any]) -> list[str]:
    """The texts that the model reads, call by call."""
    return [message["content"] for message in messages]
