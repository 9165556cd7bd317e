"""Resources and prompts of other servers, as they are told to clients: with bounded texts, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

import mcp_types as types

from toolwire.definition.naming import NAME_LIMIT
from toolwire.definition.texts.outside_texts import told_text
from toolwire.mcp.client_limits import OFFER_CHARACTERS

T = TypeVar("T", types.Resource, types.ResourceTemplate)

_LOG = logging.getLogger("toolwire.gateway")


def told_resource(server: str, offer: T, uri: Mapping[str, str]) -> T | None:
    """Returns a resource or template with its served URI; None for one that cannot be shown. A warning says why."""
    if not _can_be_told(server, offer, next(iter(uri.values()))):
        return None
    return offer.model_copy(update={"name": told_text(offer.name), **_texts(offer), **uri})


def told_prompt(server: str, prompt: types.Prompt, name: str) -> types.Prompt | None:
    """Returns a prompt with its served name; None for one that cannot be shown. A warning says why."""
    arguments = prompt.arguments or []
    if not _can_be_told(server, prompt, "".join(one.name for one in arguments)):
        return None
    if any(len(one.name) > NAME_LIMIT for one in arguments):
        _LOG.warning("the prompt %r of %r is off: an argument has a name that is too long", prompt.name, server)
        return None
    told = [one.model_copy(update=_texts(one)) for one in arguments]
    return prompt.model_copy(update={"name": name, **_texts(prompt), "arguments": told or None})


def _can_be_told(server: str, offer: Any, words: str) -> bool:
    """True if its words, which a client must give back unchanged, have no hidden characters, and it is not too long."""
    size = len(offer.model_dump_json(by_alias=True, exclude_none=True))
    if words.isprintable() and size <= OFFER_CHARACTERS:
        return True
    why = "it is too long" if size > OFFER_CHARACTERS else "its words have hidden characters"
    _LOG.warning("%r of the MCP server %r is off: %s", offer.name[:80], server, why)
    return False


def _texts(offer: Any) -> dict[str, str | None]:
    texts = {"title": offer.title, "description": offer.description}
    return {key: None if text is None else told_text(text) for key, text in texts.items()}
