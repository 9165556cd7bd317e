"""Reads the variables that a program's process sends: the text of a stranger, which is checked like a frame."""

from __future__ import annotations

from typing import Any, TypeGuard, cast

from toolwire.sandbox.channel.frames import VariablesFrame
from toolwire.sandbox.channel.parsing import ProtocolViolation, guard_read, parse_frame, too_heavy, untag_value
from toolwire.sandbox.wire import WEIGHT_CAP, dump, weigh
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import tag
from toolwire.vocabulary.variables import VARIABLES_LIMIT_BYTES, bytes_of

_REASON_CAP = 100
"""Characters of a reason."""


def read_variables(text: str) -> VariablesFrame:
    """Returns the variables. Each value is read and written again, so that its text is the host's own.

    Raises:
        ProtocolViolation: The text is not what our own code sends.
    """
    data = utf8_bytes(text)
    if (weight := weigh(data)) > WEIGHT_CAP:
        raise too_heavy(weight)
    parts, _ = parse_frame(data)
    if len(parts) != 3 or not all(map(_is_named, parts)):
        raise ProtocolViolation("variables that are not complete")
    values, functions, left_out = parts
    if not all(type(line) is int and 0 < line < 1 << 31 for line in functions.values()):
        raise ProtocolViolation("a function without its line")
    if not all(type(reason) is str and len(reason) <= _REASON_CAP for reason in left_out.values()):
        raise ProtocolViolation("a reason that is not text")
    texts = {name: _variable_text(value) for name, value in values.items()}
    if bytes_of(texts) > VARIABLES_LIMIT_BYTES:
        raise ProtocolViolation(f"more than {VARIABLES_LIMIT_BYTES:,} bytes of variables")
    return VariablesFrame(texts, functions, left_out)


def _is_named(part: object) -> TypeGuard[dict[str, Any]]:
    return type(part) is dict and all(map(str.isidentifier, cast("dict[str, Any]", part)))


def _variable_text(value: Any) -> str:
    return guard_read(lambda: dump(tag(untag_value(value))))
