"""Opens, renames and writes by calls that every POSIX system has, where Linux has calls that do more in one step."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable

from toolwire.vocabulary.machine.system import O_DIRECTORY, O_NOFOLLOW, O_PATH

Write = Callable[[int], None]
"""Writes the content of an open file."""

_FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW


def open_by_steps(root: int, path: str, flags: int) -> int:
    """Opens the path one component at a time.

    Raises:
        OSError: It cannot be opened, or a component is a symbolic link or `..`.
    """
    *folders, last = path.split("/")
    if ".." in (*folders, last) or path.startswith("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    here = root
    try:
        for folder in folders:
            inner = _open_name(folder, _FOLDER, here)
            _close(here, root)
            here = inner
        return _open_name(last, flags | O_NOFOLLOW, here)
    finally:
        _close(here, root)


def stat_spelled(folder: int, name: str) -> os.stat_result:
    """Returns the status of a name in a folder, without following a link.

    Raises:
        OSError: There is none of exactly this spelling, also on a disk that takes several for the same name.
    """
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    _require_spelling(name, folder, status)
    return status


def rename_by_link(source: int, name: str, target: int, to: str) -> None:
    """Gives a file its second name, and removes the first. An existing file is not replaced.

    A process that is killed between the two leaves both names.

    Raises:
        OSError: The name is taken, or the file is gone.
    """
    os.link(name, to, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    try:
        os.unlink(name, dir_fd=source)
    except BaseException:
        os.unlink(to, dir_fd=target)
        raise


def write_by_name(folder: int, name: str, write: Write) -> None:
    """Writes a new file. A failure removes it; a process that is killed leaves it.

    Raises:
        OSError: It cannot be written, or the name is taken.
    """
    file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        try:
            write(file)
        finally:
            os.close(file)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise


def _open_name(name: str, flags: int, folder: int) -> int:
    try:
        opened = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        # Each system has errors of its own for these two.
        if error.errno == errno.ENOTDIR and _is_link(name, folder):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        if error.errno == errno.EOPNOTSUPP:
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO)) from None
        raise
    try:
        _require_spelling(name, folder, os.fstat(opened))
    except BaseException:
        os.close(opened)
        raise
    return opened


def _require_spelling(name: str, folder: int, status: os.stat_result) -> None:
    """Raises if the disk found a name of another case. Rights are granted by names, so that one may be forbidden.

    The disks of macOS find every case. On others a second name shows that they do not, and nothing is listed.
    """
    if name.swapcase() == name:
        return
    try:
        other = os.stat(name.swapcase(), dir_fd=folder, follow_symlinks=False)
    except OSError:
        return
    if (other.st_dev, other.st_ino) != (status.st_dev, status.st_ino):
        return
    listed = os.open(".", os.O_RDONLY | O_DIRECTORY, dir_fd=folder)
    try:
        with os.scandir(listed) as entries:
            # Some disks keep names in another form of Unicode than they were given.
            if all(unicodedata.normalize("NFC", entry.name) != name for entry in entries):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    finally:
        os.close(listed)


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _close(descriptor: int, root: int) -> None:
    if descriptor != root:
        os.close(descriptor)
