"""The host's side of the process that parses pages: starts it, gives it pages in turn, and ends it when it is slow."""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import select
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from toolwire.builtin.web.outside_text import outside_text
from toolwire.builtin.web.refusals import FetchFailed, PageLimit
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.machine import system
from toolwire.vocabulary.machine.work_clock import CALL_DEADLINE

START_TIMEOUT_S = 60.0
"""Maximum seconds until the process is warm. It takes one on a machine at rest."""
PAGE_TIMEOUT_S = 30.0
"""Maximum seconds of one page, should it sleep, and also of the wait for the pages before it."""
PAGES_LIMIT = 64
"""Maximum pages that are parsed or wait for it at a time: each holds a thread."""
CPU_LIMIT_S = 10
"""Maximum processor seconds of one page: one for each begun megabyte, and no more than these. An article of 1 MB takes
half a second, or is not searched for longer. So does the longest text of a PDF, however it is packed.
"""
TEXT_LIMIT = 1_000_000
"""Maximum characters of a page's text: 20 times what `web_fetch` returns by default, and a book."""
ANSWER_LIMIT_BYTES = 4 * TEXT_LIMIT + 65_536
"""Maximum bytes of an answer: a million characters of 4 bytes, and a title."""
TITLE_LIMIT = 1_000
"""Maximum characters of a page's title, or of the reason why it cannot be read."""
_UNREADABLE = "the page cannot be read: it needs more than 30 seconds or 512 MiB, or it is damaged"
_TOO_MUCH_WORK = "the page takes too long to read: its markup is too complex. Ask for a simpler or shorter page"
_OTHERS_FIRST = "other pages are still being read"
_TOO_LATE = "the page was not read within the time of the call: ask for a shorter page"
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from toolwire.builtin.web.page_process import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageText:
    """The text of a page."""

    title: str
    """At most `TITLE_LIMIT` characters; empty if the page has none."""
    text: str
    """Markdown of HTML, or the text of a PDF; at most `TEXT_LIMIT` characters."""
    is_whole: bool
    """False if the page has more text than `TEXT_LIMIT`."""


class PageReader:
    """Parses pages in another process, which can open no file and no connection. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(PAGES_LIMIT)
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    @property
    def process_id(self) -> int | None:
        """The id of the warm process; None without one."""
        return None if self._process is None else self._process.pid

    def read(self, kind: str, body: bytes, *, url: str, charset: str) -> PageText:
        """Returns the text of a page. `kind` is "html" or "pdf". Blocks until the page is read.

        It ends at the deadline of the call, and waits at most `PAGE_TIMEOUT_S` for the pages before.

        Raises:
            PageLimit: The page takes too much processor time, or the time of the call is over.
            FetchFailed: The page is damaged, takes too much memory, or too many pages come before it.
            SandboxUnavailable: This machine cannot confine a process.
        """
        if not self._places.acquire(blocking=False):
            raise FetchFailed(_OTHERS_FIRST, may_repeat=True)
        try:
            if not self._lock.acquire(timeout=max(_time_left_s(), 0.0)):
                raise FetchFailed(_OTHERS_FIRST, may_repeat=True)
            try:
                answer = self._answer(kind, body, url=url, charset=charset)
            finally:
                self._lock.release()
        finally:
            self._places.release()
        return _page_text(answer)

    def _answer(self, kind: str, body: bytes, *, url: str, charset: str) -> bytes:
        process, left_s = self._ensure_process(), _time_left_s()
        if left_s <= 0:
            raise PageLimit(_TOO_LATE)
        late = threading.Timer(left_s, _kill, [process])
        late.start()
        cpu_s = min(max(math.ceil(len(body) / 1_000_000), 1), CPU_LIMIT_S)
        try:
            return _ask_child(process, {"kind": kind, "url": url, "charset": charset}, body, cpu_s)
        except OSError as error:
            self._end()
            raise PageLimit(_TOO_LATE) if _time_left_s() <= 0 else FetchFailed(_UNREADABLE) from error
        finally:
            late.cancel()

    def close(self) -> None:
        """Ends the process. The next page starts another."""
        with self._lock:
            self._end()

    def _ensure_process(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner != os.getpid():
            # The process belongs to the parent of this fork; Popen would warn that it still runs.
            self._process.returncode = 0
            self._process = None
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process, self._owner = _start(), os.getpid()
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            _end_process(self._process)
            self._process = None


@functools.cache
def page_reader() -> PageReader:
    """Returns the reader that all tools of this process share. It ends with the process."""
    reader = PageReader()
    atexit.register(reader.close)
    return reader


def _start() -> subprocess.Popen[bytes]:
    if not system.IS_LINUX:
        raise _unavailable(f"pages cannot be parsed on {system.PLATFORM} yet")
    process = subprocess.Popen(  # noqa: S603 - our own module by our own interpreter
        [sys.executable, "-I", "-c", _MAIN, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        # No secret of the environment, and out of reach of the terminal's signals.
        env={"LANG": "C.UTF-8"},
        cwd="/",
        process_group=0,
    )
    assert process.stdout is not None
    is_there, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    said = process.stdout.read(1) if is_there else b""
    if said == b"r":
        return process
    _end_process(process)
    raise _unavailable("this kernel has no seccomp" if said == b"u" else "the process that parses pages does not start")


def _unavailable(why: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"web_fetch reads HTML and PDF in a confined process, and {why}",
        report={"platform": system.PLATFORM, "python": sys.executable},
        how_to_fix="It runs on Linux; `toolwire doctor` says what this machine lacks.",
    )


def _ask_child(process: subprocess.Popen[bytes], request: dict[str, str], body: bytes, cpu_s: int) -> bytes:
    """Returns the child's answer, in which nothing is to be trusted."""
    assert process.stdin is not None
    assert process.stdout is not None
    data = json.dumps(request).encode() + b"\n" + body
    left = memoryview(struct.pack(">IB", len(data), cpu_s) + data)
    while left:
        left = left[process.stdin.write(left) :]
    (size,) = struct.unpack(">I", _exactly(process.stdout, 4))
    return _exactly(process.stdout, size)


def _time_left_s() -> float:
    """Returns the seconds that the call may still spend on its page."""
    deadline = CALL_DEADLINE.get()
    return PAGE_TIMEOUT_S if deadline is None else min(deadline - time.monotonic(), PAGE_TIMEOUT_S)


def _page_text(answer: bytes) -> PageText:
    """Returns the text of an answer.

    Raises:
        PageLimit: The page has used its processor time.
        FetchFailed: The child says why the page cannot be read, or its answer has another form.
    """
    if answer == b"l":
        raise PageLimit(_TOO_MUCH_WORK)
    told = answer[1:].decode("utf-8", "replace") if len(answer) <= ANSWER_LIMIT_BYTES else ""
    title, zero, text = told.partition("\0")
    if answer[:1] == b"t" and zero:
        return PageText(
            title=outside_text(title, TITLE_LIMIT),
            text=outside_text(text, TEXT_LIMIT),
            is_whole=len(text) < TEXT_LIMIT,
        )
    raise FetchFailed(told[:TITLE_LIMIT] if answer[:1] == b"e" and told else _UNREADABLE)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = stream.read(size - len(found))
        if not part:
            raise OSError("the process ended")
        found += part
    return bytes(found)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and the child that parses for it."""
    if process.returncode is None:
        system.kill_group(process.pid)


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Ends the process, and closes its channel."""
    _kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
