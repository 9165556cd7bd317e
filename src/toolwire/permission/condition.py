"""Conditions of rules: a path into a call's arguments, an operator and a value.

A condition is true, false or undecided. It is undecided if the argument is missing, or cannot be compared with the
rule's value (`typed_values`). It is also undecided if both differ only in spelling: case, width or invisible
characters. An undecided condition never lets a call run, and always holds one back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from toolwire.definition.hostile.patterns import search_function
from toolwire.permission.destinations import fold, host_in, under, usable_host, usable_path
from toolwire.permission.typed_values import (
    NUMBERS,
    ORDERED,
    TYPED,
    Kind,
    kind_of,
    kinds_compared,
    rule_value,
    same_kind,
    value_for_order,
)
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.texts.lone_surrogates import find_lone
from toolwire.vocabulary.values import digest, plain_value

TEXT_LIMIT = 4_096
"""Maximum characters of a text. A condition on a longer text is undecided."""


class Pattern:
    """A regular expression for a whole text, matched by the linear-time engine that pydantic-core ships.

    `\\d` and `\\w` are ASCII, and `.` does not match a line end. The engine has no look-around and no
    back-references. `^` and `$` are allowed and change nothing.

    Raises:
        ValueError: The text is not such an expression, or is too large (`PATTERN_STATES_LIMIT`).
    """

    __slots__ = ("_exact", "_folded")

    def __init__(self, text: str) -> None:
        # Compiled alone first: "a)|(b" is an error, but would be valid inside the group below.
        search_function(text)
        self._exact = search_function(f"^(?:{text})$")
        self._folded = search_function(f"^(?:{text})$", ignore_case=True)

    def is_undecidable(self, text: str) -> bool:
        """True if the text is too long, or holds a lone surrogate, which the engine cannot read."""
        return len(text) > TEXT_LIMIT or find_lone(text) is not None

    def matches(self, text: str, *, folded: bool = False) -> bool:
        """True if the whole text matches. `folded` ignores case."""
        return (self._folded if folded else self._exact)(text)


Operator = Literal[
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "in",
    "not_in",
    "starts_with",
    "ends_with",
    "contains",
    "matches",
    "exists",
    "absent",
    "under",
    "host_in",
]
OPERATORS: tuple[str, ...] = get_args(Operator)

ROOT = "arguments"


class _Missing:
    """Marks an argument that is missing."""


MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition on the arguments of a call, in the form in which they will run.

    `Condition(path="/arguments/amount", op=">", value=100)`, or a dict with these keys.

    Attributes:
        path: A JSON pointer: `/arguments/amount`, `/arguments/to/0`, or `/arguments` for all of them.
        op: `==` and `!=` take any value. `<`, `<=`, `>` and `>=` take a number, a Decimal, a date, a time or a
            duration, or its text in ISO 8601. `in` and `not_in` take a list of values. `starts_with` and `ends_with`
            take a text. `contains` takes a part of a text or an item of a list. `matches` takes a regular expression
            for the whole text (`Pattern`). `exists` and `absent` take no value; null counts as absent. `under` takes
            the folder of a path. `host_in` takes the allowed hosts of a URL: names, or `*.name` for subdomains.
        value: The value that the argument is compared with.
        tokens: The path below `/arguments`, split into parts.
        pattern: With `matches`, the parsed value; else None.

    Raises:
        ConfigurationError: The path or operator is unknown, or the operator cannot use the value.
    """

    path: str
    op: Operator
    value: Any = None
    tokens: tuple[str, ...] = field(init=False, repr=False, compare=False)
    pattern: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "tokens", _tokens(self.path))
        if self.op not in OPERATORS:
            raise ConfigurationError(f"op={self.op!r}: write one of {', '.join(OPERATORS)}")
        # The whole call is compared in the form that people see.
        given = rule_value(self.value) if self.tokens else plain_value(self.value)
        put(self, "value", _value(self.op, given))
        put(self, "pattern", _pattern(self.value) if self.op == "matches" else None)

    def __str__(self) -> str:
        where = ".".join(self.tokens) or ROOT
        return f"{where} {self.op}" + ("" if self.op in _BARE else f" {_rule_literal(self.value)}")

    def holds(self, arguments: Mapping[str, Any], typed: Mapping[str, Any] | None = None) -> bool | None:
        """Returns True or False for these arguments, or None if it is undecided.

        `typed` are the same arguments with Decimals, dates and bytes as such, if the tool has any.
        """
        return self.holds_of(value_at(typed if typed is not None and self.tokens else arguments, self.tokens))

    def holds_of(self, value: Any) -> bool | None:
        """Returns True or False for the value at the path, or None if it is undecided."""
        is_there = value is not MISSING and value is not None
        match self.op:
            case "==" if not self.tokens:
                # For a whole call, 1 and 1.0 are the same number but different arguments.
                return None if value is MISSING else _same_call(value, self.value)
            case "exists":
                return is_there
            case "absent":
                return not is_there
            case "!=" | "not_in":
                told = None if value is MISSING else _test_value(_POSITIVE[self.op], value, self)
                return None if told is None else not told
            case _:
                return None if value is MISSING else _test_value(self.op, value, self)


_BARE = frozenset({"exists", "absent"})
_POSITIVE: Mapping[str, Operator] = {"!=": "==", "not_in": "in"}


def value_at(arguments: Mapping[str, Any], tokens: Sequence[str]) -> Any:
    """Returns the value at the path, or `MISSING`."""
    value: Any = arguments
    for token in tokens:
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(token, MISSING)
        elif isinstance(value, list) and token.isascii() and token.isdigit():
            items = cast("list[Any]", value)
            value = items[int(token)] if int(token) < len(items) else MISSING
        else:
            return MISSING
    return value


def _test_value(op: Operator, value: Any, condition: Condition) -> bool | None:
    wanted = condition.value
    match op:
        case "==":
            return _same(value, wanted)
        case "in":
            alike = [each for each in wanted if kind_of(each) == kind_of(value) or same_kind(value, each) is not None]
            return _any(_same(value, each) for each in alike) if alike else None
        case "contains" if kind_of(value) == "list":
            return _among(value, wanted)
        case "<" | "<=" | ">" | ">=":
            return _compare_order(op, value, wanted)
        case _:
            # JSON writes these values as text, and people see that text.
            text = plain_value(value) if kind_of(value) in TYPED else value
            return _test_text(op, text, condition) if kind_of(text) == kind_of(_text_value(wanted)) else None


def _test_text(op: Operator, text: str, condition: Condition) -> bool | None:
    wanted = condition.value
    match op:
        case "starts_with":
            return text.startswith(wanted) or _perhaps(fold(text).lstrip().startswith(fold(wanted)))
        case "ends_with":
            return text.endswith(wanted) or _perhaps(fold(text).rstrip().endswith(fold(wanted)))
        case "contains":
            return wanted in text or _perhaps(fold(wanted) in fold(text))
        case "under":
            return under(text, wanted)
        case "host_in":
            return host_in(text, wanted)
        case _:
            assert condition.pattern is not None
            return _match_pattern(condition.pattern, text)


def _match_pattern(pattern: Pattern, text: str) -> bool | None:
    if pattern.is_undecidable(text):
        return None
    return pattern.matches(text) or _perhaps(pattern.matches(fold(text).strip(), folded=True))


def _text_value(wanted: Any) -> Any:
    """Returns a sample of the type that the argument must have.

    Only `contains` looks at lists; `host_in` takes a list for a text.
    """
    return "" if kind_of(wanted) == "list" else wanted


def _perhaps(is_like: bool) -> bool | None:
    """Returns False, or None if the texts differ only in spelling: the tool may treat them as equal."""
    return None if is_like else False


def _compare_order(op: Operator, value: Any, wanted: Any) -> bool | None:
    pair = same_kind(value, value_for_order(wanted))
    if pair is None or kind_of(pair[0]) not in ORDERED:
        return None
    left, right = pair
    match op:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def _same(value: Any, wanted: Any) -> bool | None:
    """Compares two values in depth."""
    kind, other = kind_of(value), kind_of(wanted)
    if {kind, other} & (NUMBERS | TYPED):
        pair = same_kind(value, wanted)
        return None if pair is None else pair[0] == pair[1]
    if kind != other:
        return None
    if kind == "text":
        return value == wanted or _perhaps(fold(value).strip() == fold(wanted).strip())
    if kind == "list":
        return len(value) == len(wanted) and _all(_same(*pair) for pair in zip(value, wanted, strict=True))
    if kind == "object":
        return value.keys() == wanted.keys() and _all(_same(value[key], wanted[key]) for key in wanted)
    return value == wanted


def _same_call(arguments: Any, wanted: Any) -> bool | None:
    told = _same(arguments, wanted)
    return None if told and digest(arguments) != digest(wanted) else told


def _among(items: list[Any], wanted: Any) -> bool | None:
    """Looks for the wanted value among the items. A text that is part of an item, or spans items, is undecided.

    A command in one text and the same command as a list of words mean the same.
    """
    told = _any(_same(item, wanted) for item in items)
    if told is False and isinstance(wanted, str):
        return _perhaps(fold(wanted).strip() in fold(" ".join(item for item in items if isinstance(item, str))))
    return told


def _any(told: Any) -> bool | None:
    answers = list(told)
    return True if True in answers else None if None in answers else False


def _all(told: Any) -> bool | None:
    answers = list(told)
    return False if False in answers else None if None in answers else True


# -- reading a condition -----------------------------------------------------------------------------------------------


def _tokens(path: object) -> tuple[str, ...]:
    parts = path.split("/") if isinstance(path, str) else []
    if parts[:2] != ["", ROOT]:
        raise ConfigurationError(f"path={path!r}: write where in the call, as '/arguments/amount'")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts[2:])


def _value(op: Operator, value: Any) -> Any:
    """Returns the value in the form used for comparison.

    Raises:
        ConfigurationError: The operator cannot use the value.
    """
    wrong = _wrong_value(op, value)
    if wrong:
        raise ConfigurationError(f"op={op!r} with value={value!r}: {wrong}")
    return tuple(value) if op in {"in", "not_in", "host_in"} else value


def _wrong_value(op: Operator, value: Any) -> str:
    kind = kind_of(value)
    match op:
        case "exists" | "absent":
            return "" if value is None else "leave the value out"
        case "==" | "!=":
            return "write op='absent' or op='exists' instead" if value is None else ""
        case "<" | "<=" | ">" | ">=":
            if kind in NUMBERS:
                return "" if math.isfinite(value) else "write a number"
            if kind_of(value_for_order(value)) in ORDERED:
                return ""
            return _ORDERED_VALUES if kind == "text" and not NUMBERS & kinds_compared(value) else "write a number"
        case "in" | "not_in":
            return "" if _is_list_of(value, _ITEM_KINDS) else "write a list of texts or numbers"
        case "contains":
            return "" if kind in _ITEM_KINDS and value != "" else "write a string or a number"
        case "under":
            return usable_path(value)
        case "host_in":
            if not _is_list_of(value, {"text"}):
                return "write a list of host names, as ['example.com', '*.example.org']"
            return next((wrong for wrong in map(usable_host, value) if wrong), "")
        case _:
            return "" if kind == "text" and value else "write a string"


_ITEM_KINDS: frozenset[Kind] = frozenset[Kind]({"text", "number", "boolean"}) | TYPED
_ORDERED_VALUES = "write a number, a date, a time or a duration, as 100, '2026-01-31' or 'PT1H'"


def _is_list_of(value: Any, kinds: Collection[str]) -> bool:
    return kind_of(value) == "list" and bool(value) and all(kind_of(each) in kinds for each in value)


def _pattern(text: str) -> Pattern:
    try:
        return Pattern(text)
    except ValueError as error:
        raise ConfigurationError(f"op='matches' with value={text!r}: {error}") from error


def _rule_literal(value: Any) -> str:
    """Returns the value as a rule file writes it."""
    return repr(plain_value(value))
