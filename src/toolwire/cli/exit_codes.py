"""The exit codes of the process."""

from __future__ import annotations

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


EXIT_CODES = """\b
Exit codes:
  0    the job was done
  1    a call or program failed, or was not allowed to run
  2    wrong usage, or a file that cannot be read
  3    the tools cannot be loaded
  4    the reply was refused: it cannot be read, and nothing ran
  5    the model declined: its reply is a `fail`, and nothing ran
  6    a person has to decide first; the run waits
  130  interrupted"""
"""The end of every help text. The first line keeps its line breaks."""


class Stop(Exception):
    """Ends the command with a message instead of a traceback."""

    def __init__(self, code: ExitCode, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        """The correction, printed on its own line. Empty if the message already says it."""
