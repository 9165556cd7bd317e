"""The active groups of a stored conversation: they are on again in the next process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Protocol

from toolwire.catalogue.groups import BASIC
from toolwire.catalogue.selection import Selection
from toolwire.facade.driving import async_ports
from toolwire.invocation.scope import Scope
from toolwire.vocabulary.calls import Caller

_LOG = logging.getLogger("toolwire.toolkit")


class GroupStore(Protocol):
    """The part of a store that keeps the active groups of conversations."""

    def active_groups(self, conversation: str, *, caller: Caller) -> frozenset[str]: ...
    def keep_groups(self, conversation: str, groups: Iterable[str], *, caller: Caller) -> Future[None]: ...


class KeptGroups:
    """The groups of the conversation that a session works on. Groups belong to its toolkit, as far as it has any."""

    def __init__(self, store: GroupStore) -> None:
        self._store = store
        self._conversation = ""
        self._groups_in_store = frozenset[str]()
        """The groups that the store has for the conversation."""
        self._missing = frozenset[str]()
        """Those of them that are not on: they are not here, or the caller does not see them."""

    def read(self, scope: Scope, conversation: str) -> None:
        """Reads the groups of a conversation, which blocks, and switches them on again. A warning names missing ones.

        A group stays as it is if it does not exist, if the caller sees none of its tools, and if this process has
        switched it itself.
        """
        if scope.groups is None:
            return
        self._conversation = conversation
        self._groups_in_store = self._missing = self._store.active_groups(conversation, caller=scope.caller)
        self.switch_on(scope)
        for name in sorted(self._missing):
            _LOG.warning("conversation %r had the group %r on, which is not here: it is left out", conversation, name)

    async def read_later(self, scope: Scope, conversation: str) -> None:
        """Works as `read` in a thread, unless the groups of the conversation were read before."""
        if scope.groups is not None and conversation and conversation != self._conversation:
            await asyncio.to_thread(self.read, scope, conversation)

    def switch_on(self, scope: Scope) -> None:
        """Switches on the groups that were missing and are here now."""
        if self._missing and scope.groups is not None:
            visible = (
                {group.name for group in scope.tools.groups()} if isinstance(scope.tools, Selection) else set[str]()
            )
            found = self._missing & visible
            scope.groups.switch_on_again(found)
            self._missing -= found

    async def keep(self, scope: Scope, conversation: str) -> None:
        """Records the groups of a conversation that are on, if they are others than those on record."""
        if scope.groups is None or not conversation:
            return
        if conversation != self._conversation:
            self._conversation = conversation
            self._groups_in_store = self._missing = frozenset[str]()
        active = frozenset(group.name for group in scope.groups if group.active and group.name != BASIC)
        # A group that is missing here may be there in the next process.
        groups = active | {name for name in self._missing if not scope.groups.is_switched(name)}
        if groups != self._groups_in_store:
            kept = self._store.keep_groups(conversation, groups, caller=scope.caller)
            await async_ports(scope).wait_for(kept)
            self._groups_in_store = groups
