"""A model that calls a tool until it can answer. Run: GEMINI_API_KEY=... python examples/gemini_agent.py "a question"

Needs: pip install toolwire google-genai
"""

import sys
from typing import Any

from google import genai

from toolwire import Session


def weather(city: str) -> dict[str, str | int]:
    """Looks up today's weather in a city."""
    return {"city": city, "sky": "clear", "celsius": 21}


def answer(question: str, model: str = "gemini-3.8-flash") -> str:
    client, session = genai.Client(), Session([weather], protocol="gemini")
    contents: list[Any] = [{"role": "user", "parts": [{"text": question}]}]
    for _ in range(10):
        # Google's SDK names types of Pillow, which need not be installed.
        response = client.models.generate_content(  # pyright: ignore[reportUnknownMemberType]
            model=model, contents=contents, config={"tools": session.request_tools}
        )
        turn = session.run_turn(response)
        if turn.answer is not None:
            return turn.answer
        contents += [turn.reply.message, *turn.messages]
    return "No answer after 10 turns."


if __name__ == "__main__":
    print(answer(" ".join(sys.argv[1:]) or "What is the weather in Oslo?"))
