"""A page of a longer list: what a limit cut is said, and the next page begins without a tie."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from toolwire.vocabulary.errors import ConfigurationError

T = TypeVar("T")


class Page(list[T]):
    """A list that says what its limit cut. It compares as a list does.

    Attributes:
        more: True if the limit cut the list.
        cursor: An opaque text for the next page: give it as `after`. Empty for an empty page.
    """

    __slots__ = ("cursor", "more")

    def __init__(self, items: Iterable[T] = (), *, more: bool = False, cursor: str = "") -> None:
        super().__init__(items)
        self.more = more
        self.cursor = cursor


def cursor_of(kind: str, moment: float, id: str) -> str:
    """Returns the text that stands for a place in a list: a time, and an id that no other entry has.

    `kind` names the list, so that the cursor of another one is refused.
    """
    return base64.urlsafe_b64encode(json.dumps([kind, moment, id]).encode("ascii")).decode("ascii").rstrip("=")


def read_cursor(kind: str, given: object) -> tuple[float, str]:
    """Returns the time and the id for which a cursor stands.

    Raises:
        ConfigurationError: It is not the cursor of such a list.
    """
    try:
        data = base64.urlsafe_b64decode(cast("str", given) + "=" * (-len(cast("str", given)) % 4))
        found_kind, moment, key = cast("list[Any]", json.loads(data))
        if found_kind == kind and type(moment) in (float, int) and math.isfinite(moment) and isinstance(key, str):
            return float(moment), key
    except (TypeError, ValueError, binascii.Error, RecursionError):
        pass
    raise ConfigurationError(f"after={given!r:.80}: give the `cursor` of a page of {kind}")


LIMIT_MOST = 1_000_000_000
"""The largest limit of a list: more than a store has, and a number of every database."""


def check_limit(limit: object, *, name: str = "limit", least: int = 1) -> None:
    """Accepts whole numbers from 1, or from `least`, to `LIMIT_MOST`.

    Raises:
        ConfigurationError: It is none.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not least <= limit <= LIMIT_MOST:
        raise ConfigurationError(f"{name}={limit!r:.80}: give a whole number from {least} to {LIMIT_MOST:,}")


def check_moment(name: str, moment: object, *, is_needed: bool = False) -> None:
    """Accepts seconds since the epoch, and None unless it is needed.

    Raises:
        ConfigurationError: It is another value. A database would compare it in a way of its own.
    """
    if (moment is None and not is_needed) or (type(moment) in (int, float) and math.isfinite(cast("float", moment))):
        return
    raise ConfigurationError(
        f"{name}={moment!r:.80}: give seconds since the epoch, such as time.time() - 3600 or moment.timestamp()"
    )


def check_text(place: str, name: str, given: object, example: str, *, is_needed: bool = False) -> None:
    """Accepts text, and None unless it is needed. `example` is code for such a text.

    Raises:
        ConfigurationError: It is another value, such as an object in place of its id. No entry would match it.
    """
    if isinstance(given, str) or (given is None and not is_needed):
        return
    raise ConfigurationError(f"{place}({name}={given!r:.80}): write text, such as {name}={example}")


def check_run_id(place: str, given: object, *, is_needed: bool = True) -> None:
    """Accepts the id of a run, and None unless it is needed.

    Raises:
        ConfigurationError: It is another value.
    """
    check_text(place, "run_id", given, "turn.run_id", is_needed=is_needed)


def check_request_id(place: str, given: object) -> None:
    """Accepts the id of a request.

    Raises:
        ConfigurationError: It is another value.
    """
    check_text(place, "request_id", given, "request.id", is_needed=True)


def page_of(found: list[T], limit: int | None) -> tuple[list[T], bool]:
    """Returns at most `limit` of the entries, and True if there are more. Read one more entry than the limit."""
    return (found, False) if limit is None else (found[:limit], len(found) > limit)
