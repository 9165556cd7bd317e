"""Native replies at random, whole and as streams: both have one reading, and a stream that breaks off runs nothing.

Run: python -m benchmarks.fuzz_streams [cases of each API]. The suite runs the first 300 cases of each.
"""

from __future__ import annotations

import sys
from random import Random

from tests.protocols.streamed_replies import broken_difference, difference, streamed_reply

CASES = 20_000
APIS = ("openai", "openai-responses", "anthropic", "gemini")


def main(cases: int) -> int:
    """Returns the number of cases with a difference, each of which is printed."""
    found = 0
    for name in APIS:
        random = Random(name)
        refused = 0
        for seed in range(cases):
            case = streamed_reply(name, seed)
            refused += not case.is_plain
            said = difference(case) or broken_difference(case, random.randrange(len(case.pieces)))
            if said:
                found += 1
                print(f"{name} {seed}: {said}")
        print(f"{name}: {cases} cases, {cases - refused} of them in a form that must be read")
    return found


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES)))
