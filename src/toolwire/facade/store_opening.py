"""Opens stores by URL, and adds a store's log to a scope."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from toolwire.invocation.scope import Scope
from toolwire.vocabulary.errors import ConfigurationError

S = TypeVar("S")


def resolve_store(store: str | S) -> S | Any:
    """Returns the store itself, or opens the one at that URL.

    Raises:
        ConfigurationError: the URL is not that of a store, or the object is no store.
        StoreUnavailable: it cannot be reached.
    """
    if not isinstance(store, str):
        if not hasattr(store, "reopen"):
            raise ConfigurationError(
                f"store={store!r:.80}: write store='sqlite:///runs.db', or give what Store.open(url) returns"
            )
        return store
    # A database takes half a second to import: only callers with a store pay for it.
    from toolwire.journal.store import Store

    return Store.open(store)


def scope_with_log(scope: Scope, store: object) -> Scope:
    """Returns the scope with every call also sent to the log of that store, unless it is sent there already."""
    from toolwire.journal.store import Store

    if not isinstance(store, Store):
        return scope
    from toolwire.journal.durable_log import DurableLog

    known = [observer.store.url for observer in scope.observers if isinstance(observer, DurableLog)]
    return scope if store.url in known else replace(scope, observers=(*scope.observers, DurableLog(store)))
