"""Edits of a text: each replaces a text that stands in one place. The line ends of the file stay as they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from toolwire.builtin.files.paths import FileLimit, FileRefused
from toolwire.vocabulary.machine.work_clock import WorkClock

PLACES_LIMIT = 1_000
"""Places of a text that are counted at most."""
_LINES_TOLD = 10
_CRLF = "\r\n"
_WORD = re.compile(r"\w")


def apply_edits(text: str, edits: Sequence[Mapping[str, str]], where: str) -> str:
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

    edited = _FileText(text, _with_lf(text))
    for number, edit in enumerate(edits, 1):
        check_time()
        edited = _apply_one(edited, edit["oldText"], edit["newText"], f"{where}, edit {number}", check_time)
    return edited.given


class _FileText(NamedTuple):
    """A text in two forms. They are one object if the text has no CRLF, and are kept from edit to edit: to make the
    second one costs as much as an edit.
    """

    given: str
    """The text with its own line ends."""
    plain: str
    """The same text with LF alone."""


def _with_lf(text: str) -> str:
    return text.replace(_CRLF, "\n")


def line_end_at(text: str, at: int) -> str:
    """Returns the line end that a new line at this place gets: that of its line, or else of the line before."""
    end = text.find("\n", at)
    if end < 0:
        end = text.rfind("\n", 0, at)
    return _CRLF if end > 0 and text[end - 1] == "\r" else "\n"


def _apply_one(
    text: _FileText, given_old: str, given_new: str, where: str, check_time: Callable[[], None]
) -> _FileText:
    if not given_old:
        raise FileRefused(f"{where}: oldText is empty: give the text to replace")
    old, new = _with_lf(given_old), _with_lf(given_new)
    if old == new:
        # The edit changes line ends alone, or nothing.
        changed = _replace_once(_FileText(text.given, text.given), given_old, given_new, where, check_time).given
        return text if changed == text.given else _FileText(changed, _with_lf(changed))
    return _replace_once(text, old, new, where, check_time)


def _replace_once(text: _FileText, old: str, new: str, where: str, check_time: Callable[[], None]) -> _FileText:
    plain = text.plain
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
    before, after = _common_ends(old, new)
    start, end = first + before, first + len(old) - after
    middle = new[before : len(new) - after]
    changed = given = f"{plain[:start]}{middle}{plain[end:]}"
    if plain is not text.given:
        given_start, given_end = _place_in_original(text.given, start), _place_in_original(text.given, end)
        ended = middle.replace("\n", line_end_at(text.given, given_start))
        given = f"{text.given[:given_start]}{ended}{text.given[given_end:]}"
    # A CR that stood alone may stand before a line end now.
    has_new_pair = "\r" in changed[max(start - 1, 0) : start + len(middle) + 1]
    return _FileText(given, _with_lf(given) if has_new_pair else changed)


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
    before, after = _common_ends(old, new)
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


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """Returns how many characters both texts share at their start, and after that at their end."""
    before = _common_prefix_length(old, new)
    return before, _common_prefix_length(old[before:][::-1], new[before:][::-1])


def _common_prefix_length(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _place_in_original(text: str, at: int) -> int:
    """Returns a place of the text with LF alone as a place of the text itself."""
    start, end = 0, at
    # Each CRLF before the place moves it on by one, and may bring more of them before it.
    while found := text.count(_CRLF, start, end + 1):
        start, end = end, end + found
    return end


def _unfound(text: str, new: str, where: str) -> str:
    message = f"{where}: oldText is not in the file: read the file, and copy the text exactly"
    at = text.find(new) if new else -1
    return message if at < 0 else f"{message}. newText stands in line {_line_of(text, at)}"


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
