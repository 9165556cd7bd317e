"""Safe access to the fields of a provider's reply. No field is assumed to have the expected type."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from toolwire.protocols.base import DEPTH_LIMIT, DIGIT_LIMIT, REPLY_LIMIT_BYTES, Refusal
from toolwire.protocols.reading.incoming import read_incoming
from toolwire.protocols.reading.strict_json import check_characters, check_key, load_json
from toolwire.vocabulary.errors import ConfigurationError

_JSON_BEGINS = re.compile(r'\s*(?:\{\s*"|\[\s*\{)')
_BITS_LIMIT = DIGIT_LIMIT * 3.3219
"""Maximum number of bits of an integer with `DIGIT_LIMIT` digits."""

_SHOWN_KEYS = 6
"""Number of keys of an unknown object that an error message lists."""

_SENT_LEVELS = 8
"""Levels of a reply above the arguments of its calls: candidates, content, parts, call, and the lists between."""


def read_body(reply: Any) -> str | list[Any] | Mapping[str, Any]:
    """Returns the reply in JSON types, as its provider sent it, or as text. JSON text is parsed; bytes are UTF-8.

    Raises:
        Refusal: The reply is too long, or its JSON is malformed.
        ConfigurationError: The reply has an unsupported type.
    """
    if isinstance(reply, str | bytes):
        text = read_incoming(reply).text
        if not text.lstrip().startswith(("{", "[")):
            return text
        try:
            value = load_json(text)
            return cast("Any", value) if isinstance(value, dict | list) else text
        except json.JSONDecodeError as error:
            if _JSON_BEGINS.match(text):
                raise Refusal(
                    f"The reply is JSON that cannot be read ({error.msg}).", place=f"line {error.lineno}"
                ) from error
            return text
    body = as_sent(reply)
    if not isinstance(body, list | Mapping):
        raise ConfigurationError(
            f"a reply is text, a mapping or the SDK's own object, and this one is of type {type(reply).__name__}"
        )
    return cast("list[Any] | Mapping[str, Any]", body)


def fields(value: Any) -> Mapping[str, Any] | None:
    """Returns the fields of a mapping or of an SDK object. None for any other value."""
    # The test for a mapping costs ten times the one for a dict, and each piece of a stream takes several.
    if type(value) is dict or isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    dump = getattr(cast("Any", type(value)), "model_dump", None)
    if dump is None:
        return None
    try:
        found = dump(value, warnings=False)
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def as_sent(value: Any, levels: int = _SENT_LEVELS) -> Any:
    """Returns a reply as its provider sent it, in JSON types: an SDK object without the fields that the SDK added.

    Values below `levels` are returned unchanged. They are a call's arguments, which JSON gave already.
    """
    dump = getattr(cast("Any", type(value)), "model_dump", None)
    if dump is not None:
        try:
            return dump(value, mode="json", exclude_unset=True, warnings=False)
        except (TypeError, ValueError, AttributeError, RecursionError):
            return fields(value)
    if levels and isinstance(value, Mapping):
        return {key: as_sent(item, levels - 1) for key, item in cast("Mapping[Any, Any]", value).items()}
    if levels and isinstance(value, list | tuple):
        return [as_sent(item, levels - 1) for item in cast("list[Any]", value)]
    return value


def bytes_as_text(message: Any, levels: int = _SENT_LEVELS) -> Any:
    """Returns a message with its bytes, such as a signature, in base64 as JSON has them.

    Bytes in arguments of a call are not JSON, and refuse the call. Values below `levels` are returned unchanged.
    """
    if isinstance(message, bytes):
        return base64.b64encode(message).decode("ascii")
    if levels and isinstance(message, dict):
        keyed = cast("dict[Any, Any]", message)
        return {key: bytes_as_text(item, levels - 1) for key, item in keyed.items()}
    if levels and isinstance(message, list):
        return [bytes_as_text(item, levels - 1) for item in cast("list[Any]", message)]
    return message


def inner(value: Any, *names: str) -> Mapping[str, Any]:
    """Returns the fields of the first of these names that is present. Empty if none is."""
    return fields(field_in(value, *names)) or {}


def field_in(value: Any, *names: str) -> Any:
    """Returns the value of the first of these names that is present and not null."""
    body = fields(value) or {}
    for name in names:
        found = body.get(name)
        if found is not None:
            return found
    return None


def text_in(value: Any, *names: str) -> str:
    """Returns the text of the first of these names that is present. Empty if none is."""
    found = field_in(value, *names)
    return found if isinstance(found, str) else ""


def items_in(value: Any, *names: str) -> list[Any]:
    """Returns the list of the first of these names that is present. Empty if none is."""
    found = field_in(value, *names)
    return list(cast("list[Any]", found)) if isinstance(found, list | tuple) else []


def first_alternative(found: list[Any]) -> Any:
    """Returns the alternative with the index 0 of those of one reply, else the first one. None of none."""
    return next((one for one in found if field_in(one, "index") == 0), found[0] if found else None)


def describe_error(error: Any) -> str:
    """Returns a provider's text on its own failure."""
    words = text_in(error, "message") or (error if isinstance(error, str) else "") or text_in(error, "code", "type")
    return words or "without a reason"


def describe_object(reply: Any, body: Any) -> str:
    """Describes an unknown object for an error message: its type, its first keys, and which of them are empty."""
    kind = f"a {type(reply).__name__}"
    if not isinstance(body, Mapping):
        return kind
    body = cast("Mapping[Any, Any]", body)
    keys = list(body)[:_SHOWN_KEYS]
    empty = [str(key) for key in keys if isinstance(body[key], list | tuple) and not body[key]]
    shown = f"{kind} with the keys {', '.join(map(str, keys)) or 'none'}"
    return f"{shown} ({', '.join(empty)} empty)" if empty else shown


def check_object(arguments: Any) -> None:
    """Checks that the arguments are a JSON object within the limits.

    Raises:
        Refusal: The arguments are not an object, or exceed a limit.
    """
    if not isinstance(arguments, dict):
        raise Refusal("The arguments are not an object. Write one JSON object with the parameters' names as keys.")
    level: list[Any] = [arguments]
    size = 0
    for _ in range(DEPTH_LIMIT):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                keyed = cast("dict[Any, Any]", value)
                size += sum(_key_size(key) for key in keyed)
                below.extend(keyed.values())
            elif isinstance(value, list):
                below.extend(cast("list[Any]", value))
            else:
                size += _scalar_size(value)
        if size + len(below) > REPLY_LIMIT_BYTES:
            raise Refusal(f"The arguments are longer than {REPLY_LIMIT_BYTES} bytes. Write less.")
        if not below:
            return
        level = below
    raise Refusal(f"The arguments are nested deeper than {DEPTH_LIMIT} levels. Write a flatter value.")


def _key_size(key: Any) -> int:
    if not isinstance(key, str):
        raise Refusal(f"The arguments have the key {key!r:.40}. Keys are strings.")
    check_key(key)
    return _scalar_size(key)


def _scalar_size(value: Any) -> int:
    if isinstance(value, str):
        check_characters(value)
        return len(value.encode("utf-8"))
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise Refusal(f"The arguments hold {value}, which is not a JSON number. Write a number or null.")
    if isinstance(value, int) and value.bit_length() > _BITS_LIMIT:
        raise Refusal(f"The arguments hold an integer of more than {DIGIT_LIMIT:,} digits. Write a shorter one.")
    if value is not None and not isinstance(value, int | float):
        raise Refusal(f"The arguments hold a {type(value).__name__}, which is not a JSON value.")
    return 8
