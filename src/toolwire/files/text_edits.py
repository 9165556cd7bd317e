"""Edits of a text: each replaces a text that stands in one place. The line ends of the file stay as they are."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from toolwire.files.paths import FileLimit, FileRefused
from toolwire.vocabulary.work_clock import WorkClock

PLACES_LIMIT = 1_000
"""Places of a text that are counted at most."""
_LINES_TOLD = 10
_CRLF = "\r\n"
_WORD = re.compile(r"\w")


def edited_text(text: str, edits: Sequence[Mapping[str, str]], where: str) -> str:
    """Returns the text after the edits, made in order. An edit that is made already changes nothing.

    CRLF and LF are the same when a place is looked for. The new text gets the line ends of its place.

    Raises:
        FileRefused: The place of an edit is not clear.
        FileLimit: The edits take too long.
    """
    given = sum(len(edit["oldText"]) + len(edit["newText"]) for edit in edits)
    clock = WorkClock(len(text) + given)

    def check_time() -> None:
        if clock.is_over:
            raise FileLimit(f"{where}: these edits take too long: make fewer in one call, of shorter texts")

    for number, edit in enumerate(edits, 1):
        check_time()
        text = _edited(text, edit["oldText"], edit["newText"], f"{where}, edit {number}", check_time)
    return text


def line_end_at(text: str, at: int) -> str:
    """Returns the line end that a new line at this place gets: that of its line, or else of the line before."""
    end = text.find("\n", at)
    if end < 0:
        end = text.rfind("\n", 0, at)
    return _CRLF if end > 0 and text[end - 1] == "\r" else "\n"


def _edited(text: str, given_old: str, given_new: str, where: str, check_time: Callable[[], None]) -> str:
    if not given_old:
        raise FileRefused(f"{where}: oldText is empty: give the text to replace")
    old, new = given_old.replace(_CRLF, "\n"), given_new.replace(_CRLF, "\n")
    if old == new:
        # The edit changes line ends alone, or nothing.
        plain, old, new = text, given_old, given_new
    else:
        plain = text.replace(_CRLF, "\n")
    first = plain.find(old)
    if old != new and _is_made(plain, old, new, first):
        return text
    if first < 0:
        raise FileRefused(_unfound(plain, new, where))
    places = _places(plain, old, first, check_time)
    if len(places) > 1:
        times = f"more than {PLACES_LIMIT:,}" if len(places) > PLACES_LIMIT else f"{len(places):,}"
        lines = ", ".join(str(_line_of(plain, at)) for at in places[:_LINES_TOLD])
        raise FileRefused(f"{where}: oldText stands {times} times, in lines {lines}: give more of its context")
    before, after = _shared(old, new)
    start, end = places[0] + before, places[0] + len(old) - after
    if plain is not text:
        start, end = _offsets(text, start, end)
    middle = new[before : len(new) - after]
    return f"{text[:start]}{middle if plain is text else _with_line_ends(text, start, middle)}{text[end:]}"


def _places(text: str, part: str, first: int, check_time: Callable[[], None]) -> list[int]:
    """Returns where the part stands, up to one more than `PLACES_LIMIT`. Two places may overlap."""
    places: list[int] = []
    at = first
    while at >= 0 and len(places) <= PLACES_LIMIT:
        check_time()
        places.append(at)
        at = text.find(part, at + 1)
    return places


def _is_made(text: str, old: str, new: str, first: int) -> bool:
    """Returns True if the edit was made already. `first` is where the old text stands first; below 0: nowhere.

    The new text stands once, and the old one only within it. Without the old text, its unchanged words must stand
    beside the changed ones, because a text like the new one may stand there for another reason.
    """
    if not new or (first >= 0 and old not in new):
        return False
    at = text.find(new)
    if at < 0 or text.find(new, at + 1) >= 0:
        return False
    if first >= 0:
        return first >= at and text.find(old, at + len(new) - len(old) + 1) < 0
    before, after = _shared(old, new)
    # A word that is cut by the change is part of the change.
    if before + after < max(len(old), len(new)):
        before -= _word_length(reversed(new[:before]))
        after -= _word_length(new[len(new) - after :])
    head, changed, tail = new[:before], new[before : len(new) - after], new[len(new) - after :]
    has_head, has_tail = _has_word(head), _has_word(tail)
    return (has_head and has_tail) or (_has_word(changed) and (has_head or has_tail))


def _word_length(characters: Iterable[str]) -> int:
    """Returns how many characters of a word the text begins with."""
    return sum(1 for _ in takewhile(_WORD.match, characters))


def _has_word(text: str) -> bool:
    return _WORD.search(text) is not None


def _shared(old: str, new: str) -> tuple[int, int]:
    """Returns how many characters both texts share at their start, and after that at their end."""
    before = _common(old, new)
    return before, _common(old[before:][::-1], new[before:][::-1])


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _offsets(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns two places of the text with LF alone as places of the text itself."""
    # The place of the nth CRLF in the text with LF alone.
    pairs = [match.start() - number for number, match in enumerate(re.finditer(_CRLF, text))]
    return start + bisect_left(pairs, start), end + bisect_left(pairs, end)


def _with_line_ends(text: str, at: int, new: str) -> str:
    return new.replace("\n", _CRLF) if line_end_at(text, at) == _CRLF else new


def _unfound(text: str, new: str, where: str) -> str:
    message = f"{where}: oldText is not in the file: read the file, and copy the text exactly"
    at = text.find(new) if new else -1
    return message if at < 0 else f"{message}. newText stands in line {_line_of(text, at)}"


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
