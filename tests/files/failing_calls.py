"""A disk whose system calls fail: the nth one, all from the nth on, or by the death of the process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.files.killed_writes import reopen
from toolwire.builtin.files import beneath, posix_calls
from toolwire.builtin.files import disk as disk_module
from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.disk_calls import LINUX, DiskCalls
from toolwire.builtin.files.paths import FileRefused, read_path

Fault = Literal["once", "from then on", "killed"]

CALLS = ("write", "fsync", "link", "rename", "unlink", "mkdir", "rmdir", "chmod", "open", "stat", "fstat", "listdir")
"""The functions of `os` that a change uses, besides `close`."""
OLD, NEW = b"old" * 100, b"new" * 100


@dataclass(slots=True)
class Calls:
    """Counts system calls, and makes some of them fail."""

    fails_at: int
    code: int
    fault: Fault
    made: int = 0
    has_failed: bool = False

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function with the count and the failure before it."""

        def call(*arguments: Any, **keywords: Any) -> Any:
            self.made += 1
            if self.made == self.fails_at or (self.made > self.fails_at and self.fault == "from then on"):
                self.has_failed = True
                if self.fault == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(self.code, os.strerror(self.code), "/path/of/the/host")
            return function(*arguments, **keywords)

        return call


class CountedOs:
    """The module `os` as a disk sees it, with counted calls."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        return self._calls.wrapped(real) if name in CALLS else real


OPERATIONS: dict[str, Callable[[Disk], object]] = {
    "overwrite": lambda disk: disk.change(read_path("/workspace/a"), lambda _: NEW),
    "create": lambda disk: disk.change(read_path("/workspace/deep/er/b"), lambda _: NEW),
    "move": lambda disk: disk.move(read_path("/workspace/a"), read_path("/workspace/deep/b")),
    "delete": lambda disk: disk.delete(read_path("/workspace/a")),
}


def faults(
    folder: Path, operation: str, code: int, fault: Fault, disk_calls: DiskCalls, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Makes each system call of the operation fail in turn. Returns the number of the calls.

    Checks after each that every file is whole, that one failure leaves no new folder, and that nothing else is left
    after reopening.
    """
    number = 0
    while True:
        number += 1
        work = folder / f"{operation}{number}"
        work.mkdir()
        (work / "a").write_bytes(OLD)
        calls = Calls(fails_at=number, code=code, fault=fault)
        if fault == "killed":
            has_failed = _killed(work, operation, calls, disk_calls, monkeypatch)
        else:
            _attempt(work, operation, calls, disk_calls, monkeypatch)
            has_failed = calls.has_failed
        _check(work, operation, has_failed=has_failed, may_have_both=disk_calls is not LINUX and fault != "once")
        if fault == "once":
            assert _empty_folders(work) == []
        if not has_failed:
            return number - 1


def _attempt(work: Path, operation: str, calls: Calls, disk_calls: DiskCalls, monkeypatch: pytest.MonkeyPatch) -> None:
    if disk_calls is LINUX:
        # They call the kernel past `os`.
        disk_calls = replace(LINUX, open_below=calls.wrapped(LINUX.open_below), rename=calls.wrapped(LINUX.rename))
    disk = Disk({"workspace": str(work)}, calls=disk_calls)
    with monkeypatch.context() as patch:
        for module in (disk_module, beneath, posix_calls):
            patch.setattr(module, "os", CountedOs(calls))
        calls.made = 0
        with suppress(FileRefused):
            OPERATIONS[operation](disk)
    with suppress(OSError):
        disk.close()


def _killed(work: Path, operation: str, calls: Calls, disk_calls: DiskCalls, monkeypatch: pytest.MonkeyPatch) -> bool:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _attempt(work, operation, calls, disk_calls, monkeypatch)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _check(work: Path, operation: str, *, has_failed: bool, may_have_both: bool) -> None:
    """Checks the files. Without a call that renames to a free name, a move that ends in its middle leaves both."""
    reopen(work)
    files = {path.relative_to(work).as_posix(): path.read_bytes() for path in work.rglob("*") if path.is_file()}
    before = {"a": OLD}
    after = {
        "overwrite": {"a": NEW},
        "create": {"a": OLD, "deep/er/b": NEW},
        "move": {"deep/b": OLD},
        "delete": {},
    }[operation]
    both = [{**before, **after}] if may_have_both and operation == "move" else []
    assert files in ([before, after, *both] if has_failed else [after])


def _empty_folders(work: Path) -> list[str]:
    return [path.name for path in work.rglob("*") if path.is_dir() and not any(path.iterdir())]
