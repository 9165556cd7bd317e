"""Opens a path below a folder's descriptor. No symbolic link and no `..` is followed, also if one appears meanwhile."""

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

Open = Callable[[int, str, int], int]
"""Opens a relative path below a descriptor with flags, and returns a descriptor."""


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
    raise OSError(code, os.strerror(code))


def open_by_steps(root: int, path: str, flags: int) -> int:
    """Opens the path one component at a time. For a kernel without openat2.

    Raises:
        OSError: It cannot be opened, or a component is a symbolic link or `..`.
    """
    *folders, last = path.split("/")
    if ".." in (*folders, last) or path.startswith("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    here = root
    try:
        for folder in folders:
            inner = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            _close(here, root)
            here = inner
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        _close(here, root)


def rename_to_free_name(source: int, name: str, target: int, to: str) -> None:
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


def chosen() -> Open:
    """Returns the way that this kernel has."""
    try:
        os.close(open_by_kernel(_AT_FDCWD, ".", os.O_PATH | os.O_DIRECTORY))
    except OSError as error:
        if error.errno in _ABSENT:
            return open_by_steps
        raise
    return open_by_kernel


_AT_FDCWD = -100


def _close(descriptor: int, root: int) -> None:
    if descriptor != root:
        os.close(descriptor)


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
