"""Where a call's output goes while it runs."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from toolwire.vocabulary.content import ContentBlock
from toolwire.vocabulary.context import Progress
from toolwire.vocabulary.response import ToolResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a running tool gave: content, a response of its own, or how far it has come."""

    pieces: tuple[str | ContentBlock, ...] = ()
    """What comes after all before; strings join with strings."""
    response: ToolResponse | None = None
    """The tool's own response. A cumulative one stands in place of all before."""
    progress: Progress | None = None
    """How far the tool has come."""


class Sink(Protocol):
    """Who reads a call's output. Any thread may call it; what it gives is waited for, on a loop or in the thread."""

    def offer(self, part: Part, /) -> Future[bool] | None:
        """Hands a part over. None: go on; else the future says when: True for the next one, False that nobody wants it.

        The tool stands still until then: that is how a slow reader holds up a fast tool.
        """
        ...

    def end_with(self, response: ToolResponse, /) -> None:
        """The response that the tool gave as its last: it is shown when the call has ended, as its last chunk."""
        ...
