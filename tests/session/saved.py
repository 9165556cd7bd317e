"""The tools that the saved runs under `fixtures/saved` call. Tools may be added; the existing ones must stay, or the
saved runs can no longer be resumed."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from tests.session.till import calls, program
from toolwire import Session, ToolSpec
from toolwire.session.runs.resume import RunStore

FOLDERS = Path(__file__).parent / "fixtures" / "saved"
KEY = bytes(32)
THREE = """
total = 0
for thing in ["tea", "bread", "oranges"]:
    amount = price(thing)
    total += amount
    print(thing, pay(amount))
__result__ = total
"""
REPLIES: dict[str, Any] = {
    "one request": calls(("pay", {"amount": 5}), ("price", {"thing": "tea"})),
    "several requests": calls(*(("pay", {"amount": amount}) for amount in (5, 6, 7)), ("price", {"thing": "tea"})),
    "partly decided": calls(("pay", {"amount": 1}), ("pay", {"amount": 2}), ("price", {"thing": "tea"})),
    "approved": calls(("pay", {"amount": 8})),
    "edited": calls(("pay", {"amount": 500})),
    "denied": calls(("pay", {"amount": 900})),
    "finished": calls(("pay", {"amount": 3})),
    "crashed": calls(("pay", {"amount": 9})),
    "a program": program(THREE),
    "a program with parallel calls": program(
        "import asyncio\nprint(await asyncio.gather(pay(1), pay(2), price('tea')), random.random() < 2)"
    ),
}
PROGRAMS = frozenset({"a program", "a program with parallel calls"})


class Counter:
    """A shop's counter: its actual payments and look-ups, in order."""

    def __init__(self, *, dies: bool = False) -> None:
        self.paid: list[int] = []
        self.asked: list[str] = []
        self._dies = dies

    def pay(self, amount: int, to: str = "shop") -> str:
        """Pays."""
        if self._dies:
            os.kill(os.getpid(), signal.SIGKILL)
        self.paid.append(amount)
        return f"paid {amount} to {to}"

    def price(self, thing: str) -> int:
        """The price of a thing."""
        self.asked.append(thing)
        return len(thing)

    def session(self, store: RunStore, name: str, **options: Any) -> Session:
        """A session that may go on with the run of that name."""
        tools = [ToolSpec.from_function(self.pay, permission="confirm", effects=["spend"]), self.price]
        return Session(tools, protocol="attp" if name in PROGRAMS else "openai", store=store, **options)
