"""Valid replies in every form that is read, with one mark deleted, doubled or moved, and what may be read from them.

The writers of the forms decide which damaged text is another valid reply: they write the calls that were read, and the
text must be the same again. They share no code with the readers.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from tests.protocols.test_foreign import TOOLS
from tests.protocols.wrappings import READ
from toolwire.protocols import get
from toolwire.protocols.base import CallingProtocol
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
_A_REPLY = 25
"""Number of damages that are tried of one reply."""
_SIGN = re.compile(r"\b(?:search|get_weather)\b|<|✿|\[ARGS\]")
"""A tool's name as a word, or a mark that only calls have."""
_STRUCTURE = re.compile(r"</?(?:\w+:)?(?:parameter|invoke|function|arg_key|arg_value|tool_call)\b")
"""Marks that a value cannot hold in a form without quotes."""


PROTOCOLS = {"json": get("json"), "xml": get("xml"), "xml, call": get("xml", tag="call")}
"""The readers. Each has a form of its own."""


def _own(protocol: CallingProtocol) -> Callable[[Sequence[Given]], str]:
    return lambda calls: str(protocol.render([ToolCall(name, arguments) for name, arguments in calls]))


def _one_by_one(wrapping: Callable[[str, Mapping[str, Any]], str], between: str) -> Callable[[Sequence[Given]], str]:
    return lambda calls: between.join(wrapping(name, arguments) for name, arguments in calls)


FORMS: dict[str, Callable[[Sequence[Given]], str]] = {
    **{name: _own(protocol) for name, protocol in PROTOCOLS.items()},
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

VALUES = (
    *("x", "", "it's", '"q"', "a, b", "a: b", "{x}", "[1]", "(see)", "k=v", "<b>", "</b>", "1 < 2 & 3", "水獭", "\\d"),
    *("two\nlines", "name: search", "`code`", "a; b", "{'a': 1}", '{"a": 1}', "search", "true", "# x", "C:\\a"),
)


def random_calls(chance: random.Random) -> tuple[Given, ...]:
    """Returns one to three calls with values of every kind."""

    def text() -> str:
        return " ".join(chance.choice(VALUES) for _ in range(chance.randint(1, 3)))

    def call() -> Given:
        if chance.random() < 0.4:
            return "get_weather", {"city": text(), "exact": chance.random() < 0.5}
        given: dict[str, Any] = {"query": text(), "limit": chance.randint(-1, 99), "tags": [text(), text()]}
        return "search", {key: given[key] for key in given if key == "query" or chance.random() < 0.5}

    return tuple(call() for _ in range(chance.randint(1, 3)))


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
    """Yields every damage of the reply that makes these calls.

    A mark inside a value stays, because it is a part of the value.
    """
    text = FORMS[form](calls)
    values = list(_values(text, calls))
    marks = [
        found
        for found in _MARK.finditer(text)
        if not any(start < found.end() and found.start() < end for start, end in values)
    ]
    middles = {(start + end) // 2 for start, end in values}
    places = sorted({place for mark in marks for place in mark.span()} | middles)
    places = [place for place in places if text[place - 1 : place] != "\\"]
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
            # A value stands between quotes, tags or on a line of its own.
            for found in re.finditer(rf"(?<=[\"'>\n\[]){re.escape(written)}(?=[\"'<\n\]])", text):
                yield found.span()


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
        return "the call is an answer" if _says_a_call(damage) else ""
    if damage.form in ("xml", "xml, call", "tags of parameters in tool_call") and read == _strict_xml(damage.text):
        return ""
    if _squeezed(FORMS[damage.form](read)) == _squeezed(damage.text) and not _holds_marks(damage, read):
        return ""
    rest = iter(damage.calls)
    if not all(any(_is_same(damage, call, given) for given in rest) for call in read):
        return f"other calls: {read}"
    if len(read) < len(damage.calls) and not any(problem.is_loss for problem in reply.problems):
        return "a call is lost without a word"
    return ""


def _says_a_call(damage: Damage) -> bool:
    """True if a text names a tool or has a mark of calls. JSON that names no tool is an answer, in a fence too."""
    text = damage.text
    if damage.form == "Action with JSON":
        text = text[text.find("{") : text.rfind("}") + 1]
    try:
        json.loads(text)
    except ValueError:
        return _SIGN.search(text) is not None
    return '"search"' in text or '"get_weather"' in text


def _strict_xml(text: str) -> tuple[Given, ...]:
    """Returns the calls of a text that is well-formed XML, read by the standard library; none of any other text."""
    try:
        root = ElementTree.fromstring(f"<all>{text}</all>")
        calls = [call if len(call) != 1 else call[0] for call in root]
        return tuple((call.findtext("name", call.tag), _typed(call.find("params"), call)) for call in calls)
    except (ElementTree.ParseError, ValueError):
        return ()


def _typed(block: ElementTree.Element | None, call: ElementTree.Element) -> dict[str, Any]:
    texts = {tag.tag: tag.text or "" for tag in (call if block is None else block)}
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
    changed = [text for text in read if text not in wanted]
    return (
        call[0] == given[0]
        and _shape(call[1]) == _shape(given[1])
        and len(changed) == 1
        and any(text in wanted for text in _without_one(changed[0], damage.moved))
    )


def _without_one(text: str, mark: str) -> Iterator[str]:
    for found in re.finditer(re.escape(mark), text):
        yield text[: found.start()] + text[found.end() :]


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


def check_damages(count: int, seed: int) -> int:
    """Checks `count` damaged replies, each read by the formats `json` and `xml`. Returns the number of calls read.

    Raises:
        AssertionError: A reading is wrong, or an undamaged reply loses a call without a word.
    """
    chance, found, left = random.Random(seed), 0, count
    while left > 0:
        form, calls = chance.choice(list(FORMS)), random_calls(chance)
        name = chance.choice(list(PROTOCOLS))
        whole = PROTOCOLS[name].parse(FORMS[form](calls), TOOLS)
        if not whole.calls:
            assert whole.is_refused, (form, FORMS[form](calls))
            continue
        every = list(damages(form, calls))
        for damage in chance.sample(every, min(_A_REPLY, len(every))):
            reply = PROTOCOLS[name].parse(damage.text, TOOLS)
            wrong = wrong_reading(damage, reply)
            assert not wrong, (wrong, name, form, damage.kind, damage.text)
            found += len(reply.calls)
            left -= 1
    return found
