"""Parts of a native reply that are neither text nor thinking nor a call. None of them may disappear without a word."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from toolwire.protocols.native.fields import field_in, fields, text_in
from toolwire.vocabulary.calls import Problem

ARGUMENT_KEYS = frozenset(
    {"arguments", "argument", "input", "inputs", "args", "parameters", "params", "kwargs"}
    | {"tool_input", "tool_args", "action_input"}
)
"""Keys under which the APIs and models give the arguments of a call."""

CALL_KEYS = ARGUMENT_KEYS | {"name", "tool", "tool_name", "function", "func", "function_name"}
"""Keys in lower case of what a call must have. Beside the own key of an API, they hold what would be lost."""

_CALL_WORDS = ("call", "tool_use", "function")
"""Words in the types and keys of calls, in whatever API."""

_SHOWN = 40
"""Maximum number of characters of a type or key in a message."""


def unread_part(part: Any, where: str, unread: list[str]) -> list[Problem]:
    """Adds a part that no reader takes to `unread`, in words. `where` is the field that holds it.

    Returns the reason for a refusal if the part cannot be read at all, or may be a call: it would be lost.
    """
    if not isinstance(part, Mapping):
        return [unreadable(where, part)]
    kind = text_in(part, "type")
    label = f"a part of the type {kind[:_SHOWN]!r}" if kind else f"a part with the keys {_keys(part)}"
    if is_call_like(part):
        return [Problem(message=f"A{label[1:]} looks like a call, and is not one.", repaired=False)]
    unread.append(label)
    return []


def unread_fields(holder: Any, known: AbstractSet[str], unread: list[str]) -> None:
    """Adds the fields of an object that no reader takes and that may hold a text or a call."""
    for key, value in (fields(holder) or {}).items():
        if key not in known and isinstance(value, str | list | Mapping) and value:
            unread.append(f"a field {str(key)[:_SHOWN]!r}")


def unreadable(where: str, value: Any) -> Problem:
    """Returns the refusal of a value that is not what its API has in this field."""
    return Problem(
        message=f"`{where}` holds a {type(value).__name__}, and its API has something else there.", repaired=False
    )


def wrong_text(where: str, part: Any, key: str) -> list[Problem]:
    """Returns the refusal of a part whose text is something else. Empty for a text, and for a part without one."""
    value = field_in(part, key)
    return [] if isinstance(value, str | None) else [unreadable(f"{where}.{key}", value)]


def is_call_like(part: Any) -> bool:
    """True for a part with a name and arguments, or with the type or key of a call in some API."""
    kind = text_in(part, "type")
    words = [kind] if kind else [str(key) for key in part]
    has_word = any(word in text.lower().replace("-", "_") for text in words for word in _CALL_WORDS)
    return has_word or has_arguments(part)


def has_arguments(part: Any) -> bool:
    """True for a part with a name and arguments."""
    return bool(text_in(part, "name")) and any(key in part for key in ARGUMENT_KEYS)


def _keys(part: Any) -> str:
    return ", ".join(str(key)[:_SHOWN] for key in list(cast("Mapping[str, Any]", part))[:4]) or "none"
