"""Standard output, kept for results: what tools print must not be taken for what a command answers.

Every text of a command leaves through this module. On a terminal it is made visible, in a pipe it passes as it is.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from contextlib import ExitStack, suppress
from typing import Any, TextIO

from toolwire import visible_text
from toolwire.cli.exit_codes import ExitCode, Stop

_ENCODING_ERRORS = "backslashreplace"
"""How a stream writes a character that its encoding does not have: no result may fail on one."""


def open_missing_streams() -> None:
    """Gives a process that was started without one of its three streams an empty one in its place.

    Otherwise the next file or socket that is opened would take its number, and get what is meant for the stream.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))


def write_any_text() -> None:
    """Lets this process's own output streams take any text, whatever their encoding."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ENCODING_ERRORS)


class Output:
    """Where a command writes: results to standard output, everything else to standard error."""

    def __init__(self) -> None:
        self._results: TextIO = sys.stdout
        self._undo = ExitStack()

    def keep_stdout(self) -> None:
        """From here on only `result` reaches standard output; what anybody else writes there goes to standard error.

        That holds for `print`, for subprocesses and for C code alike.
        """
        sys.stdout.flush()
        if _descriptor(sys.stdout) == 1:
            self._results = self._take_descriptor()
        # redirect_stdout would do, but for a tool that keeps printing after the command has ended.
        self._undo.callback(setattr, sys, "stdout", sys.stdout)
        sys.stdout = sys.stderr

    def give_back(self) -> None:
        """Undoes `keep_stdout`. A process that is about to end leaves it: a tool may still be printing."""
        self._undo.close()
        self._results = sys.stdout

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads the results."""
        return self._results.isatty()

    def result(self, text: str) -> None:
        """Writes a result; a last line without an end gets one.

        Raises:
            Stop: it cannot be written. A reader who has left is no error.
        """
        self.write(text if text.endswith("\n") else f"{text}\n")

    def write(self, text: str) -> bool:
        """Writes a part of a result at once, visible on a terminal and else as it is. False when the reader has left.

        Raises:
            Stop: it cannot be written.
        """
        try:
            self._results.write(visible_text(text) if self.is_terminal else text)
            self._results.flush()
        except BrokenPipeError:
            self._discard()
            return False
        except OSError as error:
            self._discard()
            raise Stop(ExitCode.FAILED, f"the result cannot be written: {error.strerror or error}") from error
        return True

    def result_json(self, value: Any) -> None:
        """Writes a result for a program to read."""
        self.result(self._json(value, indent=2))

    def result_line(self, value: Any) -> bool:
        """Writes one of many results for a program to read, on a line of its own. False when the reader has left.

        Raises:
            Stop: it cannot be written.
        """
        return self.write(self._json(value) + "\n")

    def say(self, text: str) -> None:
        """Writes a message that is not a result; on a terminal it is made visible."""
        # Nobody listens any more: there is nobody to tell.
        with suppress(OSError):
            print(visible_text(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)

    def _json(self, value: Any, *, indent: int | None = None) -> str:
        """The value as JSON that is still the same value when the terminal or the stream's encoding escapes it."""
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        if self._passes(text):
            return text
        # Only JSON's own escapes keep the value. DEL is the one control that json leaves as it is.
        return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")

    def _passes(self, text: str) -> bool:
        if self.is_terminal and visible_text(text) != text:
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
        """What is still in the buffer must not fail once more when the stream is closed."""
        descriptor = _descriptor(self._results)
        if descriptor is not None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _descriptor(stream: TextIO) -> int | None:
    """The stream's file descriptor; None for one that is only in memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None


def hide_tool_errors() -> None:
    """Leaves exceptions of tools out of the log on standard error: the result says the same."""
    logging.getLogger("toolwire.tools").setLevel(logging.ERROR)


def show_tool_errors() -> None:
    """Logs exceptions of tools on standard error, with their tracebacks."""
    logging.getLogger("toolwire.tools").setLevel(logging.WARNING)
