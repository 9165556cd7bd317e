"""A program's output: `sys.stdout` and `sys.stderr` in one stream, sent line by line."""

import io
from typing import Any

from ..wire import Wire, encode

PIECE_CHARACTERS = 8192
_FRAME_CAP = 1 << 20


class ProgramOutput(io.TextIOBase):
    """A text stream over the channel. Sends a line when it ends, and an unfinished one before each call and at the end.

    Lines are sent one by one, so that the host has the output however the program ends.
    """

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: Any) -> int:
        """Takes text as a file would: nothing else, and no half of a surrogate pair."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if not text.isascii():
            text.encode("utf-8")
        self._parts.append(text)
        self._size += len(text)
        if "\n" in text or self._size >= PIECE_CHARACTERS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Sends what is there."""
        if not self._size:
            return
        text = "".join(self._parts)
        self._parts.clear()
        self._size = 0
        for start in range(0, len(text), PIECE_CHARACTERS):
            self._wire.send(encode('["print",', text[start : start + PIECE_CHARACTERS], _FRAME_CAP))

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """There is none."""
        raise io.UnsupportedOperation("fileno")
