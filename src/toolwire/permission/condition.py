"""Conditions of rules: what is looked at in a call's arguments, and what must be true of it.

A condition holds, does not hold, or cannot be told: the argument is not there, is of another kind than the rule's value
(a number and a text, say), or is the same but for spelling (case, width, invisible characters). What cannot be told
never helps a rule that lets calls run, and always counts for one that holds them back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from toolwire.permission.places import host_in, under, usable_host, usable_path
from toolwire.permission.spelling import fold
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.values import digest

if TYPE_CHECKING:
    from toolwire.permission.pattern import Pattern

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

Kind = Literal["null", "boolean", "number", "text", "list", "object"]

ROOT = "arguments"


class _Missing:
    """Stands for an argument that is not there."""


MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One thing that must be true of a call's arguments, as they will run.

    Raises:
        ConfigurationError: no such path or operator, or a value that the operator cannot use.
    """

    path: str
    """A JSON pointer: `/arguments/amount`, `/arguments/to/0`, or `/arguments` for all of them."""
    op: Operator
    """== != (any value), < <= > >= (numbers), in not_in (a list of values), starts_with ends_with (texts), contains (a
    part of a text, or an item of a list), matches (a `Pattern` of the whole text), exists absent (no value; null is
    absent), under (a path's folder), host_in (a URL's host: names, or `*.name` for those below)."""
    value: Any = None
    """What the argument is compared with."""
    tokens: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The path below `/arguments`, in parts."""
    pattern: Pattern | None = field(init=False, repr=False, compare=False)
    """With `matches`: the value, read."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "tokens", _tokens(self.path))
        if self.op not in OPERATORS:
            raise ConfigurationError(f"op={self.op!r}: write one of {', '.join(OPERATORS)}")
        put(self, "value", _value(self.op, self.value))
        put(self, "pattern", _pattern(self.value) if self.op == "matches" else None)

    def __str__(self) -> str:
        where = ".".join(self.tokens) or ROOT
        return f"{where} {self.op}" + ("" if self.op in _BARE else f" {_shown(self.value)}")

    def holds(self, arguments: Mapping[str, Any]) -> bool | None:
        """Whether it is true of these arguments; None when that cannot be told."""
        return self.holds_of(found(arguments, self.tokens))

    def holds_of(self, value: Any) -> bool | None:
        """Whether it is true of the value that stands at its path."""
        is_there = value is not MISSING and value is not None
        match self.op:
            case "==" if not self.tokens:
                # All arguments of a call that was shown: 1 and 1.0 are one number and two calls.
                return None if value is MISSING else _same_call(value, self.value)
            case "exists":
                return is_there
            case "absent":
                return not is_there
            case "!=" | "not_in":
                told = None if value is MISSING else _told(_POSITIVE[self.op], value, self)
                return None if told is None else not told
            case _:
                return None if value is MISSING else _told(self.op, value, self)


_BARE = frozenset({"exists", "absent"})
_POSITIVE: Mapping[str, Operator] = {"!=": "==", "not_in": "in"}


def found(arguments: Mapping[str, Any], tokens: Sequence[str]) -> Any:
    """What stands at the path; `MISSING` when nothing does."""
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


def kind_of(value: object) -> Kind:
    """What kind of JSON value it is; a truth value is no number."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list() | tuple():
            return "list"
        case _:
            return "object"


def _told(op: Operator, value: Any, condition: Condition) -> bool | None:
    wanted = condition.value
    match op:
        case "==":
            return _same(value, wanted)
        case "in":
            alike = [each for each in wanted if kind_of(each) == kind_of(value)]
            return _any(_same(value, each) for each in alike) if alike else None
        case "contains" if kind_of(value) == "list":
            return _among(value, wanted)
        case "<" | "<=" | ">" | ">=":
            return _ordered(op, value, wanted)
        case _:
            return _told_of_text(op, value, condition) if kind_of(value) == kind_of(_text_value(wanted)) else None


def _told_of_text(op: Operator, text: str, condition: Condition) -> bool | None:
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
            return _matched(condition.pattern, text)


def _matched(pattern: Pattern, text: str) -> bool | None:
    if pattern.is_too_long(text):
        return None
    return pattern.matches(text) or _perhaps(pattern.matches(fold(text).strip(), folded=True))


def _text_value(wanted: Any) -> Any:
    """All but `contains` look at texts, a list of hosts too."""
    return "" if kind_of(wanted) == "list" else wanted


def _perhaps(is_like: bool) -> bool | None:
    """False, or that it cannot be told: the same but for spelling may be the same to the tool."""
    return None if is_like else False


def _ordered(op: Operator, value: Any, wanted: Any) -> bool | None:
    if kind_of(value) != "number" or value != value:
        return None
    match op:
        case "<":
            return value < wanted
        case "<=":
            return value <= wanted
        case ">":
            return value > wanted
        case _:
            return value >= wanted


def _same(value: Any, wanted: Any) -> bool | None:
    """Whether both are one JSON value, all the way down."""
    kind = kind_of(value)
    if kind != kind_of(wanted):
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
    """Whether it is one of the items. A text that is only a part of one, or goes across, may be what was meant: a
    command in one text and in a list of words is the same command."""
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
    """The value as it is compared.

    Raises:
        ConfigurationError: the operator cannot use it.
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
            return "" if kind == "number" and math.isfinite(value) else "write a number"
        case "in" | "not_in":
            return "" if _is_list_of(value, {"text", "number", "boolean"}) else "write a list of texts or numbers"
        case "contains":
            return "" if kind in {"text", "number", "boolean"} and value != "" else "write a text or a number"
        case "under":
            return usable_path(value)
        case "host_in":
            if not _is_list_of(value, {"text"}):
                return "write a list of host names, as ['example.com', '*.example.org']"
            return next((wrong for wrong in map(usable_host, value) if wrong), "")
        case _:
            return "" if kind == "text" and value else "write a text"


def _is_list_of(value: Any, kinds: set[str]) -> bool:
    return kind_of(value) == "list" and bool(value) and all(kind_of(each) in kinds for each in value)


def _pattern(text: str) -> Pattern:
    # Loaded here: few rules have one, and it costs every import as much as a dozen other modules.
    from toolwire.permission.pattern import Pattern

    try:
        return Pattern(text)
    except ValueError as error:
        raise ConfigurationError(f"op='matches' with value={text!r}: {error}") from error


def _shown(value: Any) -> str:
    return repr(list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value)
