"""The wording of messages about arguments: expected types, given values, places, and similar names."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from itertools import islice
from typing import Any, ParamSpec, TypeVar, cast
from urllib.parse import unquote

from toolwire.vocabulary.texts.counting import count_of

SHOWN_LIMIT = 80
"""Maximum number of characters of a value in a message."""

_CHOICES_LIMIT = 20
"""Maximum number of allowed values in a message."""

_NEAR_LIMIT = 128
"""Maximum length in characters of a name that is compared with others. The comparison takes quadratic time."""

_NAMES_LIMIT = 500
"""Maximum number of names that one name is compared with."""

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

_ARTICLES = {"string": "a ", "number": "a ", "boolean": "a ", "integer": "an ", "array": "an ", "object": "an "}

_NUMBER_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
}
_BOUNDS: Mapping[str, Mapping[str, str]] = {
    "integer": _NUMBER_BOUNDS,
    "number": _NUMBER_BOUNDS,
    "string": {
        "minLength": "at least {} character",
        "maxLength": "at most {} character",
        "pattern": "matching {}",
    },
    "array": {"minItems": "at least {} item", "maxItems": "at most {} item"},
}
"""The words for the limits that a schema sets to values of each type, with nouns in the singular."""


REFERENCES_LIMIT = 2_000
"""Maximum number of references followed for one text about a tool.

A prompt has a few hundred; a schema may have any.
"""

P = ParamSpec("P")
R = TypeVar("R")

_LEFT: ContextVar[list[int] | None] = ContextVar("left", default=None)
"""Number of references that may still be followed, in a list of one; None outside of `limit_references`."""


def limit_references(function: Callable[P, R]) -> Callable[P, R]:
    """Limits the references followed inside the function to `REFERENCES_LIMIT`, including those of inner calls.

    Beyond the limit a reference reads as an empty schema, because a few lines of definitions can expand to billions.
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


@limit_references
def describe_values(schema: Any, root: Mapping[str, Any], depth: int = 4) -> str:
    """Describes the values that a schema accepts, in JSON Schema's words: `array of integer`, `one of 'a', 'b'`."""
    return " or ".join(_options(schema, root, depth))


@limit_references
def describe_one_value(schema: Any, root: Mapping[str, Any]) -> str:
    """Describes one value for a sentence: as `describe_values`, with articles, such as `an integer or null`."""
    return " or ".join(f"{_ARTICLES.get(one.partition(' ')[0], '')}{one}" for one in _options(schema, root, 4))


def _options(schema: Any, root: Mapping[str, Any], depth: int) -> list[str]:
    node = resolve(schema, root)
    if "enum" in node or "const" in node:
        return [_choice(node["enum"] if "enum" in node else [node["const"]])]
    for key in ("anyOf", "oneOf"):
        if key in node and depth:
            return list(dict.fromkeys(text for option in node[key] for text in _options(option, root, depth - 1)))
    kinds = node.get("type")
    if isinstance(kinds, list):
        return [text for kind in cast("list[str]", kinds) for text in _options({**node, "type": kind}, root, depth)]
    return [_type_words(kinds, node, root, depth)]


def resolve(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema with local references followed.

    `{}` if a reference cannot be followed, or for a non-object.
    """
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
        schema = resolve_pointer(str(node["$ref"]), root)
    return {}


@limit_references
def flatten_schema(schema: Any, root: Mapping[str, Any], depth: int = 8) -> dict[str, Any]:
    """Returns the schema with references followed and the parts of `allOf` merged.

    If two parts set the same keyword, the later one counts, except that properties and required names are combined.
    """
    node = resolve(schema, root)
    parts = cast("list[Any]", node.get("allOf") or [])
    if not parts or depth <= 0:
        return node
    whole: dict[str, Any] = {}
    own = {key: value for key, value in node.items() if key != "allOf"}
    for part in [*(flatten_schema(one, root, depth - 1) for one in parts), own]:
        properties = {**whole.get("properties", {}), **part.get("properties", {})}
        required = [*whole.get("required", []), *part.get("required", [])]
        whole |= part
        if properties:
            whole |= {"properties": properties, "required": list(dict.fromkeys(required))}
    return whole


def short_repr(value: Any) -> str:
    """Returns the value as text, short enough for a message."""
    text = _short.repr(value)
    return text if len(text) <= SHOWN_LIMIT else f"{text[: SHOWN_LIMIT - 3]}..."


def path_text(place: Sequence[str | int]) -> str:
    """Returns `("rows", 0, "name")` as `rows[0].name`."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Returns the name that was probably meant. None if no name is similar."""
    if len(name) > _NEAR_LIMIT:
        return None
    near_in_length = (known for known in names if abs(len(known) - len(name)) <= len(name))
    found = difflib.get_close_matches(name, list(islice(near_in_length, _NAMES_LIMIT)), n=1, cutoff=0.7)
    return found[0] if found else None


def nearest_hint(name: str, names: Iterable[str]) -> str:
    """Returns `did you mean 'limit'?`, or `it takes 'query', 'limit'`."""
    names = list(names)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    if not names:
        return "it takes none"
    more = f", ... ({len(names)} in all)" if len(names) > _CHOICES_LIMIT else ""
    return f"it takes {', '.join(short_repr(known) for known in names[:_CHOICES_LIMIT])}{more}"


def _type_words(kind: Any, node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if kind == "array" and depth:
        return _array(node, root, depth)
    if kind == "object":
        return _object(node)
    if kind == "string" and node.get("contentEncoding") == "base64":
        return "string of base64"
    if kind == "string" and node.get("format") in _FORMATS:
        return f"string ({_FORMATS[node['format']]})"
    return f"{kind}{_bounds(node, kind)}" if isinstance(kind, str) else "any value"


def _array(node: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if "prefixItems" in node:
        items = [describe_values(item, root, depth - 1) for item in node["prefixItems"]]
        return f"array of [{', '.join(items)}]"
    inner = describe_values(node.get("items"), root, depth - 1)
    return ("array" if inner == "any value" else f"array of {inner}") + _bounds(node, "array")


def _object(node: Mapping[str, Any]) -> str:
    names = list(cast("Mapping[str, Any]", node.get("properties") or {}))
    return f"object with {', '.join(names)}" if names else "object"


def _bounds(node: Mapping[str, Any], kind: str) -> str:
    found = [_bound(text, node[key]) for key, text in _BOUNDS.get(kind, {}).items() if key in node]
    return f" ({', '.join(found)})" if found else ""


def _bound(text: str, limit: Any) -> str:
    words, _, noun = text.partition("{} ")
    return f"{words}{count_of(limit, noun)}" if noun else text.format(limit)


def _choice(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return short_repr(values[0])
    listed = ", ".join(short_repr(value) for value in values[:_CHOICES_LIMIT])
    return f"one of {listed}" + (", ..." if len(values) > _CHOICES_LIMIT else "")


def resolve_pointer(reference: str, root: Mapping[str, Any]) -> Any:
    """Returns the target of a reference within the document, by its JSON pointer. None if it leads nowhere."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    node: Any = root
    for step in unquote(reference[1:]).split("/")[1:]:
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
"""Number of digits that an index in a JSON pointer must not reach; no list is that long."""


_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = SHOWN_LIMIT
