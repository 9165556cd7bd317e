"""Opens a store where one was named by its URL."""

from __future__ import annotations

from typing import Any, TypeVar

S = TypeVar("S")


def opened(store: str | S) -> S | Any:
    """The store itself, or the one at that URL.

    Raises:
        ConfigurationError: it is the URL of none.
        StoreUnavailable: it cannot be reached.
    """
    if not isinstance(store, str):
        return store
    # A database costs half a second to import: only who keeps something pays for it.
    from toolwire.journal.store import Store

    return Store.open(store)
