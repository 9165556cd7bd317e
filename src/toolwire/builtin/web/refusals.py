"""The errors of pages that are not fetched or not read."""

from __future__ import annotations

from toolwire.builtin.web.outside_text import outside_text
from toolwire.vocabulary.errors import ToolwireError

MESSAGE_LIMIT = 1_000
"""Maximum characters of a message. Servers choose parts of it, such as a content type."""


class FetchFailed(ToolwireError):
    """A page could not be fetched or read. The message is fit for a model, and has at most `MESSAGE_LIMIT` characters.

    Attributes:
        may_repeat: True if the same call may succeed later.
    """

    def __init__(self, message: str, *, may_repeat: bool = False) -> None:
        super().__init__(outside_text(message, MESSAGE_LIMIT))
        self.may_repeat = may_repeat


class PageLimit(FetchFailed):
    """A page takes more work than it may. The message says what to ask for instead."""


class Blocked(FetchFailed):
    """The guard refused a URL, an address or an answer. No byte was sent to the refused place."""
