"""Paths as models write them, such as `/workspace/notes/a.txt`, and the errors about them."""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote

from toolwire.vocabulary.errors import ToolwireError

PATH_LIMIT = 1_024
"""Maximum characters of a path. Linux allows 4,096 bytes, and a character takes at most 4."""
NAME_LIMIT_BYTES = 255
"""Maximum bytes of one name: the limit of Linux's file systems."""
TEMPORARY = ".toolwire-tmp-"
"""The first characters of a file that is being written. No path may use them."""
ROOTS = ("workspace", "userinput")
"""The first names of all paths."""


class FileRefused(ToolwireError):
    """A file could not be read or changed as asked. Nothing was written. The message is fit for a model."""


class FileLimit(FileRefused):
    """The work on a file takes more time than its size allows. Nothing was written. The message says what to narrow."""


class FileConflict(FileRefused):
    """The file is not the one that `base_sha256` names. Nothing was written.

    Attributes:
        sha256: Digest of the current content in hex; empty if the file does not exist.
    """

    def __init__(self, message: str, *, sha256: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePath:
    """A path that has been checked."""

    root: str
    """`workspace` or `userinput`."""
    names: tuple[str, ...]
    """The names below the root; empty for the root itself."""

    @property
    def below(self) -> str:
        """The path relative to its root."""
        return "/".join(self.names) or "."

    @property
    def parent(self) -> FilePath:
        """The folder that holds it."""
        return FilePath(root=self.root, names=self.names[:-1])

    def __str__(self) -> str:
        return "/".join(("", self.root, *self.names))


def read_path(text: str) -> FilePath:
    """Returns the checked path.

    Raises:
        FileRefused: It is not a path of these folders. The message says what to write instead.
    """
    if len(text) > PATH_LIMIT:
        raise FileRefused(f"the path has {len(text):,} characters; at most {PATH_LIMIT:,} are allowed")
    root, *names = text[1:].removesuffix("/").split("/")
    if not text.startswith("/") or root not in ROOTS:
        raise FileRefused(f"{text!r} does not begin with '/workspace/' or '/userinput/': write {_meant(text)}")
    for name in names:
        why = _why_not(name)
        if why:
            raise FileRefused(f"{text!r}: the name {name!r} {why}")
    return FilePath(root=root, names=tuple(names))


_SCHEME = re.compile(r"(?:file|sandbox):(?://(?:localhost(?=/))?)?", re.IGNORECASE)
"""What models write before a path. A drive, `C:`, does not count: it leads elsewhere."""


def _meant(text: str) -> str:
    """Returns the path that was probably meant, quoted, or general words. A path is returned only if it can be read."""
    path = text.strip().strip("'\"`").strip()
    scheme = _SCHEME.match(path)
    path = (path if scheme is None else unquote(path[scheme.end() :])).replace("\\", "/")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if names and names[0].lower() in ROOTS:
        names[0] = names[0].lower()
    elif names and not path.startswith("/"):
        names.insert(0, "workspace")
    meant = unicodedata.normalize("NFC", "/" + "/".join(names))
    try:
        return repr(str(read_path(meant))) if names and names[0] in ROOTS and ":" not in meant else "such a path"
    except FileRefused:
        return "such a path"


def _why_not(name: str) -> str:
    if name in ("", ".", ".."):
        return "is not allowed: write the path without '.', '..' and '//'"
    if name.startswith("~") or "\\" in name:
        return "is not allowed: write it without '~' at its start and without '\\'"
    if name.startswith(TEMPORARY):
        return "is kept for files that are being written: choose another"
    if any(unicodedata.category(character)[0] == "C" for character in name):
        return "has invisible characters: leave them out"
    if unicodedata.normalize("NFC", name) != name:
        return "is not in Unicode's form NFC: write composed letters"
    if len(name.encode()) > NAME_LIMIT_BYTES:
        return f"is longer than {NAME_LIMIT_BYTES} bytes: shorten it"
    return ""


_REASONS = {
    errno.ENOENT: "does not exist: list the folder to see what does",
    errno.ENOTDIR: "leads through something that is not a folder: list the folder above it",
    errno.ELOOP: "is a symbolic link, which is not followed: use the path of the file itself",
    errno.EXDEV: "leads out of its folder, which is not allowed",
    errno.EISDIR: "is a folder: give the path of a file",
    errno.EEXIST: "exists already: choose another name, or delete it first",
    errno.ENOTEMPTY: "is a folder with files in it: delete those first",
    errno.EACCES: "may not be opened: the host does not allow it",
    errno.EPERM: "may not be changed: the host does not allow it",
    errno.EROFS: "lies on a disk that cannot be written",
    errno.ENOSPC: "was not written: the disk is full",
    errno.EDQUOT: "was not written: the disk quota is used up",
    errno.EIO: "could not be read or written: the disk failed",
    errno.ENXIO: "is not a regular file",
    errno.EOPNOTSUPP: "was not written: this disk cannot hold a file without a name (O_TMPFILE)",
    errno.ENAMETOOLONG: "is too long: shorten it",
}


@contextmanager
def translate_os_errors(path: FilePath) -> Generator[None]:
    """Turns an `OSError` into a `FileRefused` whose text is ours and names only the model's path."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"could not be used ({errno.errorcode.get(error.errno or 0, 'error')})")
        raise FileRefused(f"{path} {reason}") from None
