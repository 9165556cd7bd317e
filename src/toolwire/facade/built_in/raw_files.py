"""The raw file tools: they read and write any text file of the host, outside of every confinement."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, ParamSpec, TypeVar

from pydantic import Field

from toolwire.builtin.files.disk import FILE_LIMIT_BYTES, hold_lock
from toolwire.builtin.files.lines import line_blocks, line_count, line_start
from toolwire.builtin.files.paths import FileRefused
from toolwire.builtin.files.readable import READ_LIMIT_BYTES
from toolwire.builtin.files.refused_folder import is_refused, is_refused_file, refusal
from toolwire.facade.tools.function_tool import FunctionTool, tool
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.effects import Effect
from toolwire.vocabulary.machine.system import O_NOCTTY, O_NONBLOCK
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.counting import count_of

GUARD_VARIABLES = ("TOOLWIRE_DANGEROUS_TEXT_IO", "AGENTSCOPE_DANGEROUS_TEXT_IO")
"""The environment variables of the guard. The stricter one counts."""
SNIPPET_LINES = 5
"""Lines before and after a change that its result shows: enough for a model to see a wrong place."""

Guard = Literal["allow", "warn", "deny"]
"""A value of the guard."""
_GUARDS: tuple[Guard, ...] = ("allow", "warn", "deny")
"""The mildest first."""
Lines = Annotated[list[int], Field(min_length=2, max_length=2)]

_LOG = logging.getLogger("toolwire.dangerous_io")
_MARK = {"dangerous_io": True}
_FILE = O_NONBLOCK | O_NOCTTY

P = ParamSpec("P")
R = TypeVar("R")


def guard_of_now() -> Guard:
    """Returns the guard that the environment sets now: `warn` without a variable, `deny` for an unknown value."""
    given: list[Guard] = [_parse_guard(name, os.environ[name]) for name in GUARD_VARIABLES if name in os.environ]
    return max(given, key=_GUARDS.index) if given else "warn"


@functools.cache
def _parse_guard(name: str, value: str) -> Guard:
    for guard in _GUARDS:
        if value == guard:
            return guard
    _LOG.error("%s=%r is unknown and counts as deny: write deny, warn or allow", name, value)
    return "deny"


def _raw(effect: Effect) -> Callable[[Callable[P, R]], FunctionTool[P, R]]:
    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        made = tool(permission="confirm", effects=(effect,), labels=("private",))(function)
        made.__tool__().withheld = lambda: _guard_refusal(made.name)
        return made

    return decorate


def _guard_refusal(name: str) -> ToolResult | None:
    if guard_of_now() != "deny":
        return None
    reason = f"the host has turned the raw file tools off ({GUARD_VARIABLES[0]})"
    return ToolResult.failed(
        "denied", f"{name!r} may not be run: {reason}.", data={"reason": reason}, metadata=dict(_MARK)
    )


@_raw("read")
async def view_text_file(
    file_path: str, ranges: Lines | None = None, *, context: CallContext | None = None
) -> ToolResult:
    """Reads a text file of the host, with the number of each line before it.

    Args:
        file_path: The path of the file on the host
        ranges: The first and the last line, such as [1, 100]; [-100, -1] are the last 100 lines; all if left out
    """

    def view() -> str:
        with _open_file(file_path, os.O_RDONLY) as file:
            text = _decode_text(_read_content(file), file_path)
        count = line_count(text)
        if not count:
            return f"{file_path} is empty."
        first, last = (1, count) if ranges is None else _of_view(ranges, count, file_path)
        part = text[line_start(text, first) : line_start(text, last + 1)]
        shown = f"{file_path}, lines {first:,} to {last:,} of {count:,}:\n"
        # The number of a line takes three characters or more.
        is_short = len(part) + 3 * (last - first + 1) <= READ_LIMIT_BYTES
        if is_short:
            shown += _number_lines(part, first)
        if not is_short or len(shown.encode()) > READ_LIMIT_BYTES:
            raise FileRefused(
                f"{file_path}: these lines have more than {READ_LIMIT_BYTES:,} bytes, the limit of one read. The file "
                f"has {count_of(count, 'line')}: give smaller ranges"
            )
        return shown

    return await _run_with_guard("view_text_file", file_path, context, view)


@_raw("write")
async def write_text_file(
    file_path: str, content: str, ranges: Lines | None = None, *, context: CallContext | None = None
) -> ToolResult:
    """Writes a text file of the host whole, or replaces some of its lines.

    Args:
        file_path: The path of the file on the host. It is created if it does not exist; its folder must exist
        content: The whole text, or the text in place of the lines
        ranges: The first and the last line to replace, such as [3, 5]; the whole file if left out
    """

    def write() -> str:
        if ranges is None:
            is_new = not os.path.lexists(file_path)
            encoded = _encode_text(content, file_path)
            with _lock_file(file_path, os.O_RDWR | os.O_CREAT) as file:
                _put(file, encoded)
            return f"{'Created' if is_new else 'Overwrote'} {file_path}, {_count(content)}."
        first, last = ranges
        shown = _change(file_path, lambda text: _replace_lines(text, first, last, content, file_path))
        return f"Replaced lines {first} to {last} of {file_path}. Now:\n{shown}"

    return await _run_with_guard("write_text_file", file_path, context, write)


@_raw("write")
async def insert_text_file(
    file_path: str, content: str, line_number: int, *, context: CallContext | None = None
) -> ToolResult:
    """Inserts text into a text file of the host, before a line.

    Args:
        file_path: The path of the file on the host
        content: The text to insert, as lines of their own
        line_number: The line before which it is inserted, from 1; one more than the file has lines appends
    """

    def insert() -> str:
        shown = _change(file_path, lambda text: _insert_lines(text, line_number, content, file_path))
        return f"Inserted {_count(content)} at line {line_number} of {file_path}. Now:\n{shown}"

    return await _run_with_guard("insert_text_file", file_path, context, insert)


async def _run_with_guard(name: str, path: str, context: CallContext | None, work: Callable[[], str]) -> ToolResult:
    """Does the work in a thread if the guard lets it, and logs it in either case."""
    call = "the owner's own call" if context is None else f"call {context.call_id}, caller {context.caller}"
    refusal = _guard_refusal(name)
    if refusal is not None:
        _LOG.warning("%s of %r refused: %s", name, path, call)
        return refusal
    _LOG.log(logging.WARNING if guard_of_now() == "warn" else logging.INFO, "%s of %r: %s", name, path, call)
    try:
        return ToolResult(True, await asyncio.to_thread(work), metadata=dict(_MARK))
    except FileRefused as error:
        return ToolResult.failed("tool_error", str(error), metadata=dict(_MARK), exception=error)


# -- lines ----------------------------------------------------------------------------------------------------------


def _count(text: str) -> str:
    return count_of(line_count(text), "line")


def _number_lines(text: str, first: int) -> str:
    """Returns the lines with their numbers before them, the first of which is `first`."""
    if not text:
        return ""
    lines = (line for block in line_blocks(text.removesuffix("\n")) for line in block)
    numbered = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, first))
    return f"{numbered}\n" if text.endswith("\n") else numbered


def _of_view(ranges: list[int], count: int, path: str) -> tuple[int, int]:
    """Returns the first and the last line that exist in the range; a number below 0 counts from the end."""
    first, last = (number if number > 0 else count + 1 + number for number in ranges)
    if 0 in ranges or first > last or first > count or last < 1:
        raise FileRefused(
            f"ranges={ranges}: {path} has {count_of(count, 'line')}: give [first, last] with 1 <= first <= last"
        )
    return max(first, 1), min(last, count)


def _replace_lines(text: str, first: int, last: int, content: str, path: str) -> tuple[str, str]:
    count = line_count(text)
    if not 1 <= first <= last <= count:
        raise FileRefused(
            f"ranges={[first, last]}: {path} has {count_of(count, 'line')}: give [first, last] with "
            f"1 <= first <= last <= {count}"
        )
    return _splice_lines(text, first, line_start(text, last + 1), content)


def _insert_lines(text: str, number: int, content: str, path: str) -> tuple[str, str]:
    count = line_count(text)
    if not 1 <= number <= count + 1:
        raise FileRefused(f"line_number={number}: {path} has {count_of(count, 'line')}: give 1 to {count + 1}")
    return _splice_lines(text, number, line_start(text, number), content)


def _splice_lines(text: str, number: int, end: int, content: str) -> tuple[str, str]:
    """Returns the text with the content as lines of their own, and the changed lines with some around them.

    The content stands in place of the text from that line to `end`. It gets the line ends of the lines around it.
    """
    start = line_start(text, number)
    before, after = text[:start], text[end:]
    ended = before.rfind("\n") if "\n" in before else after.find("\n") + start
    around = before + after
    end_of_line = "\r\n" if around[ended - 1 : ended + 1] == "\r\n" else "\n"
    if "\n" in around:
        content = content.replace("\r\n", "\n").replace("\n", end_of_line)
    if before and not before.endswith("\n"):
        before += end_of_line
    if content and after and not content.endswith("\n"):
        content += end_of_line
    spliced = f"{before}{content}{after}"
    first = max(number - SNIPPET_LINES, 1)
    last = number - 1 + line_count(content) + SNIPPET_LINES
    return spliced, _number_lines(spliced[line_start(spliced, first) : line_start(spliced, last + 1)], first)


# -- the file -------------------------------------------------------------------------------------------------------


@contextmanager
def _open_file(path: str, flags: int) -> Generator[int]:
    with _refuse_os_errors(path):
        if is_refused(path):
            raise FileRefused(refusal(repr(path)))
        # Opening a device may act on it, so the kind of file is checked before, and again after.
        if Path(path).exists():
            _check_file(Path(path).stat(), path)
        descriptor = os.open(path, flags | _FILE, 0o644)
        try:
            _check_file(os.fstat(descriptor), path)
            if is_refused_file(descriptor):
                raise FileRefused(refusal(repr(path)))
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _lock_file(path: str, flags: int) -> Generator[int]:
    with (
        _open_file(path, flags) as file,
        hold_lock(file, f"{path!r} was not written: another program holds it: try later"),
    ):
        yield file


@contextmanager
def _refuse_os_errors(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise FileRefused(f"{path!r} could not be used: {error.strerror or 'the disk gave no reason'}") from error
    except ValueError as error:
        raise FileRefused(f"{path!r} is not a path: write it without NUL and lone surrogates") from error


def _check_file(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{path!r} is not a regular file: only those can be used")
    if status.st_size > FILE_LIMIT_BYTES:
        raise FileRefused(f"{path!r} has {status.st_size:,} bytes; at most {FILE_LIMIT_BYTES:,} can be used")


def _read_content(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    with open(file, "rb", closefd=False) as reader:
        return reader.read(FILE_LIMIT_BYTES + 1)


def _decode_text(content: bytes, path: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise FileRefused(f"{path!r} is not text in UTF-8") from None


def _encode_text(text: str, path: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError:
        raise FileRefused("content has a lone surrogate, which UTF-8 cannot hold: leave it out") from None
    if len(content) > FILE_LIMIT_BYTES:
        raise FileRefused(f"{path!r} was not written: {len(content):,} bytes; at most {FILE_LIMIT_BYTES:,}")
    return content


def _change(path: str, make: Callable[[str], tuple[str, str]]) -> str:
    """Replaces the text by the first text that `make` returns for it. Returns the second one."""
    with _lock_file(path, os.O_RDWR) as file:
        text, shown = make(_decode_text(_read_content(file), path))
        _put(file, _encode_text(text, path))
        return shown


def _put(file: int, content: bytes) -> None:
    """Replaces the content in place, so that owner, mode and links stay. A write that fails puts the old one back."""
    before = _read_content(file)
    try:
        _write_content(file, content)
    except OSError:
        _write_content(file, before)
        raise


def _write_content(file: int, content: bytes) -> None:
    os.lseek(file, 0, os.SEEK_SET)
    with open(file, "wb", closefd=False) as writer:
        writer.write(content)
    os.ftruncate(file, len(content))
    os.fsync(file)
