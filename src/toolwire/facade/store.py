"""Stores as they are handed in: by their URL, and with the log of what is kept there."""

from __future__ import annotations

from typing import Any, TypeVar

from toolwire.facade.setup import Setup

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


def logged(setup: Setup, store: object) -> Setup:
    """The same, with every call told to the log of that store as well; once, where it is told already."""
    from toolwire.journal.store import Store

    if not isinstance(store, Store):
        return setup
    from toolwire.journal.durable_log import DurableLog

    known = [observer.store.url for observer in setup.observers if isinstance(observer, DurableLog)]
    return setup if store.url in known else setup.with_observer(DurableLog(store))
