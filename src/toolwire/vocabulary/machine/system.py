"""The operating system. No other module knows the platform, apart from a few that run on Linux alone.

`tests/elsewhere/pyright.json` lists those few. Nothing needs `O_CLOEXEC`: on every system Python makes the descriptors
of `os.open` private to the process.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TextIO

if sys.platform == "win32":
    import msvcrt
    import shutil
    import subprocess
else:
    import fcntl
    import resource
    import termios

PLATFORM = sys.platform
IS_LINUX: bool = sys.platform == "linux"
"""True where the kernel can confine programs and pages of the web."""
IS_WINDOWS: bool = sys.platform == "win32"
"""True where a path cannot be opened below the descriptor of a folder."""

O_DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
O_NOCTTY: int = getattr(os, "O_NOCTTY", 0)
"""Flags of `os.open`; 0 where the system has none."""
O_PATH: int = getattr(os, "O_PATH", os.O_RDONLY)
"""Opens a folder for the names in it. Linux needs no right to list them for that."""

_PROC = Path("/proc")
_GONE = frozenset({"Z", "X", "x"})
"""States of a process that has ended and has not been reaped yet."""
_LOCK_POLL_S = 0.02
_LOCK_PLACE = 1 << 30
"""The byte that a lock of Windows covers. Others cannot read or write it, so it lies beyond the content of any file."""


def _nothing() -> None: ...


def call_at_fork(
    *,
    after_in_child: Callable[[], object],
    before: Callable[[], object] = _nothing,
    after_in_parent: Callable[[], object] = _nothing,
) -> None:
    """Calls the functions at each fork of this process. Does nothing where processes cannot fork."""
    if sys.platform != "win32":
        os.register_at_fork(before=before, after_in_parent=after_in_parent, after_in_child=after_in_child)


def lock(descriptor: int) -> None:
    """Waits for the lock of an open file or folder, which closing the descriptor releases."""
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    while not try_lock(descriptor):
        time.sleep(_LOCK_POLL_S)


def try_lock(descriptor: int) -> bool:
    """Takes the lock of an open file or folder, which closing the descriptor releases. False if another holds it."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _LOCK_PLACE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError:
        return False
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
    return True


def is_private(status: os.stat_result) -> bool:
    """True if no user but this one may use the file.

    Windows keeps rights elsewhere; a new file has those of its folder, and a user's folder is private.
    """
    if sys.platform == "win32":
        return True
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


def uptime_s() -> float:
    """Returns seconds that only go up, by a clock of the machine. On Linux it goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def thread_clock() -> Callable[[], float]:
    """Returns a function for any thread: processor seconds of the thread that calls this, up to its end.

    Where no thread can read another's, it gives seconds that have passed, which are at least as many.
    """
    if sys.platform != "linux":
        return time.monotonic
    return partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))


def open_files_limit() -> int | None:
    """Returns the number of files and sockets that this process may have open; None without a limit."""
    if sys.platform == "win32":
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def user_id() -> str:
    """Returns the number of this process's user as text; empty where users have none."""
    return "" if sys.platform == "win32" else str(os.geteuid())


def has_display() -> bool:
    """True if a browser can open a window."""
    return not IS_LINUX or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))


def discard_typed(terminal: TextIO) -> None:
    """Discards the keys that were typed and not read yet."""
    if sys.platform == "win32":
        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    with suppress(OSError, ValueError, termios.error):
        termios.tcflush(terminal.fileno(), termios.TCIFLUSH)


def call_on_hangup(call: Callable[[], object]) -> None:
    """Calls the function on each SIGHUP, where that signal exists. Only the main thread may do this."""
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda _number, _frame: call())


# -- processes ------------------------------------------------------------------------------------------------------


def program_path(command: str) -> str:
    """Returns what starts a command. Windows alone must be told the file, as `npx.cmd` for `npx`."""
    return command if sys.platform != "win32" else shutil.which(command) or command


def terminate_group(process_id: int) -> None:
    """Asks the processes of a group to end, if there are any. Windows ends a process and its children at once."""
    if sys.platform == "win32":
        kill_group(process_id)
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, signal.SIGTERM)


def kill_group(process_id: int) -> None:
    """Ends the processes of a group, if there are any; on Windows a process and its children."""
    if sys.platform == "win32":
        tree = ["taskkill", "/T", "/F", "/PID", str(process_id)]
        subprocess.run(tree, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, signal.SIGKILL)


_SCANS = 20
"""Maximum searches for marked processes. A second one finds those that were forked during the first."""


def kill_marked(variable: str, mark: str) -> bool:
    """Ends all processes of this user whose environment has the mark in the variable. False if some are left.

    Only Linux shows environments. A process that was started without that variable is not found.
    """
    if sys.platform != "linux":
        return True
    wanted = re.compile(rb"(?:\A|\0)%b=[^\0]*%b" % (re.escape(variable.encode()), re.escape(mark.encode())))
    for _ in range(_SCANS):
        numbers = [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdigit()]
        found = [number for number in numbers if _has_mark(number, wanted)]
        if not found:
            return True
        for number in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(_LOCK_POLL_S)
    return False


def _has_mark(process_id: int, wanted: re.Pattern[bytes]) -> bool:
    # A zombie has no environment any more.
    try:
        return wanted.search((_PROC / str(process_id) / "environ").read_bytes()) is not None
    except OSError:
        return False


def process_start(process_id: int) -> str | None:
    """Returns the start of a process in kernel ticks; empty if the system does not tell; None if it is gone."""
    if not (_PROC / "self/stat").exists():
        return _unknown_start(process_id)
    try:
        text = (_PROC / str(process_id) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    # The command stands in brackets and may contain any character.
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in _GONE else fields[19]


def _unknown_start(process_id: int) -> str | None:
    # On Windows signal 0 is Ctrl-C.
    if sys.platform != "win32":
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
    return ""
