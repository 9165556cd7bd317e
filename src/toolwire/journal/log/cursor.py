"""A place in the log, as a text that goes through a URL: where a list or a follower goes on.

Rows come to several chains at once, so no single number says which rows a reader has seen.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolwire.vocabulary.errors import ConfigurationError

Ends = Mapping[int, int]
"""The number of a row in each chain; a chain that is not there has no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """What its reader has seen: all rows up to `begin`, and those up to `end` that a list by time has at or before
    `place`.
    """

    place: tuple[float, int]
    """Time and number of a row."""
    begin: Ends = field(default_factory=dict[int, int])
    end: Ends = field(default_factory=dict[int, int])

    def __str__(self) -> str:
        ends = [[[chain, seq] for chain, seq in of.items()] for of in (self.begin, self.end)]
        written = json.dumps([*self.place, *ends], separators=(",", ":"))
        return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def read_cursor(text: object, where: str) -> Cursor:
    """Parses the text of a cursor. `where` is the method up to the argument, for the message.

    Raises:
        ConfigurationError: It is not the cursor of a row.
    """
    try:
        assert isinstance(text, str)
        form = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), "-_", validate=True))
        at, seq, begin, end = cast("list[Any]", form)
        assert _is_number(seq)
        assert isinstance(at, float)
        assert math.isfinite(at)
        return Cursor(place=(at, seq), begin=_read_ends(begin), end=_read_ends(end))
    except (AssertionError, ValueError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"{where}={text!r:.80}): give the `cursor` of a row of the log") from error


def _read_ends(form: Any) -> Ends:
    ends: Ends = dict(form)
    assert all(_is_number(one) for pair in ends.items() for one in pair)
    return ends


def _is_number(value: object) -> bool:
    # PostgreSQL's numbers have 64 bits.
    return type(value) is int and 0 <= value < 1 << 63
