"""Turns errors of pydantic's own conversions of texts, such as that to a pattern, into problems of the argument.

The conversions catch the errors that their authors thought of. `re.compile` also raises RecursionError for 5,000
brackets and OverflowError for a large repeat, which would look like a failure of the tool. The core schema is
rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic_core import PydanticCustomError

from toolwire.definition.hostile.core_tree import CLASSES, with_children

PATTERN_LIMIT_CHARACTERS = 10_000
"""Maximum characters of a regular expression: compiling one takes 50 ms at worst."""
PATTERN_SETS_LIMIT = 100
"""Maximum sets, `[...]`, of a regular expression that ignores case. One of all characters takes 9 ms."""

_IGNORES_CASE = re.compile(r"\(\?[a-zA-Z]*i")
_FAILURES: dict[type[Exception], str] = {
    RecursionError: "it is nested too deeply",
    OverflowError: "a number in it is too large",
    UnicodeError: "it has a lone surrogate",
    OSError: "this system does not take it as a path",
}
_KINDS = frozenset({"function-plain", "function-before", "function-after"})

Convert = Callable[..., Any]


def with_refused_failures(schema: Any) -> tuple[Any, bool]:
    """Returns the core schema whose conversions by pydantic fail as problems, and True if one is inside a class."""
    found: list[bool] = []
    return _wrap_conversions(schema, False, found), any(found)


def _wrap_conversions(schema: dict[str, Any], in_class: bool, found: list[bool]) -> Any:
    below = with_children(
        schema, lambda child: _wrap_conversions(child, in_class or schema.get("type") in CLASSES, found)
    )
    if schema.get("type") not in _KINDS:
        return below
    function = schema["function"]
    if not _is_pydantics(function["function"]):
        return below
    found.append(in_class)
    return {**below, "function": {**function, "function": _with_refusals(function["function"])}}


def _is_pydantics(convert: Convert) -> bool:
    return str(getattr(convert, "__module__", "")).split(".")[0] == "pydantic"


def _with_refusals(convert: Convert) -> Convert:
    is_pattern = getattr(convert, "__name__", "").startswith("pattern_")

    def convert_or_refuse(value: Any, *info: Any) -> Any:
        if is_pattern:
            _check_pattern(value)
        try:
            return convert(value, *info)
        except PydanticCustomError as error:
            raise (error if _has_message(error) else _problem(UnicodeError)) from None
        except tuple(_FAILURES) as error:
            raise _problem(next(kind for kind in _FAILURES if isinstance(error, kind))) from error

    return convert_or_refuse


def _has_message(error: PydanticCustomError) -> bool:
    """False if the message holds a lone surrogate: pydantic cannot read it later."""
    try:
        return bool(error.message())
    except UnicodeError:
        return False


def _problem(kind: type[Exception]) -> PydanticCustomError:
    return PydanticCustomError("conversion", "{reason}", {"reason": _FAILURES[kind]})


def _check_pattern(value: Any) -> None:
    if not isinstance(value, str | bytes):
        return
    text = value if isinstance(value, str) else value.decode("latin-1")
    if len(text) > PATTERN_LIMIT_CHARACTERS:
        limit = f"{PATTERN_LIMIT_CHARACTERS:,} characters"
    elif text.count("[") > PATTERN_SETS_LIMIT and _IGNORES_CASE.search(text):
        limit = f"{PATTERN_SETS_LIMIT} sets if it ignores case"
    else:
        return
    raise PydanticCustomError("pattern_limit", "a pattern has at most {limit}", {"limit": limit})
