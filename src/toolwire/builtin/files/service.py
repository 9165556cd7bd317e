"""The file operations that a handle's grants allow, with the limits of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from toolwire.builtin.files.disk import Disk, FileInfo
from toolwire.builtin.files.lines import line_blocks
from toolwire.builtin.files.paths import FileConflict, FileLimit, FilePath, FileRefused, read_path
from toolwire.builtin.files.quota import WriteQuota
from toolwire.builtin.files.readable import digest_of, image_of, is_pdf, lines_of, text_of, utf8_content
from toolwire.builtin.files.text_edits import apply_edits
from toolwire.vocabulary.blocks import ImageBlock
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.machine.work_clock import WorkClock
from toolwire.vocabulary.media_bytes import image_type

PAGE_ENTRIES = 1_000
"""Maximum entries of one page of a listing or search."""
SEARCH_TIME_S = 2.0
"""Maximum seconds of one search. A search that takes longer is refused, and the message says so."""
_FILE_SIZE = 4_096
"""What opening a file costs, in characters of text."""
_LINE_STEPS = 50_000_000
"""Most steps of a pattern in one line: a second at worst."""
_CHECKED_STEPS = 1_000_000
DIFF_LINES = 40
"""Maximum lines of the diff that a conflict shows."""
LINE_CHARACTERS = 500
"""Maximum characters of a line that a search or a diff shows."""

FileOperation = Literal["list", "file", "read_file", "read_binary", "read_re", "write", "delete"]
OPERATIONS: tuple[str, ...] = get_args(FileOperation)
CHANGES = ("write", "delete")
READS: tuple[FileOperation, ...] = ("file", "read_file", "read_binary", "read_re")
_OF_FILES = ("read_file", "read_binary", "write")
"""The operations of which a path that ends with '/' is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    """A part of a listing.

    Attributes:
        entries: At most `PAGE_ENTRIES` of them.
        next_start: The `start` of the next page; None for the last one.
    """

    entries: list[str]
    next_start: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWritten:
    """The outcome of a write.

    Attributes:
        sha256: Digest of the content in hex.
        has_changed: False if the file had this content already.
    """

    sha256: str
    has_changed: bool


class FileHandle:
    """The right to some operations below some prefixes of a file system. The longest prefix decides.

    Nothing below `/userinput/` can be changed, whatever the grants say.
    """

    def __init__(self, disk: Disk, grants: Sequence[Mapping[str, Any]]) -> None:
        """Takes the grants, such as `{"prefix": "/workspace/", "ops": {"list", "read_file"}}`.

        Raises:
            ConfigurationError: A grant has another form, an unknown operation or prefix.
        """
        self.disk = disk
        """The folders on disk."""
        self._grants = [_grant(grant) for grant in grants]
        disk.sweep({read_path(prefix).root for prefix, ops in self._grants if "write" in ops} - {"userinput"})

    @property
    def prefixes(self) -> list[str]:
        """The prefixes of the grants, in order."""
        return sorted({f"{prefix}/" for prefix, _ in self._grants})

    @property
    def operations(self) -> frozenset[str]:
        """The operations that some grant has, wherever it applies. Grants on `/userinput/` change nothing."""
        return frozenset(
            operation
            for prefix, ops in self._grants
            for operation in ops
            if operation not in CHANGES or read_path(prefix).root != "userinput"
        )

    def allows(self, operation: FileOperation, path: FilePath) -> bool:
        """True if a grant allows the operation on the path."""
        if operation in CHANGES and path.root == "userinput":
            return False
        matching = [(len(prefix), ops) for prefix, ops in self._grants if f"{path}/".startswith(f"{prefix}/")]
        return bool(matching) and operation in max(matching, key=lambda each: each[0])[1]

    def require_path(self, operation: FileOperation, text: str) -> FilePath:
        """Returns the path of a model's text.

        Raises:
            FileRefused: It is not a path, or no grant allows the operation on it.
        """
        path = read_path(text)
        if path.names and operation in _OF_FILES and text.endswith("/"):
            raise FileRefused(f"{text!r} is the path of a folder: write {str(path)!r}, or the path of a file in it")
        if not self.allows(operation, path):
            because = "/userinput/ is read-only" if path.root == "userinput" and operation in CHANGES else "not allowed"
            raise FileRefused(f"{text!r}: {operation} refused, {because}. Folders here: {', '.join(self.prefixes)}")
        return path


def _grant(grant: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    if set(grant) != {"prefix", "ops"} or not isinstance(grant["prefix"], str) or isinstance(grant["ops"], str):
        raise ConfigurationError(f"grant {grant!r:.200}: give {{'prefix': '/workspace/', 'ops': {{'list', ...}}}}")
    ops = frozenset(grant["ops"])
    if ops - set(OPERATIONS):
        unknown = ", ".join(sorted(map(str, ops - set(OPERATIONS))))
        raise ConfigurationError(
            f"grant {grant['prefix']!r}: no operation {unknown}; there are {', '.join(OPERATIONS)}"
        )
    try:
        return str(read_path(grant["prefix"])), ops
    except FileRefused as error:
        raise ConfigurationError(f"grant: {error}") from error


class FileService:
    """The file operations of one run: a handle's rights, and what the run may write in total.

    Each method takes paths as models write them, and raises `FileRefused` where it cannot do what was asked.
    """

    def __init__(
        self,
        handle: FileHandle,
        *,
        pdf_text: Callable[[bytes, FilePath], str],
        difference: Callable[[str, str, int], str],
    ) -> None:
        """Takes the rights, and functions of upper layers.

        `pdf_text` returns the text of a PDF or raises `FileRefused`. `difference` returns a diff of the current and the
        wanted text, cut after so many lines.
        """
        self._handle = handle
        self._pdf_text = pdf_text
        self._difference = difference
        self._disk = handle.disk
        self._quota = WriteQuota()

    def read(self, path: str, start_line: int = 1, read_lines: int | None = None) -> str | ImageBlock:
        """Returns lines of a text file or PDF, or an image as a block. An image needs `read_binary` too."""
        checked = self._handle.require_path("read_file", path)
        content = self._disk.read(checked)
        media_type = image_type(content)
        if media_type is None:
            return lines_of(self._text(content, checked), start_line, read_lines, checked)
        if start_line != 1 or read_lines is not None:
            raise FileRefused(f"{checked} is an image, which has no lines: leave start_line and read_lines out")
        return image_of(content, media_type, self._handle.require_path("read_binary", path))

    def read_text(self, path: str, start_line: int = 1, read_lines: int | None = None) -> str:
        """Returns lines of a text file or PDF, with their ends."""
        checked = self._handle.require_path("read_file", path)
        return lines_of(self._text(self._disk.read(checked), checked), start_line, read_lines, checked)

    def info(self, path: str) -> FileInfo:
        """Returns facts about a file or folder."""
        return self._disk.info(self._handle.require_path("file", path))

    def sha256(self, path: str) -> str:
        """Returns the digest of a file in hex."""
        return digest_of(self._disk.read(self._handle.require_path("read_file", path)))

    @property
    def granted_operations(self) -> frozenset[str]:
        """The operations that some grant has."""
        return self._handle.operations

    def allowed_folders(self) -> list[str]:
        """Returns the folders that the grants name."""
        return self._handle.prefixes

    def list(self, path: str, start: int = 1) -> FilePage:
        """Returns the names in a folder, `PAGE_ENTRIES` at a time."""
        return _page(self._disk.names(self._handle.require_path("list", path)), start)

    def write(self, path: str, content: str, base_sha256: str | None = None) -> FileWritten:
        """Replaces a file whole."""
        return self._change(path, base_sha256, lambda _: content)

    def edit(self, path: str, edits: Sequence[Mapping[str, str]], base_sha256: str | None = None) -> FileWritten:
        """Makes the edits in order, each of a text that stands once. The line ends of the file stay."""
        checked = self._handle.require_path("read_file", path)

        def edit_content(before: str | None) -> str:
            if before is None:
                raise FileRefused(f"{checked} does not exist: write it with write_file")
            return apply_edits(before, edits, str(checked))

        return self._change(path, base_sha256, edit_content)

    def move(self, path: str, to: str) -> None:
        """Moves a file. What may be read of it at its new place, may be read at the old one too."""
        self._handle.require_path("write", path)
        source, target = self._handle.require_path("delete", path), self._handle.require_path("write", to)
        for operation in READS:
            if self._handle.allows(operation, target):
                self._handle.require_path(operation, path)
        with self._quota.operation(target) as count:
            self._disk.move(source, target, lambda: count(0, 1))

    def delete(self, path: str) -> None:
        """Deletes a file or an empty folder."""
        self._disk.delete(self._handle.require_path("delete", path))

    def find(self, matches: Callable[[str], bool], path: str, start: int = 1) -> FilePage:
        """Returns the paths of files whose path below `path` matches."""
        checked = self._handle.require_path("list", path)
        before = len(str(checked)) + 1
        files = self._walk(checked, _SearchTime(checked))
        return _page((str(file) for file in files if matches(str(file)[before:])), start)

    def search(self, matches: Callable[[str], bool], path: str, start: int = 1, *, steps: int = 1) -> FilePage:
        """Returns the matching lines of text files, as `path:line: text`. Files that are not text are left out.

        `steps` is how much work `matches` has with one character, such as the states of a pattern.
        """
        checked = self._handle.require_path("read_re", path)
        return _page(self._matching_lines(matches, checked, steps), start)

    def _matching_lines(self, matches: Callable[[str], bool], top: FilePath, steps: int) -> Iterator[str]:
        time_left = _SearchTime(top)
        for file in self._walk(top, time_left):
            if not self._handle.allows("read_re", file):
                continue
            try:
                text = text_of(self._disk.read(file), file)
            except FileRefused:
                continue
            time_left.add(len(text))
            number = 0
            for block in line_blocks(text):
                time_left.check()
                for line in block:
                    number += 1
                    if steps > 1:
                        time_left.spend(steps * (len(line) + 1), file, number)
                    if matches(line):
                        yield f"{file}:{number}: {line[:LINE_CHARACTERS]}"

    def _text(self, content: bytes, path: FilePath) -> str:
        return self._pdf_text(content, path) if is_pdf(content) else text_of(content, path)

    def _walk(self, top: FilePath, time_left: _SearchTime) -> Iterator[FilePath]:
        folders = [top]
        while folders:
            folder = folders.pop()
            if not self._handle.allows("list", folder):
                continue
            for name in self._disk.names(folder):
                time_left.add(_FILE_SIZE)
                time_left.check()
                path = FilePath(root=folder.root, names=(*folder.names, name.removesuffix("/")))
                if name.endswith("/"):
                    folders.append(path)
                else:
                    yield path

    def _change(self, path: str, base_sha256: str | None, make: Callable[[str | None], str]) -> FileWritten:
        checked = self._handle.require_path("write", path)
        outcome = FileWritten(sha256="", has_changed=False)
        counted_bytes = counted_files = 0

        def make_content(before: bytes | None) -> bytes:
            nonlocal outcome, counted_bytes, counted_files
            text = None if before is None else text_of(before, checked)
            if base_sha256 is not None and digest_of(before) != base_sha256.lower():
                raise self._conflict(checked, text, make)
            after = utf8_content(make(text), checked)
            if after != before:
                # Another writer may let this be made twice. It counts once.
                count(len(after) - counted_bytes, 1 - counted_files)
                counted_bytes, counted_files = len(after), 1
            outcome = FileWritten(sha256=digest_of(after), has_changed=after != before)
            return after

        with self._quota.operation(checked) as count:
            self._disk.change(checked, make_content, lambda: count(0, 1))
        return outcome

    def _conflict(self, path: FilePath, text: str | None, make: Callable[[str | None], str]) -> FileConflict:
        if text is None:
            return FileConflict(f"{path} does not exist: leave base_sha256 out to write it anew", sha256="")
        digest = digest_of(text.encode())
        said = f"{path} was changed since you read it. Its sha256 is {digest} now"
        if not self._handle.allows("read_file", path):
            # A diff shows the content.
            return FileConflict(f"{said}.", sha256=digest)
        try:
            wanted = make(text)
        except FileRefused:
            wanted = text
        lines = self._difference(text, wanted, DIFF_LINES).split("\n")
        said = f"{said}: read it again, and make your change on it."
        return FileConflict("\n".join([said, *(line[:LINE_CHARACTERS] for line in lines if line)]), sha256=digest)


class _SearchTime(WorkClock):
    """The time that a search may take."""

    __slots__ = ("_steps", "_top")

    def __init__(self, top: FilePath) -> None:
        super().__init__(seconds=SEARCH_TIME_S)
        self._top = top
        self._steps = 0

    def check(self) -> None:
        if self.is_over:
            raise FileLimit(
                f"{self._top}: the search takes too long: search in a smaller folder, or for a simpler pattern"
            )

    def spend(self, steps: int, file: FilePath, line: int) -> None:
        """Counts the steps of the search in a line before it is searched: nothing can stop the engine."""
        if steps > _LINE_STEPS:
            raise FileLimit(f"{file}: line {line:,} is too long for this pattern: repeat less in it, or search a text")
        self._steps += steps
        if self._steps > _CHECKED_STEPS:
            self._steps = 0
            self.check()


def _page(entries: Iterable[str], start: int) -> FilePage:
    if start < 1:
        raise FileRefused("start begins at 1")
    end = start - 1 + PAGE_ENTRIES
    found = list(islice(entries, start - 1, end + 1))
    return FilePage(entries=found[:PAGE_ENTRIES], next_start=end + 1 if len(found) > PAGE_ENTRIES else None)
