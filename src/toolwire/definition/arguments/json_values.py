"""Values that JSON lacks, as models write them: bytes, and the members of enumerations.

A text for a `bytes` parameter is read as base64; real bytes pass unchanged. A member of an enumeration or a `Literal`
is read from the form that its schema lists, such as `"P1D"` for a timedelta and `[1, 2]` for a tuple. pydantic does
both only for JSON text, and arguments are Python objects. The core schema is therefore rewritten.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any, cast
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError, PydanticSerializationError, core_schema, to_jsonable_python

from toolwire.definition.hostile.core_tree import CLASSES, with_children
from toolwire.vocabulary.exact import exact
from toolwire.vocabulary.values import plain_value


def with_json_values(schema: Any) -> tuple[Any, bool]:
    """Returns the core schema that takes these values from JSON, and True if something inside a class changed."""
    found: list[bool] = []
    return _wrap_json_values(schema, False, found), any(found)


def _wrap_json_values(schema: dict[str, Any], in_class: bool, found: list[bool]) -> Any:
    kind = schema.get("type")
    if kind == "bytes":
        found.append(in_class)
        return _read_before(_decode_base64, schema)
    if kind in ("enum", "literal"):
        members = cast("list[Any]", schema["members" if kind == "enum" else "expected"])
        if all(_is_in_json(_value(member)) for member in members):
            return schema
        found.append(in_class)
        return _read_before(_member_reader(members), schema)
    if kind == "union" and any(_type(choice) == "str" for choice in schema["choices"]):
        # Text for `bytes | str` stays text: reading it as base64 would be a guess.
        return {**schema, "choices": [_wrap_unless_bytes(choice, in_class, found) for choice in schema["choices"]]}
    in_class = in_class or kind in CLASSES
    return with_children(schema, lambda child: _wrap_json_values(child, in_class, found))


def _read_before(read: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    """Returns the schema with a function before it. References to the schema lead to the function."""
    inner = {key: value for key, value in schema.items() if key != "ref"}
    return core_schema.no_info_before_validator_function(read, cast("Any", inner), ref=schema.get("ref"))


def _wrap_unless_bytes(choice: Any, in_class: bool, found: list[bool]) -> Any:
    return choice if _type(choice) == "bytes" else _wrap_json_values(choice, in_class, found)


def _type(choice: Any) -> Any:
    schema = cast("tuple[Any, ...]", choice)[0] if isinstance(choice, tuple) else choice
    return schema.get("type")


def _decode_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise PydanticCustomError("base64", "it is not base64") from error


# -- members of enumerations -------------------------------------------------------------------------------------

_JSON_TYPES: frozenset[object] = frozenset({str, int, float, bool, type(None)})
_EXACT_TYPES = _JSON_TYPES - {float}
"""Types of values that need no other form. A float may be infinite."""
_BY_VALUE: frozenset[object] = frozenset({date, datetime, time, timedelta, Decimal, UUID})
"""Types whose values have several spellings in JSON, such as `P1D` and `PT24H`."""


def json_form(value: Any) -> Any:
    """Returns the value as pydantic writes it. Bytes that are not UTF-8 text are written as base64, NaN as "NaN".

    Raises:
        PydanticSerializationError: pydantic does not know the type.
    """
    try:
        form = to_jsonable_python(value)
    except UnicodeDecodeError:
        form = to_jsonable_python(value, bytes_mode="base64")
    return form if type(form) in _EXACT_TYPES else plain_value(form)


def _is_in_json(value: Any) -> bool:
    return type(value) in _JSON_TYPES and not (type(value) is float and not isfinite(value))


def _value(member: Any) -> Any:
    return member.value if isinstance(member, Enum) else member


def _member_reader(members: Iterable[Any]) -> Callable[[Any], Any]:
    """Returns the function from a JSON value to the member that it means. Other values pass unchanged."""
    # A member whose own value is the text comes before one that is only written as this text.
    ordered = sorted(members, key=lambda member: _is_in_json(_value(member)))
    by_form: dict[str, Any] = {}
    for member in ordered:
        with suppress(PydanticSerializationError, ValueError):
            by_form[exact(json_form(_value(member)))] = member
    others = [member for member in ordered if type(_value(member)) in _BY_VALUE | {bytes}]

    def read(given: Any) -> Any:
        kind: Any = cast("Any", type(given))
        if kind in (str, list, dict):
            with suppress(TypeError, ValueError, RecursionError):
                form = exact(given)
                if form in by_form:
                    return by_form[form]
        if kind in (str, int, float):
            return next((member for member in others if _means(given, _value(member))), given)
        return given

    return read


def _means(given: Any, value: Any) -> bool:
    """True if the text is another spelling of the value. A number means a Decimal alone, not the seconds of a time."""
    kind = cast("Any", type(value))
    if kind is not Decimal and type(given) is not str:
        return False
    try:
        return (_decode_base64(given) if kind is bytes else _adapter(kind).validate_python(given)) == value
    except (ValidationError, PydanticCustomError):
        return False


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
