"""An ATTP reply, read: as strict TOML first, and repaired only if that fails."""

from __future__ import annotations

import tomllib
from typing import Any

from toolwire.protocols.attp_document import Source, reply_of
from toolwire.protocols.attp_layout import find_layout
from toolwire.protocols.attp_recover import recover
from toolwire.protocols.base import Refusal
from toolwire.protocols.incoming import read_incoming, text_given
from toolwire.protocols.toml_limits import load_toml
from toolwire.vocabulary.calls import Reply


def parse_attp(reply: Any) -> Reply:
    """What the reply asks for: one program, a failure, or nothing with the reasons why it was refused.

    Raises:
        ConfigurationError: the host gave something that is not text.
    """
    text = text_given(reply, "attp")
    try:
        return _read(text)
    except Refusal as refusal:
        return Reply(text=refusal.text, problems=(refusal.problem,))


def _read(reply: str | bytes) -> Reply:
    incoming = read_incoming(reply)
    text = incoming.text
    raw = reply if isinstance(reply, str) else text
    try:
        document = load_toml(text)
    except tomllib.TOMLDecodeError as error:
        return recover(text, raw=raw, problems=incoming.problems, error=error)
    except Refusal:
        find_layout(text)  # text without a document is refused as that, whatever its size
        raise
    return reply_of(document, Source(raw=raw, text=text, problems=incoming.problems))
