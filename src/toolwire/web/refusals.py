"""The errors of pages that are not fetched or not read."""

from __future__ import annotations

from toolwire.vocabulary.errors import ToolwireError


class FetchFailed(ToolwireError):
    """A page could not be fetched or read. The message is fit for a model.

    Attributes:
        may_repeat: True if the same call may succeed later.
    """

    def __init__(self, message: str, *, may_repeat: bool = False) -> None:
        super().__init__(message)
        self.may_repeat = may_repeat


class Blocked(FetchFailed):
    """The guard refused a URL, an address or an answer. No byte was sent to the refused place."""
