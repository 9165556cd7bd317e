"""Edits of an artifact's text: the place of an update, and what two versions differ in."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from toolwire.journal.artifacts.artifact import ArtifactError, ArtifactLimit
from toolwire.journal.artifacts.normal_text import NormalText
from toolwire.vocabulary.machine.work_clock import WorkClock
from toolwire.vocabulary.texts.counting import count_of

LEAST_SCORE = 90.0
"""How alike a place must be to the wanted text, of 100. Below it, other text would be replaced."""

LEAST_LEAD = 3.0
"""By how much the best place must be more alike than the next one. Below it, either may be meant."""

GIVEN_TIMES = 4
"""By how many times a place may have more characters than the wanted text: decomposed letters have up to four."""

LIKENESS_STEPS = 4_000_000_000
"""Maximum work of the search by likeness, as places x the square of the wanted text's characters: half a second."""

_UNLIKE = "old_str is not in the artifact, and no text is alike enough: read it, and copy the text"

DIFF_STEPS = 400_000_000
"""Maximum product of the numbers of lines of two texts to compare, without the equal ones at their start and end.

At it a comparison takes 50 MB and 0.1 s.
"""

DIFF_LINES = 40
"""Maximum number of lines of a diff in an error message."""

_ROUGH_SCORE = 75.0
"""How alike a window of the wanted length is at least, if it lies in a passage that is alike enough."""
_WINDOWS_AT_ONCE = 4_096
"""Windows between two looks at the clock: milliseconds."""
_MOVED_SHARE = 5
"""A passage may begin or end a fifth of the wanted length beside its window."""
_SHOWN_CHARACTERS = 200

Span = tuple[int, int]
"""Start and end of a part of a text."""
_APART = " apart from quotes, dashes and blanks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The place of an update.

    Attributes:
        start: Index of its first character.
        end: Index after its last character.
        score: How alike its text is to the wanted one: 100 if they are equal.
    """

    start: int
    end: int
    score: float


def place_of(content: str, old: str) -> Passage:
    """Returns the only place of `old` in a text.

    That is where it stands exactly, else where it stands apart from quotes, dashes, blanks at line ends and the forms
    of characters, else the passage that is most alike.

    Raises:
        ArtifactError: It stands nowhere or several times, no place is alike enough, or two places are alike.
        ArtifactLimit: The search for alike text takes too long.
    """
    if not old:
        raise ArtifactError("old_str is empty: give the text that shall be replaced, or rewrite the artifact")
    if (place := _only_place(content, old, "")) is not None:
        return place
    clock = WorkClock(len(content) + len(old))
    text, wanted = NormalText(content), NormalText(old).text
    if not wanted.strip():
        raise ArtifactError(_UNLIKE)
    # A blank at the end may also stand within a line.
    for part in (wanted + old[len(old.rstrip(" \t")) :], wanted):
        if (place := _only_place(text.text, part, _APART)) is not None:
            break
    else:
        place = _most_alike(text.text, wanted, clock)
    found = Passage(start=text.original_start(place.start), end=text.original_end(place.end), score=place.score)
    if found.end - found.start > GIVEN_TIMES * len(old):
        # A letter with thousands of marks is one place, which no part of it may stand for.
        raise ArtifactError(_UNLIKE)
    return found


def _only_place(content: str, old: str, apart: str) -> Passage | None:
    """Returns the place where the text stands; None if it stands nowhere."""
    start = content.find(old)
    if start < 0:
        return None
    if (second := content.find(old, start + 1)) >= 0:
        lines = f"lines {_line_number(content, start)} and {_line_number(content, second)}"
        raise ArtifactError(f"old_str stands more than once{apart}, in {lines}: give more of the text around the place")
    return Passage(start=start, end=start + len(old), score=100.0)


def difference(old: str, new: str, *, names: tuple[str, str], lines: int | None = None) -> str:
    """Returns a unified diff of two texts, cut after some lines. Empty if they are equal.

    Raises:
        ArtifactLimit: The texts have too many lines to compare.
    """
    # Imported here: the library takes 24 ms. The matcher of difflib takes hours for some pairs of texts.
    from rapidfuzz.distance import Indel

    clock = WorkClock(len(old) + len(new))
    before, after = old.splitlines(), new.splitlines()
    head = _equal_lines(before, after)
    tail = _equal_lines(before[: head - len(before) - 1 : -1], after[: head - len(after) - 1 : -1])
    middle, changed = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(middle) * len(changed) > DIFF_STEPS or clock.is_over:
        raise ArtifactLimit(f"{names[0]} and {names[1]} have too many lines to compare: read them")
    codes = [("equal", 0, head, 0, head)] if head else []
    codes += (
        (code.tag, head + code.src_start, head + code.src_end, head + code.dest_start, head + code.dest_end)
        for code in Indel.opcodes(middle, changed)
    )
    if tail:
        codes.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    matcher = difflib.SequenceMatcher[str](None, (), ())
    # A matcher takes codes that are there, and never makes its own.
    matcher.opcodes = codes  # pyright: ignore[reportAttributeAccessIssue]
    found: list[str] = []
    for group in matcher.get_grouped_opcodes():
        (_, start, _, place, _), (_, _, end, _, stop) = group[0], group[-1]
        found.append(f"@@ -{start + 1},{end - start} +{place + 1},{stop - place} @@")
        added: list[str] = []
        for tag, first, last, begin, until in group:
            if tag == "equal":
                found += (*added, *(f" {line}" for line in before[first:last]))
                added = []
            else:
                # The lines that a change takes away stand before those that it adds.
                found += (f"-{line}" for line in before[first:last])
                added += (f"+{line}" for line in after[begin:until])
        found += added
    if not found:
        return "" if old == new else f"--- {names[0]}\n+++ {names[1]}\nOnly the ends of lines differ."
    if lines is not None and len(found) > lines:
        found = [*found[:lines], f"... {count_of(len(found) - lines, 'more line')}"]
    return "\n".join((f"--- {names[0]}", f"+++ {names[1]}", *found))


def _equal_lines(before: Sequence[str], after: Sequence[str]) -> int:
    """Returns how many lines both have at their start."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(before), len(after)))


def _most_alike(content: str, old: str, clock: WorkClock) -> Passage:
    """Returns the passage that is most alike to `old`.

    Raises:
        ArtifactError: No passage is alike enough, or two are.
        ArtifactLimit: The search takes too long.
    """
    wanted = old.strip("\n")
    if len(content) * len(wanted) ** 2 <= LIKENESS_STEPS:
        places = _alike_passages(content, wanted, clock)
    else:
        places = _alike_lines(content, wanted, clock)
    best = max(places, key=lambda place: place.score, default=None)
    if best is None or best.score < LEAST_SCORE:
        raise ArtifactError(_UNLIKE)
    others = (place for place in places if place.end <= best.start or place.start >= best.end)
    second = max(others, key=lambda place: place.score, default=None)
    if second is not None and second.score > best.score - LEAST_LEAD:
        alike = sorted((best, second), key=lambda place: place.start)
        first, other = (f"line {_line_number(content, place.start)} ({place.score:.0f} of 100)" for place in alike)
        shown = [content[place.start : place.end][:_SHOWN_CHARACTERS] for place in alike]
        raise ArtifactError(
            f"old_str is not in the artifact as given, and two places are alike: {first} and {other}. Copy the text of "
            f"one of them, with more around it:\n{shown[0]}\n---\n{shown[1]}"
        )
    if old.endswith("\n") and content[best.end : best.end + 1] == "\n":
        return Passage(start=best.start, end=best.end + 1, score=best.score)
    return best


def _line_number(content: str, place: int) -> int:
    return content.count("\n", 0, place) + 1


def _check_time(clock: WorkClock) -> None:
    if clock.is_over:
        raise ArtifactLimit(
            "old_str is not in the artifact as given, and the search for alike text takes too long: copy it"
        )


def _alike_passages(content: str, wanted: str, clock: WorkClock) -> list[Passage]:
    """Returns the most alike passage, and those beside it. They may begin and end within a line."""
    best = _alike_passage(content, wanted, (0, len(content)), clock)
    if best is None:
        return []
    beside = [(0, best.start), (best.end, len(content))]
    return [best, *(found for span in beside if (found := _alike_passage(content, wanted, span, clock)) is not None)]


def _alike_passage(content: str, wanted: str, span: Span, clock: WorkClock) -> Passage | None:
    # Imported here: the library takes 24 ms, and most updates are exact.
    from rapidfuzz import fuzz

    _check_time(clock)
    start, end = span
    if end - start <= len(wanted):
        return _best_passage(content, wanted, span, span, clock) if end > start else None
    found = fuzz.partial_ratio_alignment(wanted, content[start:end], score_cutoff=_ROUGH_SCORE)
    if found is None:
        return None
    return _best_passage(content, wanted, (start + found.dest_start, start + found.dest_end), span, clock)


def _alike_lines(content: str, wanted: str, clock: WorkClock) -> list[Passage]:
    """Returns the runs of lines that are alike, the best of them as a passage."""
    from rapidfuzz import fuzz
    from rapidfuzz.process import extract_iter

    lines, count = content.count("\n") + 1, wanted.count("\n") + 1
    sizes = {max(count - 1, 1), count, count + 1}
    windows = sum(max(lines + 1 - size, 0) for size in sizes)
    if windows * len(wanted) ** 2 > LIKENESS_STEPS:
        raise ArtifactLimit("old_str is not in the artifact as given, and too long to search for alike text: copy it")
    places: list[Passage] = []
    spans = _windows(content, sizes)
    while some := list(islice(spans, _WINDOWS_AT_ONCE)):
        _check_time(clock)
        texts = (content[start:end] for start, end in some)
        for _, score, at in extract_iter(wanted, texts, scorer=fuzz.ratio, score_cutoff=LEAST_SCORE - LEAST_LEAD):
            places.append(Passage(start=some[at][0], end=some[at][1], score=score))
    best = max(places, key=lambda place: place.score, default=None)
    if best is None:
        return []
    return [_best_passage(content, wanted, (best.start, best.end), (0, len(content)), clock), *places]


def _best_passage(content: str, wanted: str, window: Span, span: Span, clock: WorkClock) -> Passage:
    """Returns the passage near a window, and within the span, that the fewest edits make the wanted text.

    An end within a word counts as an edit. Of two such passages it is the one whose length is nearest to the wanted
    one.
    """
    from rapidfuzz import fuzz
    from rapidfuzz.distance import Levenshtein

    start, end = window
    # Four searches of twice as many places each take at most a quarter of the time.
    reach = min(len(wanted) // _MOVED_SHARE + 1, LIKENESS_STEPS // (32 * len(wanted) ** 2))

    def cost(one: Span) -> tuple[int, int]:
        edits = Levenshtein.distance(content[slice(*one)], wanted) + sum(_is_in_word(content, at) for at in one)
        return edits, abs(one[1] - one[0] - len(wanted))

    for _ in range(2):
        _check_time(clock)
        starts = range(max(span[0], start - reach), min(end, start + reach) + 1)
        start = min(((at, end) for at in starts), key=cost)[0]
        ends = range(max(start, end - reach), min(span[1], end + reach) + 1)
        end = min(((start, at) for at in ends), key=cost)[1]
    return Passage(start=start, end=end, score=fuzz.ratio(content[start:end], wanted))


def _is_in_word(content: str, at: int) -> bool:
    return 0 < at < len(content) and content[at - 1].isalnum() and content[at].isalnum()


def _windows(content: str, sizes: Iterable[int]) -> Iterator[Span]:
    """Yields the start and end of each run of so many lines, without the last line's end."""
    starts = [0, *(found.end() for found in re.finditer("\n", content)), len(content) + 1]
    for first in range(len(starts) - 1):
        for size in sizes:
            if first + size < len(starts):
                yield starts[first], starts[first + size] - 1
