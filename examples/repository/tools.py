"""Tools that read a git repository, for a model: list, read, search, count, and its history.

The repository is the one that holds this file, or the folder named by the environment variable `REPOSITORY_ROOT`.
Nothing outside it can be read, and nothing in it is changed. Folders that are no part of the work are left out: those
whose names begin with a dot, and caches.

What makes these good tools: each does one thing; types and bounds stand in the signature, where they are enforced
before the function runs; the docstring says what comes back, what is raised and why, and shows a call; results are
small, plain and in an order that does not change; an error says what to write instead.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import Field

FILE_LIMIT_BYTES = 2_000_000
"""Bytes of a file that is still read: far above any source text."""

GIT_TIMEOUT_S = 20
"""Seconds that git may take."""

_LEFT_OUT = {"__pycache__", "build", "dist", "node_modules"}


class Match(TypedDict):
    """One line that holds what was searched for."""

    path: str
    line: int
    text: str


class Commit(TypedDict):
    """One commit."""

    hash: str
    date: str
    author: str
    subject: str


class GitError(Exception):
    """git could not answer."""


def list_files(pattern: str = "**") -> list[str]:
    """Lists the files of the repository whose paths fit a pattern.

    Args:
        pattern: `*` stands for any part of a name, `**` for any folders. A pattern without `/` fits names in every
            folder: `*.py`, `docs/*.md`, `src/**/test_*.py`.

    Returns:
        list[str]: The paths, relative to the repository, in alphabetical order.

    Example:
        >>> list_files("docs/*.md")
        ['docs/guide.md']
    """
    return list(_paths(pattern))


def read_file(
    path: str, first_line: Annotated[int, Field(ge=1)] = 1, last_line: Annotated[int, Field(ge=1)] | None = None
) -> str:
    """Reads a text file, or some of its lines.

    Args:
        path: The file, relative to the repository.
        first_line: The first line to read; lines are counted from 1.
        last_line: The last line to read; left out, all lines to the end.

    Returns:
        str: The text of these lines; empty when the file ends before the first.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a folder.
        PermissionError: It lies outside the repository.
        ValueError: It is no text, or too long to be read.

    Example:
        >>> read_file("CHANGELOG.md", last_line=1)
        '# Changelog\\n'
    """
    return "".join(_text(path).splitlines(keepends=True)[first_line - 1 : last_line])


def search(query: str, pattern: str = "**", limit: Annotated[int, Field(ge=1, le=500)] = 50) -> list[Match]:
    """Finds the lines that hold a text; upper and lower case count as the same.

    Args:
        query: The text to look for.
        pattern: Which files to look in, as in `list_files`.
        limit: How many lines to give at most.

    Returns:
        list[dict]: The lines, by path and number, with these fields:
            - path: str - the file, relative to the repository
            - line: int - the number of the line, from 1
            - text: str - the line without the spaces around it

    Raises:
        ValueError: The query is empty.

    Example:
        >>> search("def steep", pattern="*.py", limit=1)
        [{'path': 'teatime/steep.py', 'line': 17, 'text': 'def steep(leaf: str, again: int = 0) -> Steeping:'}]
    """
    if not query.strip():
        raise ValueError("the query is empty: write the text to look for")
    found: list[Match] = []
    for path in _paths(pattern):
        for number, line in enumerate(_lines_or_none(path), 1):
            if query.casefold() in line.casefold():
                found.append(Match(path=path, line=number, text=line.strip()))
            if len(found) == limit:
                return found
    return found


def count_lines(path: str) -> int:
    """Counts the lines of a text file.

    Args:
        path: The file, relative to the repository.

    Returns:
        int: How many lines it has; a last line without an end counts.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a folder.
        PermissionError: It lies outside the repository.
        ValueError: It is no text, or too long to be read.

    Example:
        >>> count_lines("README.md")
        13
    """
    return len(_text(path).splitlines())


def git_log(path: str = ".", limit: Annotated[int, Field(ge=1, le=200)] = 10) -> list[Commit]:
    """Tells the latest commits that changed a file or folder, newest first.

    Args:
        path: The file or folder, relative to the repository; left out, the whole repository.
        limit: How many commits to give at most.

    Returns:
        list[dict]: The commits, with these fields:
            - hash: str - the first ten digits of its name
            - date: str - the day it was made, as 2025-03-14
            - author: str - who wrote it
            - subject: str - the first line of its message

    Raises:
        GitError: There is no history to read, or git is not installed.
        FileNotFoundError: There is no such file or folder.
        PermissionError: It lies outside the repository.

    Example:
        >>> git_log("CHANGELOG.md", limit=1)
        [{'hash': '2fd4e1c67a', 'date': '2025-03-14', 'author': 'toolwire', 'subject': 'Note the new timer'}]
    """
    form = "--format=%h%x00%as%x00%an%x00%s"
    place = _inside(path)
    # Naming the root would leave out the commits that changed no file.
    where = [] if place == _root() else ["--", str(place)]
    output = _git("log", "--abbrev=10", f"--max-count={limit}", form, *where)
    return [_commit(*line.split("\0")) for line in output.splitlines()]


def _commit(name: str, date: str, author: str, subject: str) -> Commit:
    return Commit(hash=name, date=date, author=author, subject=subject)


def _root() -> Path:
    """Asked for at each call, so that who starts the process decides."""
    return Path(os.environ.get("REPOSITORY_ROOT") or Path(__file__).parents[2]).resolve()


def _inside(path: str) -> Path:
    """The place of a path, with symbolic links followed; both it and what it leads to lie inside."""
    found = (_root() / path).resolve()
    if not found.is_relative_to(_root()):
        raise PermissionError(f"{path!r} lies outside the repository: write a path relative to it")
    if not found.exists():
        raise FileNotFoundError(f"there is no {path!r}: list_files() tells what there is")
    return found


def _text(path: str) -> str:
    file = _inside(path)
    if file.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder: list_files({path.rstrip('/') + '/**'!r}) tells what is in it")
    if not file.is_file() or file.stat().st_size > FILE_LIMIT_BYTES:
        raise ValueError(f"{path!r} is no file of at most {FILE_LIMIT_BYTES:,} bytes")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path!r} is no text in UTF-8") from None


def _lines_or_none(path: str) -> list[str]:
    """The lines of a file; none for one that is no text."""
    try:
        return _text(path).splitlines()
    except (OSError, ValueError):
        return []


def _paths(pattern: str) -> Iterator[str]:
    """In alphabetical order. Links are left out: they lead to files that are listed elsewhere, or outside."""
    root, fits = _root(), _as_regex(pattern)
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _LEFT_OUT]
        paths = (Path(folder, name) for name in names)
        found += [path.relative_to(root).as_posix() for path in paths if path.is_file() and not path.is_symlink()]
    yield from sorted(path for path in found if fits.fullmatch(path))


def _as_regex(pattern: str) -> re.Pattern[str]:
    """`**/` fits any folders or none, `*` and `?` stay within a name; nothing else is special."""
    if "/" not in pattern and pattern != "**":
        pattern = f"**/{pattern}"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    special = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(special.get(part) or re.escape(part) for part in parts), re.DOTALL)


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_root()), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git cannot be asked: {error}") from error
    if done.returncode != 0:
        raise GitError(done.stderr.strip().partition("\n")[0])
    return done.stdout
