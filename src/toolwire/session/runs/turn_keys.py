"""Keys of turns: the same key in the same conversation is the same run."""

from __future__ import annotations

import hashlib

from toolwire.journal.run import KEYED
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

KEY_LIMIT = 200
"""Maximum number of characters of a key: ids of messages and calls fit, and whole messages do not."""
_DIGITS = 32
"""Hexadecimal digits of a run's id: 128 bits, as in the ids of other runs."""


def keyed_run_id(conversation: str, key: object) -> str:
    """Returns the id of the run that this key has in this conversation.

    Raises:
        ConfigurationError: The key is no text, is empty, or is too long.
    """
    if not isinstance(key, str) or not 0 < len(key) <= KEY_LIMIT:
        raise ConfigurationError(
            f"turn(key={key!r:.80}): give a text of 1 to {KEY_LIMIT} characters, such as the id of a message"
        )
    # The length keeps a conversation and a key from standing for another pair.
    named = utf8_bytes(f"{len(conversation)} {conversation}{key}")
    return KEYED + hashlib.sha256(named).hexdigest()[:_DIGITS]
