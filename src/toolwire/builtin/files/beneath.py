"""Opens, renames and writes by calls that Linux alone has.

No symbolic link and no `..` is followed, also if one appears meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable

_OPENAT2 = 437
"""The number of the system call, the same on every processor."""
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_NOREPLACE = 0x01
_RETRIES = 32
"""How often the kernel may answer EAGAIN, which it does while another process renames folders."""
_ABSENT = {errno.ENOSYS, errno.EPERM}
"""The answers of a kernel without openat2, and of a seccomp filter that does not know it."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_by_kernel(root: int, path: str, flags: int) -> int:
    """Opens the path by openat2, which resolves it below `root` in one step.

    Raises:
        OSError: It cannot be opened, or it leads through a symbolic link or out of `root`.
    """
    how, encoded, code = _how(flags), os.fsencode(path), 0
    for _ in range(_RETRIES):
        found = _openat2()(_OPENAT2, root, encoded, how, ctypes.sizeof(_How))
        if found >= 0:
            return found
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    if code == errno.ENOTDIR and flags & os.O_DIRECTORY:
        # A link is not a folder. As a path it is refused for being a link, which says more.
        os.close(open_by_kernel(root, path, os.O_PATH))
    raise OSError(code, os.strerror(code))


def stat_by_kernel(folder: int, name: str) -> os.stat_result:
    """Returns the status of a name in a folder, without following a link.

    Raises:
        OSError: There is none.
    """
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def rename_by_kernel(source: int, name: str, target: int, to: str) -> None:
    """Renames a file in one folder to a name in another, in one step. An existing file is not replaced.

    Raises:
        OSError: The name is taken, or the file is gone.
    """
    failed = _library().renameat2(
        ctypes.c_int(source),
        ctypes.c_char_p(os.fsencode(name)),
        ctypes.c_int(target),
        ctypes.c_char_p(os.fsencode(to)),
        ctypes.c_uint(_NOREPLACE),
    )
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def write_nameless(folder: int, name: str, write: Callable[[int], None]) -> None:
    """Writes a new file that has no name before it is whole. A process that is killed leaves nothing.

    Raises:
        OSError: It cannot be written, or the name is taken.
    """
    file = os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        write(file)
        os.link(f"/proc/self/fd/{file}", name, dst_dir_fd=folder)
    finally:
        os.close(file)


def has_openat2() -> bool:
    """True if this kernel has openat2, and lets this process use it."""
    try:
        os.close(open_by_kernel(_AT_FDCWD, ".", os.O_PATH | os.O_DIRECTORY))
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise
    return True


_AT_FDCWD = -100


@functools.cache
def _how(flags: int) -> object:
    """Returns the pointer to the constraints, which the kernel only reads."""
    return ctypes.byref(_How(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS))


@functools.cache
def _openat2() -> Callable[..., int]:
    function = _library().syscall
    function.restype = ctypes.c_long
    function.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
    return function


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
