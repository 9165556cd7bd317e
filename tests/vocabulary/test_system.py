"""What the module that knows the operating system answers on Linux. `tests/elsewhere` has the other systems."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import until
from toolwire.vocabulary.machine import system


def test_a_lock_belongs_to_one_open_file_until_it_is_closed(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    system.lock(first)
    assert not system.try_lock(second)
    os.close(first)
    assert system.try_lock(second)
    os.close(second)


@pytest.mark.parametrize(("mode", "is_private"), [(0o600, True), (0o400, True), (0o640, False), (0o604, False)])
def test_a_file_is_private_if_no_other_user_may_use_it(mode: int, is_private: bool, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch()
    file.chmod(mode)
    assert system.is_private(file.stat()) is is_private


def test_a_file_of_another_user_is_not_private(tmp_path: Path) -> None:
    status = list(tmp_path.stat())
    status[stat.ST_MODE], status[stat.ST_UID] = stat.S_IFREG | 0o600, os.geteuid() + 1
    assert not system.is_private(os.stat_result(status))


def test_the_start_of_a_process_tells_it_from_a_later_one_and_is_none_once_it_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = system.process_start(process.pid)
    assert started
    assert started != system.process_start(1)
    process.kill()
    # It is not reaped yet.
    until(lambda: system.process_start(process.pid) is None)
    process.communicate()
    assert system.process_start(process.pid) is None


def test_where_the_system_does_not_tell_the_start_a_process_is_there_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    monkeypatch.setattr(system, "_PROC", tmp_path)
    process.wait()
    assert (system.process_start(os.getpid()), system.process_start(process.pid)) == ("", None)


def test_a_group_of_processes_ends_together() -> None:
    source = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        system.terminate_group(process.pid)
        until(lambda: system.process_start(child) is None)
        system.kill_group(process.pid)
    system.kill_group(process.pid)
