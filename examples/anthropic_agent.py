"""A model that calls a tool until it can answer. Run: ANTHROPIC_API_KEY=... python examples/anthropic_agent.py "..."

Needs: pip install toolwire anthropic
"""

import sys
from typing import Any

from anthropic import Anthropic

from toolwire import Session


def weather(city: str) -> dict[str, str | int]:
    """Looks up today's weather in a city."""
    return {"city": city, "sky": "clear", "celsius": 21}


def answer(question: str, model: str = "claude-sonnet-5-5") -> str:
    client, session = Anthropic(), Session([weather], protocol="anthropic")
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(10):
        response = client.messages.create(model=model, max_tokens=1024, messages=messages, tools=session.request_tools)
        turn = session.run_turn(response)
        if turn.answer is not None:
            return turn.answer
        messages += [turn.reply.message, *turn.messages]
    return "No answer after 10 turns."


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "What is the weather in Oslo?"))
