"""The destination of a call's output while it runs."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from toolwire.vocabulary.blocks import ContentBlock
from toolwire.vocabulary.context import Progress
from toolwire.vocabulary.response import ToolResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a running tool's output: content, a response object, or its progress."""

    pieces: tuple[str | ContentBlock, ...] = ()
    """Content that follows all earlier content. Adjacent strings are joined."""
    response: ToolResponse | None = None
    """The tool's own response. A cumulative response replaces all earlier content."""
    progress: Progress | None = None
    """The tool's progress."""


class Sink(Protocol):
    """Reads a call's output. Any thread may call it, and waits for its futures on a loop or by blocking."""

    def offer(self, part: Part, /) -> Future[bool] | None:
        """Hands over a part. Returns None if the tool may continue, else a future for the reader's next request.

        The future gives True if the reader wants the next part, and False if it wants no more. The tool waits for it
        meanwhile. This is the back-pressure of a slow reader.
        """
        ...

    def end_with(self, response: ToolResponse, /) -> None:
        """Names the response that the tool marked as its last. It becomes the last chunk when the call has ended."""
        ...
