"""Replies in every form that is read, with one mark deleted, doubled or moved: no other arguments, and no lost call.

Run: python -m benchmarks.fuzz_marks [seconds] [seed]. The suite runs a short form of it.
"""

from __future__ import annotations

from tests.protocols.token_damages import FORMS, check_damages

from benchmarks.fuzzing import run


def main() -> None:
    """Fuzzes for two minutes unless told otherwise; prints how much it tried."""
    tried, seed, calls = run(check_damages, count=100, seconds=120)
    print(f"{tried:,} replies in {len(FORMS)} forms from seed {seed}: {calls:,} calls read, no rule broken")


if __name__ == "__main__":
    main()
