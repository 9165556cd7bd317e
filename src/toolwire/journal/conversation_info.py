"""Conversations as a store describes them, and their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError

NAME_LIMIT = 200
"""Maximum number of characters in a conversation's name: an address or a path fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationInfo:
    """A conversation as `Store.conversations` describes it.

    Attributes:
        conversation: The name of the conversation.
        caller: The caller of its first turn. The conversation belongs to this caller's principal.
        created_at: Start of the first turn, in seconds since the epoch.
        updated_at: Start of the latest turn, or a later change, in seconds since the epoch.
        taints: Labels of the data that its turns have read.
        version: Version of its document; 0 without one.
        runs: Number of its runs.
        damaged: What is wrong with its record, if it cannot be read; else empty. The caller and the labels are not
            known then, and no turn of it runs.
    """

    conversation: str
    caller: Caller
    created_at: float
    updated_at: float
    taints: tuple[Label, ...]
    version: int
    runs: int
    damaged: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The document of a conversation as `Store.document` returns it.

    Attributes:
        value: The value that was saved; None if none was.
        version: The number of times that it was saved; 0 if it never was.
        saved_at: Time of the last save, in seconds since the epoch; 0 if it never was saved.
    """

    value: Any
    version: int
    saved_at: float


def check_name(conversation: str) -> str:
    """Returns the name of a conversation.

    Raises:
        ConfigurationError: It is not a text of 1 to `NAME_LIMIT` printable characters.
    """
    given = cast("object", conversation)
    if isinstance(given, str) and 0 < len(given) <= NAME_LIMIT and given.isprintable():
        return conversation
    raise ConfigurationError(
        f"conversation={given!r:.80}: give a text of 1 to {NAME_LIMIT} printable characters, "
        "such as conversation='c-17'"
    )


def is_owner(owner: Caller, caller: Caller) -> bool:
    """Returns whether a conversation of `owner` belongs to a caller. Agents of one principal share it."""
    return (owner.principal, owner.tenant) == (caller.principal, caller.tenant)


def refuse_other(conversation: str, owner: Caller, caller: Caller) -> None:
    """Refuses a caller to whom the conversation does not belong.

    Raises:
        DecisionRefused: `not_permitted`.
    """
    if not is_owner(owner, caller):
        raise DecisionRefused(
            "not_permitted",
            f"conversation {conversation!r} is another principal's: use another id, or give caller= its own caller",
        )
