"""Kills and failing disks: a file is the old one or the new one, and nothing else is left."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.files.failing_calls import OPERATIONS, Fault, faults
from tests.files.killed_writes import torn_by, write_beside, write_by_disk, write_in_place
from toolwire.builtin.files import disk as disk_module
from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.disk_calls import DiskCalls
from toolwire.builtin.files.paths import read_path

KILLS, KILLS_WHOLE = 20, 2_000
NAIVE_KILLS = 60
FAULTS: list[tuple[int, Fault]] = [
    (errno.EIO, "once"),
    (errno.EIO, "from then on"),
    (errno.ENOSPC, "once"),
    (errno.ENOSPC, "from then on"),
    (0, "killed"),
]
CALLS_OF = {"overwrite": 12, "create": 15, "move": 14, "delete": 4}
"""The least number of system calls of an operation that fail in turn."""


@pytest.fixture(autouse=True)
def sweep_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "STALE_S", -1.0)


@pytest.mark.threat(35)
@pytest.mark.timeout(600)
def test_a_writer_killed_at_random_tears_no_file_and_leaves_none(calls: DiskCalls, tmp_path: Path, whole: bool) -> None:
    kills = KILLS_WHOLE if whole else KILLS
    found = torn_by(tmp_path, write_by_disk(tmp_path, calls), kills, seed=1)
    assert (found.kills, found.torn, found.left_after_reopening) == (kills, 0, 0)


@pytest.mark.threat(35)
def test_the_naive_writers_tear_files_or_leave_some(tmp_path: Path) -> None:
    (tmp_path / "in place").mkdir()
    (tmp_path / "beside").mkdir()
    kills = 5
    assert any(torn_by(tmp_path / "in place", write_in_place, kills, seed=n).torn for n in range(NAIVE_KILLS // kills))
    assert any(
        torn_by(tmp_path / "beside", write_beside, kills, seed=n).left_after_reopening
        for n in range(NAIVE_KILLS // kills)
    )


@pytest.mark.threat(35)
@pytest.mark.parametrize(("code", "fault"), FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_system_call_may_fail(
    calls: DiskCalls, operation: str, code: int, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert faults(tmp_path, operation, code, fault, calls, monkeypatch) >= CALLS_OF[operation]


@pytest.mark.threat(35)
def test_a_disk_that_takes_a_part_of_each_write_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, real = Disk({"workspace": str(tmp_path)}), os.write

    def some(file: int, content: Any) -> int:
        return real(file, content[:7])

    with monkeypatch.context() as patch:
        patch.setattr(disk_module.os, "write", some)
        disk.change(read_path("/workspace/a"), lambda _: bytes(range(100)))
    assert (tmp_path / "a").read_bytes() == bytes(range(100))
    disk.close()
