"""Output of commands.

Standard output is reserved for results, so that text printed by tools cannot be mistaken for one.

Every text of a command passes through this module. On a terminal, control characters are escaped; in a pipe, the text
is unchanged.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import ExitStack, suppress
from typing import Any, TextIO

from toolwire.cli.exit_codes import ExitCode, Stop

_ENCODING_ERRORS = "backslashreplace"
"""Error handler for characters that a stream's encoding lacks. No result may fail because of one."""


def open_missing_streams() -> None:
    """Opens an empty stream for each standard stream that the process was started without.

    Otherwise the next file or socket would get the stream's number, and the text meant for the stream.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def write_any_text() -> None:
    """Lets the output streams of this process accept any text, whatever their encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ENCODING_ERRORS)


class Output:
    """Writes results to standard output and everything else to standard error."""

    def __init__(self) -> None:
        self._results: TextIO = sys.stdout
        self._undo = ExitStack()

    def keep_stdout(self) -> None:
        """Reserves standard output for `result` and `write`. All other writes to it go to standard error.

        This covers `print`, subprocesses and C code.
        """
        sys.stdout.flush()
        if _descriptor(sys.stdout) == 1:
            self._results = self._take_descriptor()
        # `redirect_stdout` would fail for a tool that keeps printing after the command has ended.
        self._undo.callback(setattr, sys, "stdout", sys.stdout)
        sys.stdout = sys.stderr

    def give_back(self) -> None:
        """Undoes `keep_stdout`.

        A process that is about to end does not call it, because a tool may still be printing.
        """
        self._undo.close()
        self._results = sys.stdout

    @property
    def is_terminal(self) -> bool:
        """True if results go to a terminal."""
        return self._results.isatty()

    def result(self, text: str) -> None:
        """Writes a result, with a final newline if it has none. A closed pipe is not an error.

        Raises:
            Stop: The result cannot be written.
        """
        self.write(text if text.endswith("\n") else f"{text}\n")

    def write(self, text: str) -> bool:
        """Writes a part of a result at once. False if the reader has closed the pipe.

        On a terminal, control characters are escaped.

        Raises:
            Stop: The result cannot be written.
        """
        try:
            self._results.write(_visible(text) if self.is_terminal else text)
            self._results.flush()
        except BrokenPipeError:
            self._discard()
            return False
        except OSError as error:
            self._discard()
            raise Stop(ExitCode.FAILED, f"the result cannot be written: {error.strerror or error}") from error
        return True

    def result_json(self, value: Any) -> None:
        """Writes a result as JSON for a program."""
        self.result(self._json(value, indent=2))

    def result_line(self, value: Any) -> bool:
        """Writes one of several results as a line of JSON for a program. False if the reader has closed the pipe.

        Raises:
            Stop: The result cannot be written.
        """
        return self.write(self._json(value) + "\n")

    def say(self, text: str, *, end: str = "\n") -> None:
        """Writes a message that is not a result, and `end`. On a terminal, control characters are escaped."""
        shown = _visible(text) if sys.stderr.isatty() else text
        # If standard error is closed, the message has no reader.
        with suppress(OSError):
            # In one piece: a warning of another thread would come between a text and its end.
            print(f"{shown}{end}", end="", file=sys.stderr, flush=True)

    def show_progress(self, text: str) -> None:
        """Writes a message about long work. On a terminal the next message replaces it."""
        if sys.stderr.isatty():
            self.say(f"{text}  ", end="\r")
        else:
            self.say(text)

    def _json(self, value: Any, *, indent: int | None = None) -> str:
        """Returns JSON that keeps its value even when the terminal or the stream's encoding escapes characters."""
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        if self._can_print(text):
            return text
        # Only JSON's own escapes keep the value. `json` leaves one control character, DEL, unescaped.
        return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")

    def _can_print(self, text: str) -> bool:
        if self.is_terminal and _visible(text) != text:
            return False
        try:
            text.encode(self._results.encoding or "utf-8")
        except UnicodeEncodeError:
            return False
        return True

    def _take_descriptor(self) -> TextIO:
        kept = os.dup(1)
        os.dup2(2, 1)
        stream = io.TextIOWrapper(
            os.fdopen(kept, "wb"), encoding=sys.stdout.encoding, errors=_ENCODING_ERRORS, line_buffering=False
        )
        self._undo.callback(self._put_descriptor_back, stream)
        return stream

    def _put_descriptor_back(self, stream: TextIO) -> None:
        stream.flush()
        os.dup2(stream.fileno(), 1)
        stream.close()

    def _discard(self) -> None:
        """Redirects the stream to the null device, so that closing it with a full buffer does not fail again."""
        descriptor = _descriptor(self._results)
        if descriptor is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _visible(text: str) -> str:
    # Importing it costs a second, and most output is not for a terminal.
    from toolwire.approvals import visible_text

    return visible_text(text)


def _descriptor(stream: TextIO) -> int | None:
    """Returns the stream's file descriptor. None for a stream in memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
