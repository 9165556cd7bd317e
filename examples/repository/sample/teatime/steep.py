"""Looking a tea up."""

from typing import NamedTuple

from teatime.leaves import LEAVES

SECONDS_MORE = 10


class Steeping(NamedTuple):
    """One steeping of a pot."""

    celsius: int
    seconds: int


def steep(leaf: str, again: int = 0) -> Steeping:
    """How to steep a tea; `again` counts the steepings that its leaves have behind them."""
    celsius, seconds, times = LEAVES[leaf.casefold()]
    if again >= times:
        raise ValueError(f"{leaf} can be steeped {times} times")
    # TODO: green teas want less time at first, not more.
    return Steeping(celsius=celsius, seconds=seconds + again * SECONDS_MORE)
