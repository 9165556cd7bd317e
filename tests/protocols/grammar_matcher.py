"""A reader of GBNF of its own: parses a grammar, says whether a text fits it, and writes texts that do.

It follows llama.cpp's documentation of the language, and does not rely on the way our grammars are built.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Characters:
    ranges: tuple[tuple[int, int], ...]
    is_negated: bool

    def holds(self, character: str) -> bool:
        code = ord(character)
        return any(low <= code <= high for low, high in self.ranges) is not self.is_negated


@dataclass(frozen=True, eq=False)
class Literal:
    text: str


@dataclass(frozen=True, eq=False)
class Reference:
    name: str


@dataclass(frozen=True, eq=False)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Alternatives:
    options: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    part: Node
    least: int
    most: int | None


Node = Characters | Literal | Reference | Sequence | Alternatives | Repeat

MOST_REPEATS = 2_000
"""llama.cpp refuses a larger count."""


class GrammarError(Exception):
    pass


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def rules(self) -> dict[str, Node]:
        found: dict[str, Node] = {}
        self.skip(lines=True)
        while self.at < len(self.text):
            name = self.name()
            self.skip()
            self.expect("::=")
            self.skip(lines=True)
            if name in found:
                raise GrammarError(f"{name} is defined twice")
            found[name] = self.alternatives(nested=False)
            if self.at < len(self.text):
                self.expect("\n")
            self.skip(lines=True)
        return found

    def alternatives(self, *, nested: bool) -> Node:
        options = [self.sequence(nested=nested)]
        while self.peek() == "|":
            self.at += 1
            self.skip(lines=True)
            options.append(self.sequence(nested=nested))
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def sequence(self, *, nested: bool) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "\n", "|", ")"):
            part = self.repeated(self.part())
            parts.append(part)
            self.skip(lines=nested)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def part(self) -> Node:
        character = self.peek()
        if character == '"':
            self.at += 1
            text = ""
            while self.peek() != '"':
                text += self.character()
            self.at += 1
            return Literal(text)
        if character == "[":
            return self.characters()
        if character == "(":
            self.at += 1
            self.skip(lines=True)
            inner = self.alternatives(nested=True)
            self.expect(")")
            return inner
        if character == ".":
            self.at += 1
            return Characters((), True)
        return Reference(self.name())

    def characters(self) -> Node:
        self.expect("[")
        is_negated = self.peek() == "^"
        self.at += is_negated
        ranges: list[tuple[int, int]] = []
        while self.peek() != "]":
            low = high = ord(self.character())
            if self.peek() == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                high = ord(self.character())
            ranges.append((low, high))
        self.at += 1
        return Characters(tuple(ranges), is_negated)

    def character(self) -> str:
        character = self.peek()
        if character in ("", "\n"):
            raise GrammarError(f"unfinished at {self.at}")
        self.at += 1
        if character != "\\":
            return character
        kind = self.peek()
        self.at += 1
        digits = {"x": 2, "u": 4, "U": 8}.get(kind)
        if digits is not None:
            code = int(self.text[self.at : self.at + digits], 16)
            self.at += digits
            return chr(code)
        found = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}.get(kind)
        if found is None:
            raise GrammarError(f"unknown escape \\{kind}")
        return found

    def repeated(self, part: Node) -> Node:
        character = self.peek()
        if character in ("*", "+", "?"):
            self.at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
            return Repeat(part, least, most)
        if character != "{":
            return part
        end = self.text.index("}", self.at)
        least_text, comma, most_text = self.text[self.at + 1 : end].partition(",")
        self.at = end + 1
        least = int(least_text)
        most = int(most_text) if most_text else None if comma else least
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise GrammarError(f"cannot repeat {least} to {most} times")
        return Repeat(part, least, most)

    def name(self) -> str:
        start = self.at
        while self.peek() and (self.peek() == "-" or (self.peek().isascii() and self.peek().isalnum())):
            self.at += 1
        if start == self.at:
            raise GrammarError(f"no name at {self.text[start : start + 30]!r}")
        return self.text[start : self.at]

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def expect(self, text: str) -> None:
        if not self.text.startswith(text, self.at):
            raise GrammarError(f"{text!r} is missing at {self.text[self.at : self.at + 30]!r}")
        self.at += len(text)

    def skip(self, *, lines: bool = False) -> None:
        while self.peek() and self.peek() in (" \t\r\n" if lines else " \t\r"):
            self.at += 1


Stack = tuple["object", "Stack"] | None
"""The rest to be matched: a node, or a repeat with its counts, and the stack below it."""

_NASTY = "'\"\\]}>\n\t[{<! :,=#-0a引🙂é\x7f\u2028\ufeff"


class Gbnf:
    """One grammar.

    Raises:
        GrammarError: it cannot be read, or a rule that it names is not there.
    """

    def __init__(self, text: str) -> None:
        self.rules = _Parser(text).rules()
        missing = {name for node in self.rules.values() for name in _names(node)} - self.rules.keys()
        if missing or "root" not in self.rules:
            raise GrammarError(f"undefined: {sorted(missing) or 'root'}")
        self._cells: dict[tuple[int, int], Stack] = {}
        self._pools: dict[Characters, list[list[str]]] = {}
        self._tails: dict[int, Literal] = {}
        self._repeats: dict[tuple[int, int, int | None], Repeat] = {}

    def accepts(self, text: str) -> bool:
        """Whether the whole text is one of the grammar's."""
        stacks = self._open([self._push(self.rules["root"], None)])
        for character in text:
            stepped: list[Stack] = []
            for stack in stacks:
                if stack is None:
                    continue
                node, below = stack
                if isinstance(node, Literal):
                    if node.text[0] == character:
                        stepped.append(below if len(node.text) == 1 else self._push(self._tail(node), below))
                elif isinstance(node, Characters) and node.holds(character):
                    stepped.append(below)
            stacks = self._open(stepped)
            if not stacks:
                return False
        return any(stack is None for stack in stacks)

    def write(self, chance: random.Random, extra: int = 3) -> str:
        """A text of the grammar; an optional repeat is made at most `extra` times more than it must be."""
        return "".join(self._written(self.rules["root"], chance, extra))

    def _written(self, root: Node, chance: random.Random, extra: int) -> list[str]:
        found: list[str] = []
        waiting: list[Node] = [root]
        while waiting:
            node = waiting.pop()
            match node:
                case Literal(text):
                    found.append(text)
                case Characters():
                    found.append(self._some(node, chance))
                case Reference(name):
                    waiting.append(self.rules[name])
                case Sequence(parts):
                    waiting.extend(reversed(parts))
                case Alternatives(options):
                    waiting.append(chance.choice(options))
                case Repeat(part, least, most):
                    high = least + extra if most is None else min(most, least + extra)
                    waiting.extend([part] * chance.randint(least, high))
        return found

    def _some(self, characters: Characters, chance: random.Random) -> str:
        if characters not in self._pools:
            plain = [chr(code) for code in (*range(32, 127), *range(0xA0, 0x250), *range(0x4E00, 0x4E40))]
            pools = [[one for one in pool if characters.holds(one)] for pool in (_NASTY, plain)]
            self._pools[characters] = [pool for pool in pools if pool] or [[_any(characters, chance)]]
        return chance.choice(chance.choice(self._pools[characters]))

    def _open(self, stacks: list[Stack]) -> list[Stack]:
        """The stacks with a terminal on top, or empty, that these lead to."""
        seen: set[int] = set()
        found: list[Stack] = []
        waiting = list(stacks)
        while waiting:
            stack = waiting.pop()
            if id(stack) in seen:
                continue
            seen.add(id(stack))
            if stack is None:
                found.append(None)
                continue
            if isinstance(stack[0], Characters) or (isinstance(stack[0], Literal) and stack[0].text):
                found.append(stack)
            else:
                waiting.extend(self._expanded(*stack))
        return found

    def _expanded(self, node: Node, below: Stack) -> list[Stack]:
        """The stacks that replace a node that is not a terminal."""
        match node:
            case Reference(name):
                return [self._push(self.rules[name], below)]
            case Sequence(parts):
                for part in reversed(parts):
                    below = self._push(part, below)
                return [below]
            case Alternatives(options):
                return [self._push(option, below) for option in options]
            case Repeat(part, least, most):
                rest = self._rest(part, max(0, least - 1), None if most is None else most - 1)
                again = [self._push(part, self._push(rest, below))] if most != 0 else []
                return again if least else [*again, below]
            case _:
                return [below]

    # Each cell is made once, so that equal stacks are the same object.
    def _push(self, node: Node, below: Stack) -> Stack:
        key = (id(node), id(below))
        if key not in self._cells:
            self._cells[key] = (node, below)
        return self._cells[key]

    def _rest(self, part: Node, least: int, most: int | None) -> Repeat:
        return self._repeats.setdefault((id(part), least, most), Repeat(part, least, most))

    def _tail(self, node: Literal) -> Literal:
        return self._tails.setdefault(id(node), Literal(node.text[1:]))


def _any(characters: Characters, chance: random.Random) -> str:
    low, high = chance.choice(characters.ranges)
    return chr(chance.randint(low, high))


def _names(node: Node) -> set[str]:
    match node:
        case Reference(name):
            return {name}
        case Sequence(parts) | Alternatives(parts):
            return set[str]().union(*map(_names, parts))
        case Repeat(part, _, _):
            return _names(part)
        case _:
            return set()
