"""Calls and results at random, in the messages of each provider: its strict server takes all of them.

Run: python -m benchmarks.fuzz_outgoing [turns of each API]. The suite runs the first 400 of each.
"""

from __future__ import annotations

import sys

from tests.protocols.outgoing_histories import APIS, refusal

TURNS = 10_000


def main(turns: int) -> int:
    """Returns the number of turns that were refused, each of which is printed."""
    refused = 0
    for api in APIS:
        for seed in range(turns):
            if said := refusal(api, seed):
                refused += 1
                print(f"{api} {seed}: {said}")
        print(f"{api}: {turns:,} turns")
    return refused


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS)))
