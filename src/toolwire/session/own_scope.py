"""The scope of a session, made from the tools that it is given."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from toolwire.catalogue.catalogue import Catalogue, Overlay
from toolwire.facade.driving import new_scope
from toolwire.facade.observing.observation import Watchers
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.toolkits.toolkit import Toolkit
from toolwire.facade.tools.intake import entries_of
from toolwire.invocation.scope import Scope
from toolwire.journal.conversation_info import check_name
from toolwire.vocabulary.errors import ConfigurationError

_ID_BYTES = 16
"""Random bytes of a conversation's own name. It cannot be guessed, and no two stores share one."""


def own_scope(tools: ToolRegistry | Toolkit | Iterable[object], conversation: str | None) -> tuple[Scope, Watchers]:
    """Returns the scope of the tools in a conversation, and the observers of the session's own; None: a new one.

    Raises:
        ConfigurationError: `tools` are not a list of tools, a registry or a toolkit, or the name is not valid.
    """
    watchers = Watchers()
    name = f"c_{secrets.token_hex(_ID_BYTES)}" if conversation is None else check_name(conversation)
    return replace(_over(tools, watchers), conversation=name), watchers


def _over(tools: ToolRegistry | Toolkit | Iterable[object], watchers: Watchers) -> Scope:
    """Returns the scope over a catalogue of the session's own."""
    if isinstance(tools, ToolRegistry | Toolkit):
        # A public name could be hidden by a tool of the same name in a user's subclass.
        scope = tools._call_scope  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return replace(scope, catalogue=Overlay(scope.catalogue), watchers=(*scope.watchers, watchers))
    if not isinstance(cast("object", tools), Iterable) or isinstance(tools, str | Mapping):
        raise ConfigurationError(f"Session(tools={tools!r:.80}): give a list of tools, a ToolRegistry or a Toolkit")
    catalogue = Catalogue()
    for thing in tools:
        for entry in entries_of(thing):
            catalogue.add(entry)
    return replace(new_scope(catalogue), watchers=(watchers,))
