"""The folders on disk. Every operation begins at a root's descriptor and acts on descriptors alone."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from toolwire.builtin.files.disk_calls import DiskCalls, choose_calls
from toolwire.builtin.files.paths import TEMPORARY, FilePath, FileRefused, translate_os_errors
from toolwire.builtin.files.refused_folder import (
    find_refused_names,
    find_refused_place,
    place_of,
    refusal,
    without_case,
)
from toolwire.vocabulary.machine.code_cache import note_root
from toolwire.vocabulary.machine.system import O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH, try_lock
from toolwire.vocabulary.machine.work_clock import WorkClock

FILE_LIMIT_BYTES = 10 * 1024 * 1024
"""Maximum bytes of a file that is read or written. More is not work for a model."""
LOCK_WAIT_S = 5.0
"""How many seconds a write waits for another write in the same folder. A write takes milliseconds."""
STALE_S = 60.0
"""Age in seconds at which an unfinished file counts as left by a killed process. Writing one takes milliseconds."""

CountFolder = Callable[[], None]
"""Is called for each folder that an operation makes. If it raises, the operation fails, and the folder is removed."""

_FOLDER = os.O_RDONLY | O_DIRECTORY
_FILE = os.O_RDONLY | O_NONBLOCK | O_NOCTTY


def _no_limit() -> None:
    """Counts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """Facts about a file or folder.

    Attributes:
        path: The path as models write it.
        kind: `file`, `folder` or `other`; `other` cannot be read.
        size_bytes: Bytes of a file.
        modified_at: Time of the last change, in seconds since the epoch.
    """

    path: str
    kind: str
    size_bytes: int
    modified_at: float


class Disk:
    """A few folders on disk, by the first name of their paths."""

    def __init__(self, roots: Mapping[str, str], *, calls: DiskCalls | None = None) -> None:
        """Opens the folders. `calls` is for tests; None takes what this system has.

        Raises:
            OSError: A folder does not exist.
        """
        self._calls = calls or choose_calls()
        self._roots = {name: os.open(folder, O_PATH | O_DIRECTORY) for name, folder in roots.items()}
        for folder in roots.values():
            note_root(folder)
        self._refused = {name: find_refused_names(root) for name, root in self._roots.items()}
        self._swept: set[str] = set()

    def close(self) -> None:
        """Closes the folders' descriptors. A second call does nothing."""
        roots, self._roots = self._roots, {}
        for descriptor in roots.values():
            os.close(descriptor)

    def sweep(self, roots: Iterable[str]) -> None:
        """Removes files that killed processes left unfinished in folders of these names, once for each folder."""
        for name in self._roots.keys() & set(roots) - self._swept:
            self._swept.add(name)
            self._remove_unfinished(name)

    def read(self, path: FilePath) -> bytes:
        """Returns the content of a regular file with one name.

        Raises:
            FileRefused: It is not such a file, or is larger than `FILE_LIMIT_BYTES`.
        """
        with translate_os_errors(path), self._open_path(path, _FILE) as file:
            return self._read_open(file, path)

    def info(self, path: FilePath) -> FileInfo:
        """Returns facts about a file or folder.

        Raises:
            FileRefused: It does not exist.
        """
        self._refuse(path)
        with translate_os_errors(path), self._open_path(path.parent, O_PATH | O_DIRECTORY) as folder:
            status = self._calls.stat_below(folder, path.names[-1] if path.names else ".")
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        kind = {stat.S_IFREG: "file", stat.S_IFDIR: "folder"}.get(stat.S_IFMT(status.st_mode), "other")
        size = status.st_size if kind == "file" else 0
        return FileInfo(path=str(path), kind=kind, size_bytes=size, modified_at=status.st_mtime)

    def names(self, path: FilePath) -> list[str]:
        """Returns the sorted names in a folder; those of folders end with '/'. Symbolic links are left out.

        Raises:
            FileRefused: It is not a folder.
        """
        with translate_os_errors(path), self._open_path(path, _FOLDER) as folder, os.scandir(folder) as entries:
            refused = {names[-1] for names in self._refused[path.root] if names[:-1] == without_case(path.names)}
            found = [
                entry
                for entry in entries
                if not entry.is_symlink()
                and not entry.name.startswith(TEMPORARY)
                and not (refused and entry.name.casefold() in refused)
            ]
            return sorted(entry.name + "/" * entry.is_dir(follow_symlinks=False) for entry in found)

    def change(
        self, path: FilePath, make: Callable[[bytes | None], bytes], count_folder: CountFolder = _no_limit
    ) -> int:
        """Replaces a file whole by `make(content)`; None is the content of a new file. Returns the bytes written.

        Missing folders are made, and `count_folder` is called for each of them. `make` runs without a lock, so that
        other writers of the folder do not wait for it. If one of them changes the file meanwhile, `make` is called
        again with the new content.

        Raises:
            FileRefused: It is not a regular file with one name, the content is too large, or others change the file
                again and again for `LOCK_WAIT_S`. Nothing was written.
        """
        if not path.names:
            raise FileRefused(f"{path} is a folder: give the path of a file")
        clock = WorkClock(FILE_LIMIT_BYTES, seconds=LOCK_WAIT_S)
        while True:
            before = self._read_if_there(path)
            content = make(before)
            if len(content) > FILE_LIMIT_BYTES:
                raise FileRefused(f"{path} was not written: {len(content):,} bytes; at most {FILE_LIMIT_BYTES:,}")
            if content == before or self._replace_if_same(path, before, content, count_folder):
                return len(content)
            if clock.is_over:
                raise FileRefused(f"{path} was not changed: other programs change it again and again: try later")

    def _read_if_there(self, path: FilePath) -> bytes | None:
        with translate_os_errors(path):
            try:
                with self._open_path(path, _FILE) as file:
                    return self._read_open(file, path)
            except FileNotFoundError:
                return None

    def _read_open(self, file: int, path: FilePath) -> bytes:
        """Returns the content of an open file whose folder is not locked."""
        if os.fstat(file).st_nlink > 1:
            # Where `rename_by_link` moves it, it has two names for a moment, and its folder is locked meanwhile.
            refusal = f"{path} was not read: another program holds its folder: try later"
            with self._open_path(path.parent, _FOLDER) as folder, hold_lock(folder, refusal):
                pass
        return _read_content(file, path)

    def _replace_if_same(self, path: FilePath, before: bytes | None, content: bytes, count_folder: CountFolder) -> bool:
        """Replaces the file if it still has the content `before`. Returns False if it has another one."""
        name = path.names[-1]
        with translate_os_errors(path), self._folder_for(path, count_folder) as folder, _hold_folders(path, folder):
            if path.parent.names and os.fstat(folder).st_nlink == 0:
                # A refused write of another program had made the folder, and removed it.
                return False
            now, mode = self._before(folder, name, path)
            if now != before:
                return False
            if before is None:
                _refuse_other_spelling(folder, name, path)
            self._replace(folder, name, content, mode)
            return True

    def _replace(self, folder: int, name: str, content: bytes, mode: int) -> None:
        """Writes a file of another name, and gives it this one when it is whole."""

        def write(file: int) -> None:
            left = memoryview(content)
            while left:
                left = left[os.write(file, left) :]
            os.chmod(file, mode)
            os.fsync(file)

        temporary = TEMPORARY + secrets.token_hex(8)
        self._calls.write_new(folder, temporary, write)
        try:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)

    def delete(self, path: FilePath) -> None:
        """Deletes a file or an empty folder. One that does not exist is deleted already.

        Raises:
            FileRefused: It is a folder with files, or a root.
        """
        if not path.names:
            raise FileRefused(f"{path} cannot be deleted: give the path of a file in it")
        self._refuse(path)
        with (
            translate_os_errors(path),
            self._open_path(path.parent, _FOLDER) as folder,
            _hold_folders(path, folder),
            suppress(FileNotFoundError),
        ):
            if stat.S_ISDIR(self._calls.stat_below(folder, path.names[-1]).st_mode):
                os.rmdir(path.names[-1], dir_fd=folder)
            else:
                os.unlink(path.names[-1], dir_fd=folder)

    def move(self, path: FilePath, to: FilePath, count_folder: CountFolder = _no_limit) -> None:
        """Moves a regular file to a path that does not exist yet. Missing folders are made, and counted.

        Raises:
            FileRefused: The one is not such a file, or the other exists.
        """
        if not path.names or not to.names:
            raise FileRefused(f"{path} cannot be moved to {to}: give the paths of files")
        self._refuse(to)
        with (
            translate_os_errors(path),
            self._open_path(path, _FILE) as file,
            self._open_path(path.parent, _FOLDER) as source,
            translate_os_errors(to),
            self._folder_for(to, count_folder) as target,
            _hold_folders(path, source, target),
        ):
            _check_regular(os.fstat(file), path)
            _refuse_other_spelling(target, to.names[-1], to)
            self._calls.rename(source, path.names[-1], target, to.names[-1])
            self._check_moved(file, source, target, path, to)
            os.fsync(target)
            os.fsync(source)

    def _check_moved(self, file: int, source: int, target: int, path: FilePath, to: FilePath) -> None:
        """Moves back another file that took the name between the check and the rename."""
        checked, moved = os.fstat(file), os.stat(to.names[-1], dir_fd=target, follow_symlinks=False)
        if (checked.st_dev, checked.st_ino) != (moved.st_dev, moved.st_ino):
            self._calls.rename(target, to.names[-1], source, path.names[-1])
            raise FileRefused(f"{path} was replaced by another program meanwhile: list its folder before you move it")

    @contextmanager
    def _open_path(self, path: FilePath, flags: int) -> Generator[int]:
        root = self._roots.get(path.root)
        if root is None:
            raise FileRefused(f"{path}: there is no folder /{path.root}/ here")
        self._refuse(path)
        descriptor = self._calls.open_below(root, path.below, flags | O_NOFOLLOW)
        try:
            if flags & O_DIRECTORY and place_of(os.fstat(descriptor)) == find_refused_place():
                raise FileRefused(refusal(path))
            yield descriptor
        finally:
            os.close(descriptor)

    def _refuse(self, path: FilePath) -> None:
        """Raises `FileRefused` if the path leads to the folder that no tool may use, or into it."""
        refused = self._refused.get(path.root)
        if refused:
            names = without_case(path.names)
            if any(names[: len(each)] == each for each in refused):
                raise FileRefused(refusal(path))

    @contextmanager
    def _folder_for(self, path: FilePath, count_folder: CountFolder) -> Generator[int]:
        """Opens the folder of a file, and makes it where it is missing. A failure removes the new folders."""
        folder = path.parent
        made: list[FilePath] = []
        try:
            for depth in range(len(folder.names)):
                here = FilePath(root=path.root, names=folder.names[: depth + 1])
                with self._open_path(here.parent, _FOLDER) as above, suppress(FileExistsError):
                    os.mkdir(here.names[-1], dir_fd=above)
                    made.append(here)
                    count_folder()
            with self._open_path(folder, _FOLDER) as descriptor:
                yield descriptor
        except BaseException:
            for here in reversed(made):
                with suppress(OSError):
                    self._remove_folder(here)
            raise

    def _remove_folder(self, path: FilePath) -> None:
        """Removes an empty folder that no other program writes in."""
        with self._open_path(path.parent, _FOLDER) as above, self._open_path(path, _FOLDER) as folder:
            if try_lock(folder):
                os.rmdir(path.names[-1], dir_fd=above)

    def _before(self, folder: int, name: str, path: FilePath) -> tuple[bytes | None, int]:
        """Returns the content and the mode of a file; None if it does not exist."""
        try:
            file = self._calls.open_below(folder, name, _FILE | O_NOFOLLOW)
        except FileNotFoundError:
            return None, 0o644
        try:
            # The bits that give a program the rights of its owner are dropped.
            return _read_content(file, path), stat.S_IMODE(os.fstat(file).st_mode) & 0o777
        finally:
            os.close(file)

    def _remove_unfinished(self, root: str) -> None:
        folders = [FilePath(root=root, names=())]
        while folders:
            path = folders.pop()
            with (
                suppress(OSError, FileRefused),
                self._open_path(path, _FOLDER) as folder,
                os.scandir(folder) as entries,
            ):
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(FilePath(root=root, names=(*path.names, entry.name)))
                    elif entry.name.startswith(TEMPORARY):
                        _remove_if_stale(folder, entry.name)


def _remove_if_stale(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_ctime > STALE_S:
            os.unlink(name, dir_fd=folder)


def _check_regular(status: os.stat_result, path: FilePath) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise FileRefused(f"{path} is a folder: give the path of a file")
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused(f"{path} is not a regular file: only those can be used")
    if status.st_nlink > 1:
        raise FileRefused(f"{path} has several names on the disk (hard links), so it may not be used")


def _read_content(file: int, path: FilePath) -> bytes:
    status = os.fstat(file)
    _check_regular(status, path)
    if status.st_size > FILE_LIMIT_BYTES:
        raise FileRefused(f"{path} has {status.st_size:,} bytes; at most {FILE_LIMIT_BYTES:,} can be used")
    content = part = os.read(file, status.st_size + 1)
    # A file that grows is read on, and a kernel may return less than was asked for.
    while part and len(content) <= FILE_LIMIT_BYTES:
        part = os.read(file, 65_536)
        content += part
    if len(content) > FILE_LIMIT_BYTES:
        raise FileRefused(f"{path} has more than {FILE_LIMIT_BYTES:,} bytes, which is the limit")
    return content


def _refuse_other_spelling(folder: int, name: str, path: FilePath) -> None:
    for other in os.listdir(folder):
        if other != name and other.casefold() == name.casefold():
            raise FileRefused(f"{path} exists with another spelling, as {other!r}: use that name or a different one")


@contextmanager
def _hold_folders(path: FilePath, *folders: int) -> Generator[None]:
    """Holds the locks of the folders, always in the same order, so that two writers never wait for each other."""
    by_place = {(status.st_dev, status.st_ino): folder for folder in folders for status in [os.fstat(folder)]}
    refusal = f"{path} was not changed: another program holds its folder: work in another one meanwhile"
    with ExitStack() as held:
        for place in sorted(by_place):
            held.enter_context(hold_lock(by_place[place], refusal))
        yield


@contextmanager
def hold_lock(descriptor: int, refusal: str) -> Generator[None]:
    """Holds the lock of a file or folder, which closing the descriptor releases.

    Raises:
        FileRefused: Another program holds it for longer than `LOCK_WAIT_S`, or until the call's deadline. `refusal` is
            the message.
    """
    clock = WorkClock(0, seconds=LOCK_WAIT_S)
    while not try_lock(descriptor):
        if clock.is_over:
            raise FileRefused(refusal)
        time.sleep(0.002)
    yield
