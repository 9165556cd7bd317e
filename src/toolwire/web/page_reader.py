"""The host's side of the process that parses pages: starts it, gives it pages in turn, and ends it when it is slow."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import struct
import subprocess
import sys
import threading
from typing import IO, cast

from toolwire.vocabulary import system
from toolwire.vocabulary.errors import SandboxUnavailable
from toolwire.vocabulary.texts.lone_surrogates import encodable_text
from toolwire.web.refusals import FetchFailed

START_TIMEOUT_S = 60.0
"""Maximum seconds until the process is warm. It takes one on a machine at rest."""
PAGE_TIMEOUT_S = 30.0
"""Maximum seconds of one page, should it sleep. The kernel ends a page after 10 seconds of processor time."""
TEXT_LIMIT = 1_000_000
"""Maximum characters of a page's text: 20 times what `web_fetch` returns by default, and a book."""
ANSWER_LIMIT_BYTES = 16 * 1024 * 1024
"""Maximum bytes of an answer: a million characters, each as a JSON escape of 12 bytes, and a title."""
TITLE_LIMIT = 1_000
"""Maximum characters of a page's title, or of the reason why it cannot be read."""
_UNREADABLE = "the page cannot be read: it needs more than 10 seconds or 512 MiB, or it is damaged"
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from toolwire.web.page_process import main; main()"


class PageReader:
    """Parses pages in another process, which can open no file and no connection. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    @property
    def process_id(self) -> int | None:
        """The id of the warm process; None if there is none now."""
        return None if self._process is None else self._process.pid

    def read(self, kind: str, body: bytes, *, url: str, charset: str) -> tuple[str, str]:
        """Returns the title and the text of a page. `kind` is "html" or "pdf". Blocks until the page is read.

        Raises:
            FetchFailed: The page is damaged, or takes too much time or memory.
            SandboxUnavailable: This machine cannot confine a process.
        """
        with self._lock:
            process = self._started()
            late = threading.Timer(PAGE_TIMEOUT_S, _kill, [process])
            late.start()
            try:
                answer = _asked(process, {"kind": kind, "url": url, "charset": charset}, body)
            except OSError as error:
                self._end()
                raise FetchFailed(_UNREADABLE) from error
            finally:
                late.cancel()
        return _texts(answer)

    def close(self) -> None:
        """Ends the process. The next page starts another."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
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
            _kill(self._process)
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    _close(stream)
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
    _kill(process)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            _close(stream)
    raise _unavailable("this kernel has no seccomp" if said == b"u" else "the process that parses pages does not start")


def _unavailable(why: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"web_fetch reads HTML and PDF in a confined process, and {why}",
        report={"platform": system.PLATFORM, "python": sys.executable},
        how_to_fix="It runs on Linux; `toolwire doctor` says what this machine lacks.",
    )


def _asked(process: subprocess.Popen[bytes], request: dict[str, str], body: bytes) -> bytes:
    """Returns the child's answer, in which nothing is to be trusted."""
    assert process.stdin is not None
    assert process.stdout is not None
    data = json.dumps(request).encode() + b"\n" + body
    left = memoryview(struct.pack(">I", len(data)) + data)
    while left:
        left = left[process.stdin.write(left) :]
    (size,) = struct.unpack(">I", _exactly(process.stdout, 4))
    return _exactly(process.stdout, size)


def _texts(answer: bytes) -> tuple[str, str]:
    """Returns the title and the text of an answer.

    Raises:
        FetchFailed: The child says why the page cannot be read, or its answer has another form.
    """
    try:
        told: object = json.loads(answer[1:]) if len(answer) <= ANSWER_LIMIT_BYTES else None
    except ValueError:
        told = None
    texts = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    title, text, why = (texts.get(name) for name in ("title", "text", "why"))
    if answer[:1] == b"t" and isinstance(title, str) and isinstance(text, str):
        return encodable_text(title)[:TITLE_LIMIT], encodable_text(text)[:TEXT_LIMIT]
    raise FetchFailed(encodable_text(why)[:TITLE_LIMIT] if isinstance(why, str) else _UNREADABLE)


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


def _close(stream: IO[bytes]) -> None:
    try:
        stream.close()
    except OSError:
        return
