"""GBNF rules for numbers within bounds. JSON and Python share them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from toolwire.protocols.grammar.rules import choice, literal

_LARGEST = 10**15 - 1
"""Largest integer in a grammar. A double cannot hold every larger integer exactly."""

_MULTIPLES = 200
"""Maximum number of multiples that a rule lists."""

_PLACES = 4
"""Number of decimal places up to which bounds are exact."""


def integer(node: Mapping[str, Any]) -> str | None:
    """Returns a rule for the integers that the schema accepts. None if it accepts none."""
    low, high = _integer_bounds(node)
    step = node.get("multipleOf")
    if step:
        return _multiples(step, low, high, whole=True)
    return _choice_of(_integers(low, high))


def number(node: Mapping[str, Any]) -> str | None:
    """Returns a rule for the numbers that the schema accepts. None if it accepts none."""
    low, high, is_low_open, is_high_open = _bounds(node)
    if node.get("multipleOf"):
        return _multiples(node["multipleOf"], *_integer_bounds(node), whole=False)
    if high is None and low in (None, 0):
        whole = '[1-9] [0-9]{0,14} ("." [0-9]{1,12})?'
        exponent = "([eE] [-+]? [0-9]{1,2})?"
        if is_low_open:
            return f'({whole} | "0." [0-9]{{0,8}} [1-9])'
        sign = '"-"? ' if low is None else ""
        return f'{sign}("0" ("." [0-9]{{1,12}})? | {whole}) {exponent}'
    low = Decimal(-_LARGEST) if low is None else low
    high = Decimal(_LARGEST) if high is None else high
    options = [f'{whole} ".0"?' for whole in _integers(*_integer_bounds(node))]
    positive = _decimals(max(low, Decimal(0)), high, is_low_open and low >= 0, is_high_open)
    negative = _decimals(max(-high, Decimal(0)), -low, is_high_open or high >= 0, is_low_open)
    return _choice_of([*options, *positive, *(f'"-" {option}' for option in negative)])


def _bounds(node: Mapping[str, Any]) -> tuple[Decimal | None, Decimal | None, bool, bool]:
    low, is_low_open = _tighter(node.get("minimum"), node.get("exclusiveMinimum"), max)
    high, is_high_open = _tighter(node.get("maximum"), node.get("exclusiveMaximum"), min)
    return low, high, is_low_open, is_high_open


def _tighter(closed: Any, open_: Any, pick: Any) -> tuple[Decimal | None, bool]:
    closed = None if isinstance(closed, bool) or closed is None else Decimal(str(closed))
    open_ = None if isinstance(open_, bool) or open_ is None else Decimal(str(open_))
    if open_ is not None and (closed is None or pick(closed, open_) == open_):
        return open_, True
    return closed, False


def _integer_bounds(node: Mapping[str, Any]) -> tuple[int, int]:
    low, high, is_low_open, is_high_open = _bounds(node)
    least = None if low is None else math.floor(low) + 1 if is_low_open else math.ceil(low)
    most = None if high is None else math.ceil(high) - 1 if is_high_open else math.floor(high)
    if least is None:
        least = -_LARGEST if most is None else min(-_LARGEST, most - _LARGEST)
    return least, max(_LARGEST, least + _LARGEST) if most is None else most


def _multiples(step: float, low: int, high: int, *, whole: bool) -> str | None:
    """The multiples nearest to zero or to the bound; where they end in digits of their own, all larger ones too."""
    size = Decimal(str(step))
    reach = size * _MULTIPLES
    first = 0 if low < -reach and high > 0 else math.floor(high / size) - _MULTIPLES + 1 if high < 0 else low / size
    found: list[str] = []
    for count in range(math.ceil(first), math.ceil(first) + _MULTIPLES):
        value = size * count
        is_exact = value == value.to_integral_value()
        # The validator divides doubles, so it does not take 0.07 for a multiple of 0.01.
        if low <= value <= high and (is_exact or (not whole and (float(value) / step).is_integer())):
            found.append(literal(str(int(value)) if is_exact else format(value, "f")))
    if high >= _LARGEST and low <= 100 and _is_divisor(100, size):
        found.append(f"[1-9] [0-9]{{0,12}} {choice([literal(f'{end:02}') for end in range(0, 100, int(size))])}")
    elif not whole and low <= 1 <= high and _is_divisor(1, size):
        found.extend(_natural(1, high))
    return _choice_of(list(dict.fromkeys(found)))


def _is_divisor(number: int, size: Decimal) -> bool:
    """True if the number is a multiple of the size, and division of doubles agrees for whole numbers."""
    count = Decimal(number) / size
    is_safe = all((whole / float(size)).is_integer() for whole in range(0, 1000, number))
    return count == count.to_integral_value() and is_safe and (number == 1 or size >= 1)


def _choice_of(options: list[str]) -> str | None:
    return choice(options) if options else None


def _integers(low: int, high: int) -> list[str]:
    found = [f'"-" {option}' for option in _natural(max(1, -high), -low)] if low < 0 else []
    return found + (_natural(max(0, low), high) if high >= 0 else [])


def _natural(low: int, high: int) -> list[str]:
    """Returns expressions for the integers from `low` (at least 0) to `high`, without leading zeros."""
    if (low, high) in ((0, _LARGEST), (1, _LARGEST)):
        return (['"0"'] if low == 0 else []) + ["[1-9] [0-9]{0,14}"]
    found: list[str] = []
    for length in range(len(str(low)), len(str(high)) + 1):
        least, most = max(low, 10 ** (length - 1) if length > 1 else 0), min(high, 10**length - 1)
        if least <= most:
            found += _digits(str(least), str(most), point=0)
    return found


def _decimals(low: Decimal, high: Decimal, is_low_open: bool, is_high_open: bool) -> list[str]:
    """Returns expressions for the numbers with a decimal point from `low` (at least 0) to `high`."""
    found: list[str] = []
    for places in range(1, _PLACES + 1):
        scale = 10**places
        least = math.floor(low * scale) + 1 if is_low_open else math.ceil(low * scale)
        most = math.ceil(high * scale) - 1 if is_high_open else math.floor(high * scale)
        # More digits may follow if even .999 stays below the upper bound.
        found += _fixed_point(least, most, places)
        if places == _PLACES:
            found += [f"{option} [0-9]{{1,8}}" for option in _fixed_point(least, math.floor(high * scale) - 1, places)]
    return found


def _fixed_point(low: int, high: int, places: int) -> list[str]:
    """Returns expressions for the integers of a range, divided by a power of ten."""
    found: list[str] = []
    for length in range(places + 1, max(len(str(high)), places + 1) + 1):
        least, most = max(low, 10 ** (length - 1) if length > places + 1 else 0), min(high, 10**length - 1)
        if least <= most:
            found += _digits(str(least).zfill(length), str(most).zfill(length), point=places)
    return found


def _digits(low: str, high: str, *, point: int) -> list[str]:
    """Returns expressions for the digits from `low` to `high`, which have equal lengths.

    A decimal point precedes the last `point` digits.
    """
    if not low:
        return [""]
    dot = '"." ' if len(low) == point else ""
    rest = len(low) - 1
    least, most = ("0" * rest, "9" * rest)
    first, last = int(low[0]), int(high[0])
    if first == last:
        return [f"{dot}{literal(low[0])} {option}".strip() for option in _digits(low[1:], high[1:], point=point)]
    found: list[str] = []
    if low[1:] != least:
        found += [f"{dot}{literal(low[0])} {option}".strip() for option in _digits(low[1:], most, point=point)]
        first += 1
    if high[1:] != most:
        found += [f"{dot}{literal(high[0])} {option}".strip() for option in _digits(least, high[1:], point=point)]
        last -= 1
    if first <= last:
        one = literal(str(first)) if first == last else f"[{first}-{last}]"
        found.append(f"{dot}{one} {_any_digits(rest, point)}".strip())
    return found


def _any_digits(count: int, point: int) -> str:
    before = max(0, count - point)
    after = count - before
    parts = [f"[0-9]{{{before}}}" if before else "", '"."' if point and before and after else "", ""]
    if point and count >= point and not before:
        parts[1] = '"."'
    parts[2] = f"[0-9]{{{after}}}" if after else ""
    return " ".join(part for part in parts if part)
