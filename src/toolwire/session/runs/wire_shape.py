"""The allowed keys and types of portable forms. They hold JSON types only, and reading them builds no objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolwire.permission.approval import ANSWERS, DecisionRefused
from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.strict_json import load_json
from toolwire.session.runs.portable_json import from_portable

WIRE_LIMIT_BYTES = 16_777_216
"""Maximum size in bytes of a suspended run or of decisions. 64 calls with programs of 64 KB need a quarter of it."""

Shape = Mapping[str, "Field"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The allowed values of one key."""

    kinds: tuple[type, ...]
    """The allowed types, compared exactly."""
    items: type | None = None
    """The exact type of the items of a list or object; None for any."""
    within: tuple[str, ...] = ()
    """The allowed texts of the value or its items; empty for any."""
    shape: Shape | None = None
    """The keys of an object, if they are known."""
    required: bool = True
    """True if the key must be present."""


def _text_field(*within: str, required: bool = True) -> Field:
    return Field(kinds=(str,), within=within, required=required)


_TEXTS = Field(kinds=(list,), items=str)
_OBJECT = Field(kinds=(dict,))
_MOMENT = Field(kinds=(str, type(None)))
_COUNT = Field(kinds=(int,))
_ANY = (dict, list, str, int, float, bool, type(None))

SUSPENDED: Shape = {
    "v": _text_field(),
    "kind": _text_field("suspended_run"),
    "run_id": _text_field(),
    "rev": _COUNT,
    "principal": _text_field(),
    "created_at": _MOMENT,
    "expires_at": _MOMENT,
    "engine": _text_field(),
    "policy_digest": _text_field(),
    "tools": Field(kinds=(dict,), items=str),
    "journal": Field(kinds=(dict,), shape={"head": _COUNT, "root": _text_field()}),
    "pending": Field(kinds=(list,), items=dict),
    "mac": _OBJECT,
}
PENDING: Shape = {
    "id": _text_field(),
    "path": _TEXTS,
    "call_id": _text_field(),
    "tool": _text_field(),
    "arguments": _OBJECT,
    "arguments_digest": _text_field(),
    "effects": _TEXTS,
    "taints": _TEXTS,
    "reasons": _TEXTS,
    "expires_at": _MOMENT,
    "decisions": Field(kinds=(list,), items=str, within=ANSWERS),
    "arguments_schema": _OBJECT,
    "kind": _text_field("question", required=False),
    "question": _text_field(required=False),
    "answer_schema": Field(kinds=(dict,), required=False),
}
DECISIONS: Shape = {
    "v": _text_field(required=False),
    "kind": _text_field("decisions"),
    "run_id": _text_field(required=False),
    "rev": Field(kinds=(int,), required=False),
    "items": Field(kinds=(list,)),
}
ITEM: Shape = {
    "request_id": _text_field(),
    "verdict": _text_field(*ANSWERS),
    "arguments": Field(kinds=(dict,), required=False),
    "reason": _text_field(required=False),
    "answer": Field(kinds=_ANY, required=False),
    "seen_arguments_digest": _text_field(required=False),
    "by": Field(
        kinds=(dict,),
        shape={name: _text_field(required=False) for name in ("principal", "channel", "authn")},
        required=False,
    ),
}


def read_json(text: str | bytes, kinds: tuple[type, ...] = (dict,)) -> Mapping[str, Any]:
    """Parses the text strictly as an object, or as another type in `kinds`.

    Raises:
        DecisionRefused: `malformed`: the text is not JSON, is ambiguous, or exceeds a limit.
    """
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "replace"))
    if size > WIRE_LIMIT_BYTES:
        raise DecisionRefused("malformed", f"it has {size:,} bytes; at most {WIRE_LIMIT_BYTES:,} are allowed")
    try:
        value = from_portable(load_json(text.decode("utf-8") if isinstance(text, bytes) else text, surrogates=True))
    except UnicodeDecodeError as error:
        raise DecisionRefused("malformed", "it is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise DecisionRefused("malformed", f"it is not JSON: line {error.lineno}, column {error.colno}") from error
    except Refusal as refusal:
        raise DecisionRefused("malformed", str(refusal)) from refusal
    if type(value) not in kinds:
        raise DecisionRefused("malformed", "it is not a JSON object")
    return cast("Mapping[str, Any]", value)


def check_shape(value: Mapping[str, Any], shape: Shape, what: str) -> None:
    """Checks that an object has exactly the allowed keys, with allowed values.

    Raises:
        DecisionRefused: `malformed`.
    """
    for key in value:
        if key not in shape:
            raise DecisionRefused("malformed", f"{what}: the key {str(key)[:40]!r} is unknown")
    for key, field in shape.items():
        if key in value:
            _check_field(value[key], field, f"{what}: {key}")
        elif field.required:
            raise DecisionRefused("malformed", f"{what}: {key!r} is missing")


def _check_field(value: object, field: Field, place: str) -> None:
    if type(value) not in field.kinds:
        raise DecisionRefused("malformed", f"{place} must be {_kinds(*field.kinds)}, not {type(value).__name__}")
    if field.shape is not None:
        check_shape(cast("Mapping[str, Any]", value), field.shape, place)
    inside: list[object] = [value]
    if field.items is not None:
        inside = list(cast("dict[str, object]", value).values() if type(value) is dict else cast("list[object]", value))
        if any(type(item) is not field.items for item in inside):
            raise DecisionRefused("malformed", f"{place} must hold {_kinds(field.items)} only")
    if field.within and not all(item in field.within for item in inside):
        raise DecisionRefused("malformed", f"{place} must be one of {', '.join(field.within)}")


def _kinds(*kinds: type) -> str:
    return " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
