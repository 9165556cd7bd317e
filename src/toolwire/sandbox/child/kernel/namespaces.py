"""The zygote's own namespaces: no network, no files, only its own processes, no rights outside.

Entered once, before the first child. Each child then gets its own PID namespace, at no measurable cost. The kernel may
refuse all of this, as in Docker. Then the zygote goes on without namespaces, and the self-test reports it.
"""

import ctypes
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import syscalls

NEW_PID = 0x20000000
NEW_USER = 0x10000000
_OTHERS = {"network": 0x40000000, "ipc": 0x08000000, "mount": 0x00020000, "uts": 0x04000000}
_MS_READ_ONLY = 1
_MS_NO_SUID_DEVICES_EXECUTION = 2 | 4 | 8
_MS_RECURSIVE_PRIVATE = 0x4000 | 0x40000
_MNT_DETACH = 2
_NOBODY = 65534
_MOUNT_POINTS = ("/tmp", "/proc", "/dev", "/usr")  # noqa: S108 - any folder works: it is only mounted upon
_EMPTY = b"size=4k,nr_inodes=1,mode=0555"
_PR_SET_PDEATHSIG = 1
HOST_NAME = "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceState:
    """The outcome of the attempt. The self-test checks on its own if the namespaces hold.

    Attributes:
        own_processes: True if this process is the first of a PID namespace.
        refused: The call that was refused, with the reason; empty when none was.
    """

    own_processes: bool
    refused: str


def enter(announce: Callable[[int], None]) -> NamespaceState:
    """Takes this process into new namespaces.

    The caller goes on as the first process of a PID namespace. The original process stays behind and only waits for it.
    It calls `announce` with the new process's id, as the host knows it.
    """
    refused = _unshare()
    if refused:
        return NamespaceState(own_processes=False, refused=refused)
    process = os.fork()
    if process:
        _wait_for(process, announce)
    # When the first process of a namespace ends, the kernel ends all others in it.
    syscalls.make_call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        socket.sethostname(HOST_NAME)
        _leave_files()
    except OSError as error:
        return NamespaceState(own_processes=True, refused=error.strerror or str(error))
    return NamespaceState(own_processes=True, refused="")


def make_forks(*, own_processes: bool) -> tuple[Callable[[], int], Callable[[], int], bool]:
    """Returns two fork functions for children, and True if each child gets its own PID namespace.

    The first function is faster and returns -1 when no more processes can be made; the second raises OSError then.

    Both hold the interpreter lock. `os.fork` would run at-fork hooks for threads, which a zygote does not have. The
    hooks touch, and so copy, a hundred pages and more: a third of the time to a program's first line.
    """
    is_apart = own_processes and _can_fork_apart()
    flags = signal.SIGCHLD | NEW_PID
    if is_apart:
        return syscalls.prepare_quick_call("clone", flags), syscalls.prepare_call("clone", flags), True
    return syscalls.fork, syscalls.fork, False


def _can_fork_apart() -> bool:
    try:
        process = syscalls.make_call("clone", signal.SIGCHLD | NEW_PID)
    except OSError:
        return False
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    return True


def _unshare() -> str:
    user, group = os.geteuid(), os.getegid()
    flags = NEW_USER | NEW_PID
    for flag in _OTHERS.values():
        flags |= flag
    try:
        syscalls.make_call("unshare", flags)
        _map(user, group)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _map(user: int, group: int) -> None:
    """Maps the host's user and group to the ids 65534 inside."""
    own = Path("/proc/self")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_NOBODY} {user} 1"),
        ("gid_map", f"{_NOBODY} {group} 1"),
    ):
        (own / name).write_text(text, encoding="ascii")


def _wait_for(process: int, announce: Callable[[int], None]) -> None:
    announce(process)
    os.closerange(0, 1024)
    os.waitpid(process, 0)
    os._exit(0)


def _leave_files() -> None:
    """Makes an empty read-only folder the root of the file system, and unmounts the old root."""
    _mount(b"none", b"/", b"", _MS_RECURSIVE_PRIVATE, b"")
    place = next(name for name in _MOUNT_POINTS if Path(name).is_dir())
    _mount(b"tmpfs", place.encode(), b"tmpfs", _MS_READ_ONLY | _MS_NO_SUID_DEVICES_EXECUTION, _EMPTY)
    os.chdir(place)
    here = ctypes.create_string_buffer(b".")
    syscalls.make_call("pivot_root", ctypes.addressof(here), ctypes.addressof(here))
    syscalls.make_call("umount2", ctypes.addressof(here), _MNT_DETACH)
    os.chdir("/")


def _mount(source: bytes, target: bytes, kind: bytes, flags: int, options: bytes) -> None:
    texts = [ctypes.create_string_buffer(text) for text in (source, target, kind, options)]
    source_at, target_at, kind_at, options_at = map(ctypes.addressof, texts)
    syscalls.make_call("mount", source_at, target_at, kind_at, flags, options_at)
