"""A model that calls a tool until it can answer. Run: OPENAI_API_KEY=... python examples/openai_agent.py "a question"

Needs: pip install toolwire openai
"""

import sys
from typing import Any

from openai import OpenAI

from toolwire import Session


def weather(city: str) -> dict[str, str | int]:
    """Looks up today's weather in a city."""
    return {"city": city, "sky": "clear", "celsius": 21}


def answer(question: str, model: str = "gpt-5.4-mini") -> str:
    client, session = OpenAI(), Session([weather], protocol="openai")
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(10):
        response = client.chat.completions.create(model=model, messages=messages, tools=session.request_tools)
        turn = session.run_turn(response)
        if turn.answer is not None:
            return turn.answer
        messages += [turn.reply.message, *turn.messages]
    return "No answer after 10 turns."


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "What is the weather in Oslo?"))
