"""Formats an exception for the model: in Python's form, with only the lines of the program."""

import linecache
import traceback
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ..world.source import FILENAME

_HEADER = "Traceback (most recent call last):\n"
_TEXT_CHARACTERS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorText:
    """An exception in text form."""

    type: str
    message: str
    traceback: str
    line: int | None


def seed(source: str) -> None:
    """Makes the program's lines known to tracebacks, which would look for a file."""
    # Without a line end, CPython misplaces the marker under the last line.
    lines = [f"{line}\n" for line in lines_of(source)]
    linecache.cache[FILENAME] = (len(source), None, lines, FILENAME)


def lines_of(source: str) -> list[str]:
    """Returns the lines as Python counts them: `splitlines` would also end one at a form feed or U+2028."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def tell(error: BaseException) -> ErrorText:
    """Returns the exception with its causes, and the innermost program line that it came through."""
    told = traceback.TracebackException.from_exception(error, capture_locals=False)
    line = _keep_program(told, set()) or (error.lineno if isinstance(error, SyntaxError) else None)
    text = _shorten_middle("".join(told.format()))
    return ErrorText(type=type(error).__name__, message=_message(error), traceback=text, line=line)


def tell_place(frame: FrameType | None) -> tuple[str, int | None]:
    """Returns the program's place, as the upper part of a traceback, and its line."""
    stack = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=True)
    stack.reverse()
    _filter(stack)
    if not stack:
        return "", None
    return _shorten_middle(_HEADER + "".join(stack.format())), stack[-1].lineno


def program_frames(error: BaseException) -> list[FrameType]:
    """Returns the program's frames that the exception came through, outermost first."""
    found: list[FrameType] = []
    here = error.__traceback__
    while here is not None:
        if here.tb_frame.f_code.co_filename == FILENAME:
            found.append(here.tb_frame)
        here = here.tb_next
    return found


def _keep_program(told: traceback.TracebackException, seen: set[int]) -> int | None:
    """Drops all other frames, here and in the causes; returns the innermost line that is left."""
    if id(told) in seen:
        return None
    seen.add(id(told))
    _filter(told.stack)
    line = told.stack[-1].lineno if told.stack else None
    others: list[Any] = [told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())]
    for other in others:
        if other is not None:
            _keep_program(other, seen)
    if not told.stack:
        # Without lines there is no "Traceback" header: a syntax error has no frames.
        untyped: Any = told
        untyped.stack = None
    return line


def _filter(stack: traceback.StackSummary) -> None:
    stack[:] = [frame for frame in stack if frame.filename == FILENAME]


def _message(error: BaseException) -> str:
    try:
        return _shorten_middle(str(error))
    except BaseException:  # noqa: BLE001 - the program's own __str__ may do anything
        return ""


def _shorten_middle(text: str) -> str:
    if len(text) <= _TEXT_CHARACTERS:
        return text
    half = _TEXT_CHARACTERS // 2
    return f"{text[:half]}\n[... {len(text) - _TEXT_CHARACTERS:,} characters left out ...]\n{text[-half:]}"
