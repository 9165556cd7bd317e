import json
from pathlib import Path

from toolwire import Session


def weather(city: str) -> str:
    """Looks up today's weather in a city."""
    return f"clear in {city}, 21 degrees"


response = json.loads(Path(__file__).with_name("openai_response.json").read_text())
turn = Session([weather], protocol="openai").run_turn(response)
for message in turn.messages:
    print(message)
