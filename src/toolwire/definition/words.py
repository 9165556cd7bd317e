"""The words in which arguments are spoken of: what a schema expects, what was given, where, and which name is near."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from itertools import islice
from typing import Any, ParamSpec, TypeVar, cast

SHOWN_LIMIT = 80
"""Characters of a value that a message shows."""

_CHOICES_LIMIT = 20
"""Allowed values that a message lists."""

_NEAR_LIMIT = 128
"""Characters of a name that others are compared with: the comparison takes time that grows with their square."""

_NAMES_LIMIT = 500
"""Names that one is compared with."""

_FORMATS = {
    "date-time": "date and time in ISO 8601",
    "date": "date in ISO 8601",
    "time": "time in ISO 8601",
    "duration": "duration in ISO 8601",
    "uuid": "UUID",
    "path": "path",
    "uri": "URL",
    "email": "e-mail address",
}

_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matching {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


REFERENCES_LIMIT = 2_000
"""References followed for one text about a tool: prompts list a few hundred, and a schema can hold any number."""

P = ParamSpec("P")
R = TypeVar("R")

_LEFT: ContextVar[list[int] | None] = ContextVar("left", default=None)
"""How many references may still be followed, in a list of one; None outside of `bounded`."""


def bounded(function: Callable[P, R]) -> Callable[P, R]:
    """The function, within which at most `REFERENCES_LIMIT` references are followed, those of inner ones included.

    Beyond it a reference reads as a schema that says nothing: definitions of a few lines can stand for billions.
    """

    @wraps(function)
    def within(*args: P.args, **kwargs: P.kwargs) -> R:
        if _LEFT.get() is not None:
            return function(*args, **kwargs)
        token = _LEFT.set([REFERENCES_LIMIT])
        try:
            return function(*args, **kwargs)
        finally:
            _LEFT.reset(token)

    return within


@bounded
def expected(schema: Any, root: Mapping[str, Any], depth: int = 4) -> str:
    """What the schema wants, in the words of JSON Schema: `array of integer`, `one of 'a', 'b'`."""
    node = resolve(schema, root)
    if "enum" in node or "const" in node:
        return _choice(node["enum"] if "enum" in node else [node["const"]])
    for key in ("anyOf", "oneOf"):
        if key in node and depth:
            options = dict.fromkeys(expected(option, root, depth - 1) for option in node[key])
            return " or ".join(options)
    kinds = node.get("type")
    if isinstance(kinds, list):
        return " or ".join(expected({**node, "type": kind}, root, depth) for kind in cast("list[str]", kinds))
    return _typed(kinds, node, root, depth)


def resolve(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with local references followed; `{}` for what cannot be followed or is no object."""
    for _ in range(32):
        if not isinstance(schema, dict):
            return {}
        node = cast("dict[str, Any]", schema)
        if "$ref" not in node:
            return node
        left = _LEFT.get()
        if left is not None:
            left[0] -= 1
            if left[0] < 0:
                return {}
        schema = pointed(str(node["$ref"]), root)
    return {}


@bounded
def flattened(schema: Any, root: Mapping[str, Any], depth: int = 8) -> dict[str, Any]:
    """The schema with references followed and the parts of `allOf` put together into one.

    Of two parts that speak of the same thing the later one counts; what only one of them says is kept.
    """
    node = resolve(schema, root)
    parts = cast("list[Any]", node.get("allOf") or [])
    if not parts or depth <= 0:
        return node
    whole: dict[str, Any] = {}
    own = {key: value for key, value in node.items() if key != "allOf"}
    for part in [*(flattened(one, root, depth - 1) for one in parts), own]:
        properties = {**whole.get("properties", {}), **part.get("properties", {})}
        required = [*whole.get("required", []), *part.get("required", [])]
        whole |= part
        if properties:
            whole |= {"properties": properties, "required": list(dict.fromkeys(required))}
    return whole


def shown(value: Any) -> str:
    """The value, short enough for a message."""
    text = _short.repr(value)
    return text if len(text) <= SHOWN_LIMIT else f"{text[: SHOWN_LIMIT - 3]}..."


def path_text(place: Sequence[str | int]) -> str:
    """`("rows", 0, "name")` as `rows[0].name`."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant; None when none is near."""
    if len(name) > _NEAR_LIMIT:
        return None
    near_in_length = (known for known in names if abs(len(known) - len(name)) <= len(name))
    found = difflib.get_close_matches(name, list(islice(near_in_length, _NAMES_LIMIT)), n=1, cutoff=0.7)
    return found[0] if found else None


def nearest_hint(name: str, names: Iterable[str]) -> str:
    """`did you mean 'limit'?`, or `it takes 'query', 'limit'`."""
    names = list(names)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    if not names:
        return "it takes none"
    more = f", ... ({len(names)} in all)" if len(names) > _CHOICES_LIMIT else ""
    return f"it takes {', '.join(shown(known) for known in names[:_CHOICES_LIMIT])}{more}"


def _typed(kind: Any, node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if kind == "array" and depth:
        return _array(node, root, depth)
    if kind == "object":
        return _object(node)
    if kind == "string" and node.get("contentEncoding") == "base64":
        return "string of base64"
    if kind == "string" and node.get("format") in _FORMATS:
        return f"string ({_FORMATS[node['format']]})"
    return f"{kind}{_bounds(node)}" if isinstance(kind, str) else "any value"


def _array(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if "prefixItems" in node:
        items = [expected(item, root, depth - 1) for item in node["prefixItems"]]
        return f"array of [{', '.join(items)}]"
    inner = expected(node.get("items"), root, depth - 1)
    return ("array" if inner == "any value" else f"array of {inner}") + _bounds(node)


def _object(node: Mapping[str, Any]) -> str:
    names = list(cast("Mapping[str, Any]", node.get("properties") or {}))
    return f"object with {', '.join(names)}" if names else "object"


def _bounds(node: Mapping[str, Any]) -> str:
    found = [text.format(node[key]) for key, text in _BOUNDS.items() if key in node]
    return f" ({', '.join(found)})" if found else ""


def _choice(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return shown(values[0])
    listed = ", ".join(shown(value) for value in values[:_CHOICES_LIMIT])
    return f"one of {listed}" + (", ..." if len(values) > _CHOICES_LIMIT else "")


def pointed(reference: str, root: Mapping[str, Any]) -> Any:
    """What a reference inside the document leads to, by its JSON pointer; None when it leads nowhere."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    node: Any = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = cast("dict[str, Any]", node).get(step)
        elif isinstance(node, list) and step.isascii() and step.isdigit():
            items = cast("list[Any]", node)
            node = items[int(step)] if len(step) < _INDEX_DIGITS and int(step) < len(items) else None
        else:
            return None
    return node


_INDEX_DIGITS = 9
"""Digits of an index in a JSON pointer; no list is that long."""


_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = SHOWN_LIMIT
