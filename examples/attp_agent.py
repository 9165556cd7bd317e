"""A model that writes Python programs, which call the tools. Any chat model will do, also a small local one.

Needs: pip install toolwire openai. For a local server: OPENAI_BASE_URL=http://localhost:8080/v1 OPENAI_API_KEY=none
"""

import sys
from typing import Any

from openai import OpenAI

from toolwire import Session


def weather(city: str) -> dict[str, str | int]:
    """Looks up today's weather in a city."""
    return {"city": city, "sky": "clear", "celsius": 21}


def answer(question: str, model: str = "gpt-5.4-mini") -> str:
    client, session = OpenAI(), Session([weather], protocol="attp")
    system = {"role": "system", "content": session.system_prompt}
    messages: list[Any] = [system, {"role": "user", "content": question}]
    for _ in range(10):
        response = client.chat.completions.create(model=model, messages=messages)
        turn = session.run_turn(response.choices[0].message.content)
        if turn.answer is not None:
            return turn.answer
        messages += [{"role": "assistant", "content": turn.reply.message}, *turn.messages]
    return "No answer after 10 turns."


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "What is the weather in Oslo?"))
