"""The other process: it stays warm, and forks a confined child for each page.

A child has a channel of its own, reads one page, parses it and ends. It sees no page and no answer of another call. The
process that forks copies bytes from the host to the child and back, and looks into none of them.

A request is its size in 4 bytes, its processor seconds in one, a line of JSON, and the body. An answer is its size in 4
bytes, one byte, and texts in UTF-8: `t`, the title, a zero byte and the text; or `e` and the reason. It is `l` alone if
the child has used its processor time, and empty if it ended otherwise without an answer.
"""

from __future__ import annotations

import encodings
import fcntl
import importlib
import json
import os
import pkgutil
import resource
import signal
import struct
import sys

from toolwire.builtin.web.page_reader import ANSWER_LIMIT_BYTES, CPU_LIMIT_S, TITLE_LIMIT
from toolwire.builtin.web.page_texts import (
    SAMPLE_HTML,
    SAMPLE_LIST,
    SAMPLE_PDF,
    UnreadablePage,
    end_long_search,
    text_of,
)
from toolwire.sandbox.child.kernel.lockdown import Allowance, Lockdown, Step, apply
from toolwire.sandbox.child.kernel.seccomp import FROM_HOST, TO_HOST

MEMORY_LIMIT_BYTES = 512 * 1024 * 1024
"""Address space of one page above that of the warm process. A page of 1 MB takes 70 to 200 MiB."""
TICK_S = 0.02
"""Processor seconds between two looks at the clock of the search for an article."""
READY = b"r"
UNCONFINED = b"u"
_HIGH = 10
"""Descriptors below this number belong to the lockdown."""
_PART_BYTES = 1_048_576


def main() -> None:
    """Serves pages until the host closes the channel."""
    incoming, outgoing = _high(0), _high(1)
    # A library that prints must not write into the channel.
    os.dup2(2, 1)
    _warm_up()
    lockdown = Lockdown()
    if not {"limits", "seccomp"} <= lockdown.present:
        os.write(outgoing, UNCONFINED)
        return
    steps = lockdown.steps(os.getpid(), lockdown.present)
    os.write(outgoing, READY)
    while True:
        child, to_child, from_child = _fork_child(lockdown, steps)
        head = _read_bytes(incoming, 5)
        if len(head) < 5:
            return
        size, cpu_s = struct.unpack(">IB", head)
        try:
            # Its own limit comes with the lockdown, and a later one would replace this.
            if _read_bytes(from_child, 1):
                resource.prlimit(child, resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
            _write_bytes(to_child, _read_bytes(incoming, size))
            os.close(to_child)
            answer = _read_bytes(from_child, ANSWER_LIMIT_BYTES + 1)
        finally:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            os.close(from_child)
        if not answer and os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            answer = b"l"
        _write_bytes(outgoing, struct.pack(">I", len(answer)) + answer)


def _fork_child(lockdown: Lockdown, steps: tuple[Step, ...]) -> tuple[int, int, int]:
    """Returns a confined child that waits for its page, and the ends of its channel."""
    child_reads, to_child = map(_high, os.pipe())
    from_child, child_writes = map(_high, os.pipe())
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGPROF, end_long_search)
            # A confined child may set no timer.
            signal.setitimer(signal.ITIMER_PROF, TICK_S, TICK_S)
            lockdown.allow(os.getpid(), Allowance(memory_bytes=MEMORY_LIMIT_BYTES, cpu_s=CPU_LIMIT_S))
            apply(child_writes, child_reads, steps)
            if _is_confined():
                _serve()
        finally:
            os._exit(0)
    os.close(child_reads)
    os.close(child_writes)
    return child, to_child, from_child


def _high(descriptor: int) -> int:
    """Moves a descriptor out of the numbers that the lockdown uses."""
    moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(descriptor)
    return moved


def _warm_up() -> None:
    """Loads all that parsing loads late: a confined child opens no file."""
    for found in pkgutil.iter_modules(encodings.__path__):
        if found.name not in ("mbcs", "oem"):
            importlib.import_module(f"encodings.{found.name}")
    for kind, sample in (("html", SAMPLE_HTML), ("html", SAMPLE_LIST), ("html", b"<p>x"), ("pdf", SAMPLE_PDF)):
        text_of(kind, sample, "https://example.org/", "")


def _is_confined() -> bool:
    """True if this process can open nothing, as every page may assume."""
    try:
        os.open("/dev/null", os.O_RDONLY)
    except PermissionError:
        return True
    return False


def _serve() -> None:
    _write_bytes(TO_HOST, READY)
    head, _, body = _read_bytes(FROM_HOST).partition(b"\n")
    request: dict[str, str] = json.loads(head)
    try:
        title, text = text_of(request["kind"], body, request["url"], request["charset"])
        answer = b"t" + _encode(title[:TITLE_LIMIT].replace("\0", "")) + b"\0" + _encode(text)
    except UnreadablePage as error:
        answer = b"e" + _encode(str(error)[:TITLE_LIMIT])
    _write_bytes(TO_HOST, answer)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _read_bytes(descriptor: int, size: int = sys.maxsize) -> bytes:
    """Returns so many bytes, or those until the other side closes the channel."""
    found = bytearray()
    while len(found) < size:
        part = os.read(descriptor, min(_PART_BYTES, size - len(found)))
        if not part:
            break
        found += part
    return bytes(found)


def _write_bytes(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
