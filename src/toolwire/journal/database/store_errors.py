"""The gate for errors of a database: callers get `StoreUnavailable` for what its driver or a damaged value raises."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from toolwire.vocabulary.errors import StoreUnavailable, ToolwireError

_DAMAGED = (ValueError, TypeError, LookupError)
"""Errors by a value that was never written: a page of the file is damaged. The driver raises them, too."""


@contextmanager
def translate_errors(what: str) -> Generator[None]:
    """Raises the errors of a database as `StoreUnavailable`. `what` begins the message: "the store could not be read".

    Raises:
        StoreUnavailable: The database failed, or holds a damaged value.
    """
    try:
        yield
    except (SQLAlchemyError, *_DAMAGED) as error:
        translated = store_error(error, what)
        if translated is error:
            raise
        raise translated from error


def store_error(error: Exception, what: str) -> Exception:
    """Returns the error that the caller gets. Errors of toolwire's own, and those with other causes, stay the same."""
    if isinstance(error, ToolwireError):
        return error
    if isinstance(error, DBAPIError):
        return StoreUnavailable(f"{what}: {error.orig}")
    if isinstance(error, SQLAlchemyError):
        return StoreUnavailable(f"{what}: {error}")
    if isinstance(error, _DAMAGED):
        return StoreUnavailable(f"{what}: it holds a damaged value: {error}")
    return error
