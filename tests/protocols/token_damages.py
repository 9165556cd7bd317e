"""Valid replies in every form that is read, with one mark deleted, doubled or moved, and what may be read from them.

The writers of the forms decide which damaged text is another valid reply: they write the calls that were read, and the
text must be the same again. They share no code with the readers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.protocols.wrappings import READ
from toolwire.protocols import get
from toolwire.vocabulary.calls import Reply, ToolCall

Given = tuple[str, Mapping[str, Any]]

_MARK = re.compile(
    r"""
      <!\[CDATA\[ | \]\]> | <\|[^|<>\n]*\|?> | <｜[^｜<>\n]*｜> | </?\w[^<>\n]*> | \[/?TOOL_CALLS\] | \[ARGS\] | ✿\w+✿
    | '{3} | "{3} | `{3}\w* | functools | \[tool_call\]
    | \b(?:Action[ ]Input|Action)(?=:) | \bto=[\w.]+ | "\w+"(?=:) | \b\w+(?=[ ]?=) | [{}\[\]()"',:=]
    """,
    re.VERBOSE,
)
_STRUCTURE = re.compile(r"</?(?:\w+:)?(?:parameter|invoke|function|arg_key|arg_value|tool_call)\b")
"""Marks that a value cannot hold in a form without quotes."""


def _own(name: str) -> Callable[[Sequence[Given]], str]:
    return lambda calls: str(get(name).render([ToolCall(name, arguments) for name, arguments in calls]))


def _one_by_one(wrapping: Callable[[str, Mapping[str, Any]], str], between: str) -> Callable[[Sequence[Given]], str]:
    return lambda calls: between.join(wrapping(name, arguments) for name, arguments in calls)


FORMS: dict[str, Callable[[Sequence[Given]], str]] = {
    "json": _own("json"),
    "xml": _own("xml"),
    **{name: _one_by_one(wrapping, "\n") for name, wrapping in READ.items()},
}
"""The writer of each form. It writes calls one after the other."""

CALLS: tuple[tuple[Given, ...], ...] = (
    (("search", {"query": "otters", "limit": 3}),),
    (("search", {"query": 'a (b) [c], "d": it\'s', "tags": ["x", "y z"]}),),
    (("search", {"query": "<b>", "limit": 2}), ("get_weather", {"city": "Ås", "exact": True})),
    (("get_weather", {"city": "Rome"}), ("get_weather", {"city": "Oslo", "exact": False})),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A valid reply with one mark deleted, doubled or moved."""

    form: str
    calls: tuple[Given, ...]
    text: str
    kind: str
    mended: str = ""
    """Of a moved mark: the damaged text with the mark at its old place as well."""


def damages(form: str, calls: tuple[Given, ...]) -> Iterator[Damage]:
    """Yields every damage of the reply that makes these calls."""
    text = FORMS[form](calls)
    marks = list(_MARK.finditer(text))
    places = sorted({place for mark in marks for place in mark.span()})
    for mark in marks:
        start, end = mark.span()
        without = text[:start] + text[end:]
        yield Damage(form=form, calls=calls, text=without, kind=f"{mark[0]!r} deleted")
        yield Damage(form=form, calls=calls, text=text[:end] + text[start:], kind=f"{mark[0]!r} doubled")
        for place in places:
            if place <= start or place >= end:
                to = place if place <= start else place - (end - start)
                if to != start:
                    moved = without[:to] + mark[0] + without[to:]
                    old = start if to > start else end
                    mended = moved[:old] + mark[0] + moved[old:]
                    kind = f"{mark[0]!r} moved to {to}"
                    yield Damage(form=form, calls=calls, text=moved, kind=kind, mended=mended)


def wrong_reading(damage: Damage, reply: Reply) -> str:
    """Returns what is wrong with the reading of a damaged reply; empty if it is right."""
    if reply.is_refused:
        return "calls in a refused reply" if reply.calls else ""
    read = tuple((call.name, dict(call.arguments)) for call in reply.calls)
    if read == damage.calls or (read and _is_valid(damage, read)):
        return ""
    if not read:
        return "the call is an answer"
    rest = iter(damage.calls)
    if all(call in rest for call in read):
        return "" if any(problem.is_loss for problem in reply.problems) else "a call is lost without a word"
    return f"other calls: {read}"


def _is_valid(damage: Damage, calls: Sequence[Given]) -> bool:
    """True if the damaged text is a valid reply with these calls, or lacks only the mark that moved into a value."""
    is_quoted = damage.form in ("json", "xml") or "CDATA" in damage.text
    values = str([list(arguments.items()) for _, arguments in calls])
    if not is_quoted and _STRUCTURE.search(values):
        return False
    written = _squeezed(FORMS[damage.form](calls))
    return written in (_squeezed(damage.text), _squeezed(damage.mended))


def _squeezed(text: str) -> str:
    return "".join(text.split())
