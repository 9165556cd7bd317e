"""Finds the known name that is most similar to a misspelt one."""

from collections.abc import Iterable

_LONGEST = 60


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns the known name that differs least from `name`; empty when none is close.

    Close means that at most a third of its letters (at least one) are inserted, dropped, replaced or swapped with a
    neighbour. Upper and lower case and underscores do not count.
    """
    wanted = _bare(name)
    best, best_cost = "", len(wanted) // 3 + 1
    if len(wanted) < 3:
        best_cost = 2
    for candidate in known:
        bare = _bare(candidate)
        cost = 0 if bare == wanted else _distance(wanted[:_LONGEST], bare[:_LONGEST], best_cost)
        if cost < best_cost and candidate != name:
            best, best_cost = candidate, cost
    return best


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


def _distance(first: str, second: str, enough: int) -> int:
    """Returns the edits between both, a swap of neighbours as one; stops at `enough`."""
    if abs(len(first) - len(second)) >= enough:
        return enough
    before: list[int] = []
    row = list(range(len(second) + 1))
    for place, letter in enumerate(first, 1):
        last, before, row = before, row, [place]
        for column, other in enumerate(second, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != other))
            if place > 1 < column and letter == second[column - 2] and first[place - 2] == other:
                cost = min(cost, last[column - 2] + 1)
            row.append(cost)
        if min(row) >= enough:
            return enough
    return row[-1]
