# pip install toolwire openai
"""A local model, as Ollama, llama.cpp or vLLM serve it: it writes programs in plain text, and needs no tool calling."""

import sys
from typing import Any

from openai import OpenAI

from toolwire import Limits, Session


def sales(month: str) -> list[dict[str, Any]]:
    """Lists the sales of a month.

    Args:
        month: As 2026-03
    """
    return [{"book": "Emma", "copies": 4}, {"book": "Dune", "copies": len(month)}]


client = OpenAI(base_url=sys.argv[1], api_key="none")
session = Session([sales], style="compact", on_unreadable="note", limits=Limits(deadline_s=20))
messages: list[Any] = [
    {"role": "system", "content": session.system_prompt},
    {"role": "user", "content": "How many copies did we sell in March 2026?"},
]
for _ in range(10):
    response = client.chat.completions.create(model="qwen3", messages=messages)
    turn = session.run_turn(response.choices[0].message.content)
    if turn.is_final:
        print(turn.answer)
        break
    for result in turn.results:
        print("value:", result.program_value)
    messages += [{"role": "assistant", "content": turn.reply.message}, *turn.messages]
