"""Damaged replies for every calling format: nothing raises, and a stream in any pieces gives the same reading as the
whole text.

Run: python -m benchmarks.fuzz [seconds] [seed]. The suite runs a short form of it.
"""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.fuzzing import run
from toolwire import ToolCall, ToolSpec, protocols

RECORDED = Path(__file__).parents[1] / "tests" / "protocols" / "recorded"
TEXTS = ("attp", "xml", "json")
PIECES = (
    "<",
    ">",
    "]]>",
    "<![CDATA[",
    "'''",
    '"""',
    "```",
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    "\n",
    "</think>",
    "\ud800",
    "{}",
)


def search(query: str, limit: int = 10, tags: list[str] | None = None) -> list[str]:
    """Searches.

    Args:
        query: What to look for
        limit: How many at most
        tags: Words that all must have
    """
    return [query] * limit + (tags or [])


TOOLS = [ToolSpec.from_function(search)]


def fuzz(count: int, seed: int) -> int:
    """How many calls were read out of `count` damaged replies. Raises for the first reply that breaks a rule."""
    chance = random.Random(seed)
    texts = _texts()
    calls = 0
    for _ in range(count):
        reply = _damaged(chance.choice(texts), chance)
        for name in TEXTS:
            calls += _check(name, reply, chance)
    return calls


def _texts() -> list[str]:
    recorded = [path.read_text("utf-8") for path in sorted(RECORDED.glob("*.txt"))]
    call = ToolCall("search", {"query": "a <b> & 'c' \"d\" ]]> 中文", "limit": 3, "tags": ["x", "y"]})
    return recorded + [str(protocols.get(name).render([call])) for name in TEXTS]


def _damaged(text: str, chance: random.Random) -> str:
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(text) + 1)
        end = min(len(text), place + chance.randrange(1, 12))
        kind = chance.randrange(4)
        if kind == 0:
            text = text[:place] + chance.choice(PIECES) + text[place:]
        elif kind == 1:
            text = text[:place] + text[end:]
        elif kind == 2:
            text = text[:place] + text[place:end] * 2 + text[end:]
        else:
            text = text[:place]
    return text


def _check(name: str, reply: str, chance: random.Random) -> int:
    protocol = protocols.get(name)
    whole = protocol.parse(reply, TOOLS)
    stream = protocol.stream(TOOLS)
    place = 0
    while place < len(reply):
        step = chance.randrange(1, 40)
        stream.feed(reply[place : place + step])
        place += step
    if stream.reply() != whole:
        raise AssertionError(f"{name} reads other calls from pieces than from the whole of {reply!r}")
    return len(whole.calls)


def main() -> None:
    """Fuzzes for a minute unless told otherwise; prints how much it tried."""
    tried, seed, calls = run(fuzz, count=100, seconds=60)
    print(f"{tried:,} replies in {len(TEXTS)} formats from seed {seed}: {calls:,} calls read, no rule broken")


if __name__ == "__main__":
    main()
