"""A parser for the regular expressions in schemas. It supports no look-around and no back-references."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.protocols.grammar.characters import ALL, Characters, character_set, union, without

_MORE = 64
"""Number of repeats beyond the minimum that an unbounded repeat allows, within the length limit."""

_CLASSES = {
    "d": character_set(("0", "9")),
    "w": character_set(("0", "9"), ("A", "Z"), ("a", "z"), "_"),
    "s": character_set(" \t\n"),
}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_LINE = without(ALL, character_set("\n\r"))

_DAY = (
    "(20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|20[0-9]{2}-(0[13-9]|1[0-2])-(29|30)"
    "|20[0-9]{2}-(0[13578]|1[02])-31)"
)
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])?"

FORMATS = {
    "date": f"^{_DAY}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DAY}[T ]{_TIME}$",
    "duration": "^P([0-9]{1,3}D(T[0-9]{1,2}H)?|T([0-9]{1,2}H)?[0-9]{1,2}M|T[0-9]{1,5}S)$",
    "uuid": "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
}
"""Patterns of the formats that a function's annotation enforces. Other formats, such as uri, are free text."""

BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


class Untranslatable(Exception):
    """A grammar cannot express the pattern."""


@dataclass(frozen=True, slots=True)
class One:
    """One character of a set."""

    characters: Characters


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts in sequence; without parts, the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several alternatives."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that repeats."""

    part: Node
    least: int
    most: int | None
    """Maximum count; None for no upper bound."""


Node = One | Sequence | Choice | Repeat


def read_pattern(pattern: str, least: int = 0, most: int | None = None) -> Node:
    """Returns the texts that the pattern matches and that have `least` to `most` characters. All repeats are bounded.

    Raises:
        Untranslatable: A grammar cannot express the pattern, or the pattern does not fit the lengths.
    """
    node = _PatternReader(pattern).read()
    if isinstance(node, Repeat) and isinstance(node.part, One):
        top = min(given for given in (node.most, most, max(least, node.least) + _MORE) if given is not None)
        return _fitting(Repeat(node.part, max(node.least, least), top), least, most)
    for more in (_MORE, 32, 16, 8, 4, 2, 1, 0):
        closed = _bound_repeats(node, more)
        if most is None or _longest(closed) <= most:
            return _fitting(closed, least, most)
    raise Untranslatable(pattern)


def _fitting(node: Node, least: int, most: int | None) -> Node:
    if shortest(node) < least or (most is not None and _longest(node) > most):
        raise Untranslatable("lengths")
    return node


def _bound_repeats(node: Node, more: int) -> Node:
    match node:
        case One():
            return node
        case Sequence(parts):
            return Sequence(tuple(_bound_repeats(part, more) for part in parts))
        case Choice(options):
            return Choice(tuple(_bound_repeats(option, more) for option in options))
        case Repeat(part, least, most):
            return Repeat(_bound_repeats(part, more), least, least + more if most is None else most)


def shortest(node: Node) -> int:
    """Returns the length of the shortest text."""
    match node:
        case One():
            return 1
        case Sequence(parts):
            return sum(map(shortest, parts))
        case Choice(options):
            return min(map(shortest, options))
        case Repeat(part, least, _):
            return shortest(part) * least


def _longest(node: Node) -> int:
    match node:
        case One():
            return 1
        case Sequence(parts):
            return sum(map(_longest, parts))
        case Choice(options):
            return max(map(_longest, options))
        case Repeat(part, least, most):
            return _longest(part) * (least if most is None else most)


class _PatternReader:
    """Parses one pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def read(self) -> Node:
        options = [self._read_alternative()]
        while self._take("|"):
            options.append(self._read_alternative())
        if self._at < len(self._text):
            raise Untranslatable(self._text)
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _read_alternative(self) -> Node:
        """Parses one top-level alternative. At an unanchored end, any text of one line may be added."""
        before = () if self._take("^") else (Repeat(One(_LINE), 0, None),)
        parts = self._parts()
        after = () if self._take("$") else (Repeat(One(_LINE), 0, None),)
        if not (before or after) and len(parts) == 1:
            return parts[0]
        return Sequence((*before, *parts, *after))

    def _choice(self) -> Node:
        options = [Sequence(self._parts())]
        while self._take("|"):
            options.append(Sequence(self._parts()))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _parts(self) -> tuple[Node, ...]:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            parts.append(self._read_repeat(self._part()))
        return tuple(parts)

    def _part(self) -> Node:
        if self._take("("):
            if self._take("?") and not self._take(":"):
                raise Untranslatable(self._text)
            inner = self._choice()
            if not self._take(")"):
                raise Untranslatable(self._text)
            return inner
        if self._take("["):
            return One(self._class())
        if self._take("."):
            return One(_LINE)
        character = self._next()
        if character == "\\":
            return One(self._escape())
        if character in "^*+?{":
            raise Untranslatable(self._text)
        return One(character_set(character))

    def _read_repeat(self, part: Node) -> Node:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._text[self._at : self._at + 1])
        if bounds is not None:
            self._at += 1
        elif self._take("{"):
            bounds = self._count()
        if bounds is None:
            return part
        if self._text[self._at : self._at + 1] in ("*", "+", "{"):
            raise Untranslatable(self._text)
        self._take("?")  # lazy and greedy repeats match the same texts
        return Repeat(part, *bounds)

    def _count(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at : end].partition(",")
        if end < 0 or not least.isdecimal() or (most and not most.isdecimal()):
            raise Untranslatable(self._text)
        self._at = end + 1
        return int(least), int(most) if most else None if comma else int(least)

    def _class(self) -> Characters:
        is_negated = self._take("^")
        found: list[tuple[int, int]] = []
        is_first = True
        while is_first or not self._take("]"):
            low = self._member()
            is_first = False
            is_range = self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] != "]"
            if is_range and len(low) == 1 and low[0][0] == low[0][1]:
                self._at += 1
                high = self._member()
                if not high or high[0][1] < low[0][0]:
                    raise Untranslatable(self._text)
                found.append((low[0][0], high[0][1]))
            else:
                found.extend(low)
        members = union(found)
        return without(ALL, members) if is_negated else members

    def _member(self) -> Characters:
        character = self._next()
        return self._escape() if character == "\\" else character_set(character)

    def _escape(self) -> Characters:
        character = self._next()
        if character.lower() in _CLASSES:
            known = _CLASSES[character.lower()]
            # A negated class excludes all non-ASCII characters, because \w and \d match letters and digits of other
            # scripts.
            return known if character.islower() else without(without(ALL, known), ((0x80, 0x10FFFF),))
        if character in _ESCAPED:
            return character_set(_ESCAPED[character])
        if character.isalnum():
            raise Untranslatable(self._text)
        return character_set(character)

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise Untranslatable(self._text)
        self._at += 1
        return self._text[self._at - 1]
