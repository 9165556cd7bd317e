"""One chunk of a running call's output."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass, field
from typing import Any

from toolwire.vocabulary.blocks import ContentBlock, text_of
from toolwire.vocabulary.machine.system import call_at_fork
from toolwire.vocabulary.texts.lone_surrogates import encodable_text

_SUFFIX_BYTES = 4


class _Ids:
    """Generates ids that sort by time.

    A counter follows the time, because a clock may return the same time twice. A random part per process comes last.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.process = os.urandom(_SUFFIX_BYTES).hex()
        self.counter = itertools.count(1)

    def new(self) -> str:
        return f"{time.time_ns():016x}-{next(self.counter):08x}-{self.process}"


_IDS = _Ids()
# Otherwise a forked child would reuse its parent's ids.
call_at_fork(after_in_child=_IDS.renew)


@dataclass(slots=True)
class ToolResponse:
    """One chunk of a call's output. A tool may return or yield them, and the reader of a call receives them.

    By default the responses of a tool are cumulative: each contains all output so far, and the last one counts. A
    response with `is_cumulative=False` adds to the output before it.

    Attributes:
        content: Blocks for the model.
        metadata: Data that the tool adds; not shown to a model.
        stream: True if more chunks may come before or after this one. The tool sets it.
        is_last: True for the last chunk that a reader receives, and only for that one.
        is_interrupted: True if the call was interrupted; the chunk holds the output until then.
        id: A unique id; ids sort by time of creation.
        is_cumulative: True if `content` is all output so far, False if it is only new output.
    """

    content: list[ContentBlock]
    metadata: dict[str, Any] | None = None
    stream: bool = False
    is_last: bool = True
    is_interrupted: bool = False
    id: str = field(default_factory=_IDS.new)
    is_cumulative: bool = True

    @property
    def text(self) -> str:
        """The content as one text. Blocks are on lines of their own, and one without text is named: `[image]`.

        The text can always be encoded: U+FFFD replaces each lone surrogate.
        """
        return encodable_text(text_of(self.content))
