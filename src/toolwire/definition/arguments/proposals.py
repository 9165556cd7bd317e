"""Proposals of another value for a wrong one. A model reads a proposal only if the tool's own check takes it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, cast

from toolwire.definition.shape import ArgumentProblem, Invalid

UNSHOWN_LIMIT = 100
"""Problems that are not shown beside which proposals are tried. Checking thousands of problems again is costly."""

PROPOSAL_LIMIT_BYTES = 450
"""Maximum size of a proposal in a message: a text of 100 characters, quoted."""

Values = dict[str, Any] | Invalid
"""The result of reading arguments."""

LEFT_OUT: Final = object()
"""The proposal to leave an argument out."""

_TEXTS = ("an array of string", "an array of one of '")
"""How an expected list of texts begins."""
_LISTED_CHARACTERS = 100
"""Maximum length of a text that is shown once more, as a list."""
_WORDS_FOR_NOTHING = frozenset({"", "null", "none", "nil", "undefined"})


def proposals_for(given: str, wanted: str) -> Iterator[Any]:
    """Yields the values that a text may stand for where another type belongs. `wanted` is from `describe_one_value`."""
    if given.strip().casefold() in _WORDS_FOR_NOTHING:
        yield None
        yield LEFT_OUT
    elif wanted.startswith(_TEXTS) and _is_item(given):
        # Commas separate known values alone.
        pieces = [piece.strip() for piece in given.split(",")]
        yield pieces if " of one of " in wanted else [given]


def _is_item(given: str) -> bool:
    return len(given) <= _LISTED_CHARACTERS and not given.startswith(("[", "{")) and any(map(str.isalnum, given))


def add_proposals(values: Values, given: dict[str, Any], read: Callable[[dict[str, Any]], Values]) -> Values:
    """Adds the proposals that `read` takes to the messages of the problems. Right values stay as they are.

    `values` is what `read` made of `given`. It is called again at most twice, and not beside more than
    `UNSHOWN_LIMIT` problems that are not shown: they would stay, and hide whether a proposal is right.
    """
    if not isinstance(values, Invalid) or values.more > UNSHOWN_LIMIT:
        return values
    problems = list(values.problems)
    for number in range(max(len(problem.proposals) for problem in problems)):
        proposed = {
            at: problem.proposals[number]
            for at, problem in enumerate(problems)
            if len(problem.proposals) > number and (number == 0 or problem is values.problems[at])
        }
        changed: Any = given
        for at, value in proposed.items():
            changed = _with_value(changed, problems[at].place, value)
        try:
            found = read(changed)
        except Exception:  # noqa: BLE001 - validators are the author's code, and a proposal is only a guess
            return values
        for at, value in proposed.items():
            if _is_right(problems[at], found):
                problems[at] = _with_advice(problems[at], value)
    return replace(values, problems=tuple(problems))


def _is_right(problem: ArgumentProblem, found: Values) -> bool:
    if not isinstance(found, Invalid):
        return True
    # Problems that are not listed may be at this place.
    is_listed = not found.more and not found.is_partial
    return is_listed and not any(
        not other.path or other.path == problem.path or other.path.startswith((f"{problem.path}.", f"{problem.path}["))
        for other in found.problems
    )


def _with_advice(problem: ArgumentProblem, value: Any) -> ArgumentProblem:
    advice = "leave it out" if value is LEFT_OUT else f"write {_show_forms(value)}"
    return replace(problem, message=f"{problem.message.removesuffix('.')}: {advice}.", proposals=())


def _show_forms(value: Any) -> str:
    """Returns the value as JSON. A text with commas, as the one item of a list, may also be several items."""
    text = json.dumps(value, ensure_ascii=False)
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if len(items) != 1 or not isinstance(items[0], str) or "," not in items[0]:
        return text
    pieces = [piece.strip() for piece in items[0].split(",")]
    return f"{json.dumps(pieces, ensure_ascii=False)}, or {text} if it is one item"


def _with_value(holder: Any, place: tuple[str | int, ...], value: Any) -> Any:
    """Returns a copy of the object or list with another value at the place. Only what leads there is copied."""
    step, below = place[0], place[1:]
    found: Any = copy.copy(holder)
    if isinstance(found, tuple):
        found = list(cast("tuple[Any, ...]", found))
    if below:
        found[step] = _with_value(found[step], below, value)
    elif value is not LEFT_OUT:
        found[step] = value
    elif isinstance(found, dict):
        del found[step]
    return cast("Any", found)
