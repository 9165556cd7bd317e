"""Valid replies in every form that is read, with one mark deleted, doubled or moved, and what may be read from them.

The writers of the forms decide which damaged text is another valid reply: they write the calls that were read, and the
text must be the same again. They share no code with the readers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

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
_NAMES_A_CALL = re.compile(r"\b(?:search|get_weather)\b|<|✿|\[ARGS\]")
"""A tool's name as a word, or a mark that only calls have. A text without them says nothing of a call."""
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

UNQUOTED = frozenset(
    {
        *("function tag with parameters", "function tag in tool_call", "tags of parameters", "key and value tags"),
        *("invoke", "invoke in function_calls", "invoke with a prefix"),
    }
)
"""The forms that write values without quotes."""

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
    moved: str = ""
    """The mark, if it was moved."""


def damages(form: str, calls: tuple[Given, ...]) -> Iterator[Damage]:
    """Yields every damage of the reply that makes these calls. A mark inside a value stays: it is a part of it."""
    text = FORMS[form](calls)
    values = list(_values(text, calls))
    marks = [
        found
        for found in _MARK.finditer(text)
        if not any(start < found.end() and found.start() < end for start, end in values)
    ]
    places = sorted({place for mark in marks for place in mark.span()} | {(start + end) // 2 for start, end in values})
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
                    kind = f"{mark[0]!r} moved to {to}"
                    yield Damage(form=form, calls=calls, text=moved, kind=kind, moved=mark[0])


def _values(text: str, calls: tuple[Given, ...]) -> Iterator[tuple[int, int]]:
    """Yields the start and end of each string value in the text, in whatever form the writer wrote it."""
    for value in _strings([arguments for _, arguments in calls]):
        for written in {value, json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}:
            start = text.find(written)
            if start >= 0:
                yield start, start + len(written)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def wrong_reading(damage: Damage, reply: Reply) -> str:
    """Returns what is wrong with the reading of a damaged reply; empty if it is right."""
    if reply.is_refused:
        return "calls in a refused reply" if reply.calls else ""
    read = tuple((call.name, dict(call.arguments)) for call in reply.calls)
    if not all(_is_accepted(call) for call in read):
        return ""  # validation refuses it
    if not read:
        return "the call is an answer" if _NAMES_A_CALL.search(damage.text) else ""
    if damage.form == "xml" and read == _strict_xml(damage.text):
        return ""
    if _squeezed(FORMS[damage.form](read)) == _squeezed(damage.text) and not _holds_marks(damage, read):
        return ""
    rest = iter(damage.calls)
    if not all(any(_is_same(damage, call, given) for given in rest) for call in read):
        return f"other calls: {read}"
    if len(read) < len(damage.calls) and not any(problem.is_loss for problem in reply.problems):
        return "a call is lost without a word"
    return ""


def _strict_xml(text: str) -> tuple[Given, ...]:
    """Returns the calls of a text that is well-formed XML, read by the standard library; none of any other text."""
    try:
        root = ElementTree.fromstring(f"<all>{text}</all>")
    except ElementTree.ParseError:
        return ()
    return tuple((call.findtext("name", ""), _typed(call.find("params"))) for call in root)


def _typed(parameters: ElementTree.Element | None) -> dict[str, Any]:
    texts = {} if parameters is None else {tag.tag: tag.text or "" for tag in parameters}
    return {key: text if key in ("query", "city") else json.loads(text) for key, text in texts.items()}


def _is_accepted(call: Given) -> bool:
    """True if there is such a tool, and the arguments fit its schema."""
    name, arguments = call
    types = {
        "search": {"query": str, "limit": int, "tags": list},
        "get_weather": {"city": str, "exact": bool},
    }.get(name, {})
    return bool(types) and all(type(value) is types.get(key) for key, value in arguments.items())


def _is_same(damage: Damage, call: Given, given: Given) -> bool:
    """True if the call is the given one, or differs only by the mark that was moved into one of its values."""
    if call == given:
        return True
    if not damage.moved or damage.moved in "\"'" or _holds_marks(damage, (call,)):
        return False
    read, wanted = (list(_strings(arguments)) for _, arguments in (call, given))
    return (
        call[0] == given[0]
        and _shape(call[1]) == _shape(given[1])
        and [text for text in read if text not in wanted]
        == [text for text in read if text not in wanted and text.replace(damage.moved, "", 1) in wanted][:1]
    )


def _shape(value: Any) -> Any:
    """Returns the value without its strings."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "" if isinstance(value, str) else value


def _holds_marks(damage: Damage, calls: Sequence[Given]) -> bool:
    """True if a value holds marks of the form, in a form that writes values without quotes."""
    values = "\n".join(_strings([arguments for _, arguments in calls]))
    return damage.form in UNQUOTED and _STRUCTURE.search(values) is not None


def _squeezed(text: str) -> str:
    return "".join(text.split())
