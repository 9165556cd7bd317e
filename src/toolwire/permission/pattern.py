"""Text patterns for rules: a subset of regular expressions that matches in linear time.

A model writes the text, so a pattern must never take long. Backtracking makes other engines slow. This one follows all
ways through the pattern at once, character by character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

PATTERN_LIMIT = 200
"""Maximum steps of a pattern with its repetitions written out.

Each character of a text costs at most this many tests.
"""

TEXT_LIMIT = 4_096
"""Maximum characters of a text. A condition on a longer text is undecided."""

_ATOM = re.compile(r"\\(?:[dDwWsSnrt]|[^A-Za-z0-9])|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\]()|*+?{}^$]", re.DOTALL)
_COUNT = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}")
_LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

_Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class _Atom:
    text: str


@dataclass(frozen=True, slots=True)
class _All:
    nodes: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Any:
    nodes: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    node: _Node
    least: int
    most: int | None


_Node: TypeAlias = "_Atom | _All | _Any | _Repeat"


class Pattern:
    """A pattern for a whole text.

    It supports characters, `.` for any character except line ends, classes, groups, `|`, and `* + ? {2,5}`. It does not
    support back-references, lookaround, `^` and `$`: the whole text must match anyway.

    Raises:
        ValueError: The text is not such a pattern, or has more than `PATTERN_LIMIT` steps.
    """

    __slots__ = ("_exact", "_folded", "_follow", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        node = _Reader(text).read()
        atoms: list[str | None] = []
        self._follow: list[tuple[int, ...]] = []
        _Builder(atoms, self._follow).build(node)
        self._exact = tuple(None if atom is None else _test(atom, re.ASCII) for atom in atoms)
        self._folded = tuple(None if atom is None else _test(atom, re.IGNORECASE) for atom in atoms)

    def is_too_long(self, text: str) -> bool:
        """True if the text is too long to match."""
        return len(text) > TEXT_LIMIT

    def matches(self, text: str, *, folded: bool = False) -> bool:
        """True if the whole text matches. `folded` ignores case."""
        tests = self._folded if folded else self._exact
        states = self._reach((0,))
        known: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        for character in text:
            key = (states, character)
            found = known.get(key)
            if found is None:
                found = known[key] = self._step(states, character, tests)
            states = found
            if not states:
                return False
        return len(tests) - 1 in states

    def _step(self, states: frozenset[int], character: str, tests: tuple[_Test | None, ...]) -> frozenset[int]:
        passed: list[int] = []
        for state in states:
            test = tests[state]
            if test is not None and test(character):
                passed += self._follow[state]
        return self._reach(passed)

    def _reach(self, states: tuple[int, ...] | list[int]) -> frozenset[int]:
        """Returns these states and all states reachable without a character."""
        reached: set[int] = set()
        open_states = list(states)
        while open_states:
            state = open_states.pop()
            if state not in reached:
                reached.add(state)
                if self._exact[state] is None:
                    open_states += self._follow[state]
        return frozenset(reached)


def _test(atom: str, flags: int) -> _Test:
    if atom == ".":
        return lambda character: character not in _LINE_ENDS
    compiled = re.compile(atom, flags)
    return lambda character: compiled.fullmatch(character) is not None


class _Builder:
    """Compiles a node into numbered states; the last one is the end."""

    def __init__(self, atoms: list[str | None], follow: list[tuple[int, ...]]) -> None:
        self.atoms, self.follow = atoms, follow
        self.nodes = 0

    def build(self, node: _Node) -> None:
        self._write(node)
        self._state(None)

    def _state(self, atom: str | None, *follow: int) -> int:
        if len(self.atoms) > PATTERN_LIMIT:
            raise ValueError(f"it comes to more than {PATTERN_LIMIT} steps: repeat less, or leave some of it out")
        self.atoms.append(atom)
        self.follow.append(follow)
        return len(self.atoms) - 1

    def _write(self, node: _Node) -> None:
        """Appends the states of a node. They start at the next number and continue at the number after them."""
        self.nodes += 1
        if self.nodes > _NODES_LIMIT:
            raise ValueError("it repeats too much: repeat less, or leave some of it out")
        match node:
            case _Atom():
                self._state(node.text, len(self.atoms) + 1)
            case _All():
                for each in node.nodes:
                    self._write(each)
            case _Any():
                self._write_any(node.nodes)
            case _Repeat():
                self._write_repeat(node.node, node.least, node.most)

    def _write_any(self, nodes: tuple[_Node, ...]) -> None:
        ends: list[int] = []
        for each in nodes[:-1]:
            fork = self._state(None)
            self._write(each)
            ends.append(self._state(None))
            self.follow[fork] = (fork + 1, len(self.atoms))
        self._write(nodes[-1])
        for end in ends:
            self.follow[end] = (len(self.atoms),)

    def _write_repeat(self, node: _Node, least: int, most: int | None) -> None:
        for _ in range(least):
            self._write(node)
        if most is None:
            fork = self._state(None)
            self._write(node)
            self._state(None, fork)
            self.follow[fork] = (fork + 1, len(self.atoms))
            return
        forks: list[int] = []
        for _ in range(most - least):
            forks.append(self._state(None))
            self._write(node)
        for fork in forks:
            self.follow[fork] = (fork + 1, len(self.atoms))


class _Reader:
    """Parses the text of a pattern."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0

    def read(self) -> _Node:
        node = self._any()
        if self.place < len(self.text):
            raise ValueError(f"there is a ) too many at character {self.place + 1}")
        return node

    def _any(self) -> _Node:
        nodes = [self._all()]
        while self._take("|"):
            nodes.append(self._all())
        return nodes[0] if len(nodes) == 1 else _Any(tuple(nodes))

    def _all(self) -> _Node:
        nodes: list[_Node] = []
        while self.place < len(self.text) and self.text[self.place] not in "|)":
            nodes.append(self._repeated(self._one()))
        return _All(tuple(nodes))

    def _one(self) -> _Node:
        if self._take("("):
            return self._group()
        found = _ATOM.match(self.text, self.place)
        if found is None:
            raise ValueError(f"{_WRONG.get(self.text[self.place], _UNKNOWN)} (at character {self.place + 1})")
        try:
            re.compile(found[0])
        except re.error as error:
            raise ValueError(f"{found[0]}: {error}") from error
        self.place = found.end()
        return _Atom(found[0])

    def _group(self) -> _Node:
        self.depth += 1
        if self.depth > _DEPTH_LIMIT:
            raise ValueError(f"groups stand in each other more than {_DEPTH_LIMIT} deep")
        self._take("?:")
        if self.text[self.place : self.place + 1] == "?":
            raise ValueError("(?...) is not part of these patterns but for (?:...)")
        node = self._any()
        if not self._take(")"):
            raise ValueError("a ( is never closed")
        self.depth -= 1
        return node

    def _repeated(self, node: _Node) -> _Node:
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(sign):
                return self._once(_Repeat(node, least, most))
        found = _COUNT.match(self.text, self.place)
        if found is None:
            return node
        self.place = found.end()
        least = int(found[1])
        most = (None if found[3] is None else int(found[3])) if found[2] else least
        if most is not None and most < least:
            raise ValueError(f"{found[0]} counts down")
        return self._once(_Repeat(node, least, most))

    def _once(self, node: _Repeat) -> _Node:
        if self.text[self.place : self.place + 1] in {"*", "+", "?"}:
            raise ValueError(f"two repetitions stand behind each other (at character {self.place + 1})")
        return node

    def _take(self, sign: str) -> bool:
        is_there = self.text.startswith(sign, self.place)
        self.place += len(sign) * is_there
        return is_there


_DEPTH_LIMIT = 20
_NODES_LIMIT = 20 * PATTERN_LIMIT
"""Limits empty groups, which add no steps however often they are repeated."""
_UNKNOWN = "this is not part of these patterns"
_WRONG = {
    "^": "leave ^ out: the whole text is matched",
    "$": "leave $ out: the whole text is matched",
    "\\": "this \\ is not part of these patterns: there are \\d \\w \\s \\D \\W \\S \\n \\r \\t, and \\ before a sign",
    "[": "a [ is never closed",
    "]": "write \\] for the sign itself",
    "{": "write \\{ for the sign itself, or {2}, {2,}, {2,5} behind what is repeated",
    "}": "write \\} for the sign itself",
    "*": "there is nothing in front of * to repeat",
    "+": "there is nothing in front of + to repeat",
    "?": "there is nothing in front of ? to repeat",
}
