"""The exit codes of the process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every command."""

    DONE = 0
    """The command succeeded."""
    FAILED = 1
    """A call or program failed or was not allowed to run, or the doctor found too little isolation.

    Results were printed.
    """
    WRONG_USAGE = 2
    """The command line is wrong, or a file that it names cannot be read."""
    UNUSABLE_TOOLS = 3
    """The tools cannot be loaded."""
    REFUSED = 4
    """The reply cannot be read; nothing ran."""
    DECLINED = 5
    """The reply says that the model cannot do the task; nothing ran."""
    SUSPENDED = 6
    """A call waits for a person. After the decision, `--resume` continues the run."""
    INTERRUPTED = 130
    """The user pressed Ctrl-C."""


_MEANINGS = {
    ExitCode.DONE: "the job was done",
    ExitCode.WRONG_USAGE: "wrong usage, or a file that cannot be read",
    ExitCode.UNUSABLE_TOOLS: "the tools cannot be loaded",
    ExitCode.REFUSED: "the reply cannot be read, and nothing ran",
    ExitCode.DECLINED: "the model declined, and nothing ran",
    ExitCode.SUSPENDED: "a person has to decide first; the run waits",
    ExitCode.INTERRUPTED: "interrupted",
}
_ALWAYS = {ExitCode.DONE, ExitCode.FAILED, ExitCode.WRONG_USAGE, ExitCode.INTERRUPTED}


def exit_codes(failed: str = "the result cannot be written", *more: ExitCode) -> str:
    """Returns the end of a help page: the codes of every command and `more`. `failed` says when the code is 1."""
    meanings = {**_MEANINGS, ExitCode.FAILED: failed}
    lines = [f"  {code:<4} {meanings[code]}" for code in ExitCode if code in _ALWAYS or code in more]
    return "\n".join(["\b", "Exit codes:", *lines])


class Stop(Exception):
    """Ends the command with a message instead of a traceback."""

    def __init__(self, code: ExitCode, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        """The correction, printed on its own line. Empty if the message already says it."""


@contextmanager
def wrong_usage(*kinds: type[Exception]) -> Generator[None]:
    """Turns these errors into one that ends the command: the command line, or a file that it names, is wrong."""
    try:
        yield
    except kinds as error:
        raise Stop(ExitCode.WRONG_USAGE, str(error)) from error
