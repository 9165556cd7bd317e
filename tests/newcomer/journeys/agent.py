# pip install toolwire openai
"""An agent at a terminal: its words appear as they come, and a person approves each payment."""

import sys
from typing import Any

from openai import OpenAI

from toolwire import Session
from toolwire.approvals import console_approver
from toolwire.protocols import TextDelta


def balance(account: str) -> int:
    """Looks up the balance of an account in euros."""
    return {"rent": 900, "food": 120}[account]


def pay(account: str, euros: int) -> str:
    """Pays from an account.

    Args:
        account: Its name
        euros: How much
    """
    return f"paid {euros} euros from {account}"


client = OpenAI()
session = Session([balance, pay], protocol="openai", permissions={"pay": "confirm"}, approver=console_approver)
messages: list[Any] = [{"role": "user", "content": sys.argv[1]}]
while True:
    chunks = client.chat.completions.create(
        model="gpt-5.4-mini", messages=messages, tools=session.request_tools, stream=True
    )
    reply = session.stream()
    for chunk in chunks:
        for event in reply.feed(chunk):
            if isinstance(event, TextDelta):
                print(event.text, end="", flush=True)
    turn = session.run_turn(reply.reply())
    if turn.is_final:
        break
    messages += [turn.reply.message, *turn.messages]
print()
