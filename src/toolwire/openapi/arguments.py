"""The arguments of a call in the form in which FastMCP's director puts them into a request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from fastmcp.utilities.openapi import HTTPRoute
from fastmcp.utilities.openapi.director import RequestDirector

DIRECTOR = RequestDirector(cast("Any", None))
"""Makes requests. It only keeps the document that it is given, whose paths would fetch references."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_COOKIE_BREAKS = re.compile(r'[\x00-\x20\x7f",;\\]')


class WrongArgument(Exception):
    """An argument cannot be sent. The message is for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one argument goes in the request."""

    location: str
    """`path`, `query`, `header`, `cookie` or `body`."""
    name: str
    """The name in the document."""
    style: str
    """The style of OpenAPI for lists and objects; empty for a body."""
    is_exploded: bool
    """True if each item of a list stands alone."""
    is_json: bool
    """True for a parameter or a field of a form that the document describes as JSON."""
    is_form: bool = False
    """True for a field of a form."""
    is_whole: bool = False
    """True if the argument is the whole body."""


_STYLES = {"path": "simple", "header": "simple", "query": "form", "cookie": "form"}


def places_of(route: HTTPRoute, declared: list[dict[str, Any]]) -> dict[str, Place]:
    """Returns the place of each argument. `declared` are the parameters as the document has them."""
    as_json = {(each.get("in"), each.get("name")) for each in declared if each.get("content")}
    styles = {(each.location, each.name): (each.style, each.explode) for each in route.parameters}
    found: dict[str, Place] = {}
    for argument, mapping in route.parameter_map.items():
        location, name = mapping["location"], mapping["openapi_name"]
        if location == "body":
            found[argument] = _place_in_body(route, name)
            continue
        style, explode = styles.get((cast("Any", location), name), (None, None))
        style = style or _STYLES[location]
        found[argument] = Place(
            location=location,
            name=name,
            style=style,
            is_exploded=style == "form" if explode is None else explode,
            is_json=(location, name) in as_json,
        )
    return found


def _place_in_body(route: HTTPRoute, name: str) -> Place:
    content_type, encoding = content_type_of(route), dict[str, Any]()
    if route.request_body is not None:
        encoding = route.request_body.encoding.get(content_type, {}).get(name, {})
    return Place(
        location="body",
        name=name,
        style="form",
        is_exploded=encoding.get("explode") is not False,
        is_json="json" in str(encoding.get("contentType", "")),
        is_form="form" in content_type,
        is_whole=_is_whole_body(route),
    )


def _is_whole_body(route: HTTPRoute) -> bool:
    """True if the body is one argument. The director alone knows, so it makes a request to look at."""
    locations = {name: mapping["location"] for name, mapping in route.parameter_map.items()}
    in_body = [name for name, location in locations.items() if location == "body"]
    probe = {name: "x" for name, location in locations.items() if location == "path" or name == in_body[0]}
    return len(in_body) == 1 and DIRECTOR.build(route, probe).read() in (b"x", b'"x"')


def content_type_of(route: HTTPRoute) -> str:
    """Returns the content type of the body; empty without one."""
    body = route.request_body
    return next(iter(body.content_schema), "") if body is not None else ""


def written(arguments: Mapping[str, Any], places: Mapping[str, Place]) -> dict[str, Any]:
    """Returns the arguments with lists and objects written as their places want them.

    Raises:
        WrongArgument: One cannot be sent there.
    """
    return {name: value if value is None else _written(value, places[name]) for name, value in arguments.items()}


def _written(value: Any, place: Place) -> Any:
    if place.is_json:
        return json.dumps(value)
    if place.location == "body":
        return _in_form(value, place) if place.is_form else value
    if place.location == "query":
        return _in_query(value)
    text = _TEXTS[place.location](value, place)
    if place.location == "path" and not text:
        raise WrongArgument(f"{place.name!r} is part of the path and must not be empty")
    if place.location == "header" and (_CONTROLS.search(text) or not text.isascii()):
        raise WrongArgument(f"{place.name!r} is a header and must be one line of ASCII characters")
    if place.location == "cookie" and (_COOKIE_BREAKS.search(text) or not text.isascii()):
        raise WrongArgument(f"{place.name!r} is a cookie and must be ASCII without spaces, commas and semicolons")
    return text


def scalar_text(value: Any) -> str:
    """Returns a value as one text: JSON, but a string as it is."""
    return value if isinstance(value, str) else json.dumps(value)


def _in_query(value: Any) -> Any:
    """Leaves the first level of lists and objects to the director, which knows their styles."""
    if isinstance(value, list):
        return [scalar_text(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: scalar_text(inner) for key, inner in cast("dict[str, Any]", value).items()}
    return scalar_text(value)


def _in_form(value: Any, place: Place) -> Any:
    """Returns a field of a form: a list becomes one field for each item, and an object becomes JSON."""
    if place.is_whole and isinstance(value, dict):
        field = replace(place, is_whole=False)
        return {key: _in_form(inner, field) for key, inner in cast("dict[str, Any]", value).items()}
    if not isinstance(value, list):
        return scalar_text(value)
    items = [scalar_text(item) for item in cast("list[Any]", value)]
    return (items or None) if place.is_exploded else ",".join(items)


def _parts(value: Any, place: Place) -> list[str]:
    """Returns the items of a list, or the members of an object, as texts."""
    if isinstance(value, list):
        return [scalar_text(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        if place.is_exploded:
            return [f"{key}={scalar_text(inner)}" for key, inner in members]
        return [text for key, inner in members for text in (key, scalar_text(inner))]
    return [scalar_text(value)]


def _in_path(value: Any, place: Place) -> str:
    parts = _parts(value, place)
    match place.style:
        case "label":
            return "." + ("." if place.is_exploded else ",").join(parts)
        case "matrix" if isinstance(value, dict) and place.is_exploded:
            return "".join(f";{part}" for part in parts)
        case "matrix" if place.is_exploded:
            return "".join(f";{place.name}={part}" for part in parts)
        case "matrix":
            return f";{place.name}={','.join(parts)}"
        case _:
            return ",".join(parts)


def _joined(value: Any, place: Place) -> str:
    return ",".join(_parts(value, place))


def _in_cookie(value: Any, place: Place) -> str:
    # A list is joined by "," in the standard, which cookies cannot have; "%2C" is read as one by most servers.
    return "%2C".join(_parts(value, place))


_TEXTS: dict[str, Callable[[Any, Place], str]] = {"path": _in_path, "header": _joined, "cookie": _in_cookie}
