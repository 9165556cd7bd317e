"""A move renames the file that was checked, replaces nothing, and leaves one name."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, until
from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.disk_calls import POSIX, DiskCalls
from toolwire.builtin.files.paths import FileRefused, read_path
from toolwire.vocabulary.machine.system import try_lock

SOURCE, TARGET = read_path("/workspace/a"), read_path("/workspace/deep/b")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("secret")
    return tmp_path / "work"


@pytest.fixture
def disk(work: Path, calls: DiskCalls) -> Iterator[Disk]:
    made = Disk({"workspace": str(work)}, calls=calls)
    made.change(SOURCE, lambda _: b"content")
    yield made
    made.close()


def test_a_moved_file_has_its_new_name_alone(disk: Disk, work: Path) -> None:
    disk.move(SOURCE, TARGET)
    assert not (work / "a").exists()
    assert ((work / "deep/b").read_bytes(), (work / "deep/b").stat().st_nlink) == (b"content", 1)


def test_a_move_replaces_no_file_that_appears_meanwhile(disk: Disk, calls: DiskCalls, work: Path) -> None:
    def late(source: int, name: str, target: int, to: str) -> None:
        (work / "deep/b").write_text("of another program")
        calls.rename(source, name, target, to)

    watched = Disk({"workspace": str(work)}, calls=replace(calls, rename=late))
    with pytest.raises(FileRefused, match=r"^/workspace/deep/b exists already"):
        watched.move(SOURCE, TARGET)
    watched.close()
    assert ((work / "a").read_bytes(), (work / "deep/b").read_text()) == (b"content", "of another program")


@pytest.mark.threat(33)
@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "new file"])
def test_a_name_that_another_program_takes_meanwhile_is_not_moved(
    disk: Disk, calls: DiskCalls, work: Path, kind: str
) -> None:
    swaps = ["swap"]

    def swapped(source: int, name: str, target: int, to: str) -> None:
        if swaps:
            swaps.pop()
            os.unlink(work / "a")  # noqa: PTH108
            if kind == "symbolic link":
                (work / "a").symlink_to("../secret")
            elif kind == "hard link":
                (work / "a").hardlink_to(work.parent / "secret")
            else:
                (work / "a").write_text("newer")
        calls.rename(source, name, target, to)

    watched = Disk({"workspace": str(work)}, calls=replace(calls, rename=swapped))
    with pytest.raises(FileRefused, match=r"^/workspace/a was replaced by another program meanwhile"):
        watched.move(SOURCE, TARGET)
    watched.close()
    assert not (work / "deep").exists()
    assert (work / "a").read_text() == ("newer" if kind == "new file" else "secret")
    assert (work / "a").is_symlink() == (kind == "symbolic link")


def test_two_moves_in_opposite_directions_do_not_wait_for_each_other(disk: Disk) -> None:
    there, back = read_path("/workspace/x/1"), read_path("/workspace/y/2")
    disk.change(there, lambda _: b"1")
    disk.change(back, lambda _: b"2")
    refused: list[str] = []

    def moves(path: str, to: str) -> None:
        for _ in range(100):
            try:
                disk.move(read_path(path), read_path(to))
                disk.move(read_path(to), read_path(path))
            except FileRefused as error:
                refused.append(str(error))

    threads = [
        threading.Thread(target=moves, args=arguments)
        for arguments in (("/workspace/x/1", "/workspace/y/1"), ("/workspace/y/2", "/workspace/x/2"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == []


def test_a_read_and_an_edit_wait_for_a_move_that_gives_its_file_two_names(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, going_on, waiting = threading.Event(), threading.Event(), set[int]()

    def try_and_note(folder: int) -> bool:
        is_mine = try_lock(folder)
        if not is_mine:
            waiting.add(threading.get_ident())
        return is_mine

    def link_slowly(source: int, name: str, target: int, to: str) -> None:
        os.link(name, to, src_dir_fd=source, dst_dir_fd=target)
        begun.set()
        assert going_on.wait(PATIENCE_S)
        os.unlink(name, dir_fd=source)

    monkeypatch.setattr("toolwire.builtin.files.disk.try_lock", try_and_note)
    (work / "a").write_text("content")
    disk = Disk({"workspace": str(work)}, calls=replace(POSIX, rename=link_slowly))
    with ThreadPoolExecutor() as threads:
        moving = threads.submit(disk.move, SOURCE, TARGET)
        assert begun.wait(PATIENCE_S)
        reading = [threads.submit(disk.read, path) for path in (SOURCE, TARGET)]
        editing = threads.submit(disk.change, SOURCE, lambda before: (before or b"") + b"+")
        until(lambda: len(waiting) == 3)
        going_on.set()
        assert [one.result(PATIENCE_S) for one in (moving, *reading)] == [None, b"content", b"content"]
        editing.result(PATIENCE_S)
    disk.close()
    # The edit came after the move, and made a new file.
    assert ((work / "deep/b").read_text(), (work / "a").read_text()) == ("content", "+")


def test_an_edit_and_a_move_at_once_lose_no_content(disk: Disk, work: Path) -> None:
    ends: list[str] = []

    def edits() -> None:
        for _ in range(100):
            try:
                disk.change(SOURCE, lambda before: (before or b"") + b"+")
            except FileRefused as error:
                ends.append(str(error))

    thread = threading.Thread(target=edits)
    thread.start()
    moved = 0
    for number in range(100):
        try:
            disk.move(SOURCE, read_path(f"/workspace/kept/{number}"))
            moved += 1
        except FileRefused:
            continue
    thread.join()
    left = [*(work / "kept").iterdir(), *([work / "a"] if (work / "a").exists() else [])]
    assert (sum(path.read_bytes().count(b"+") for path in left), ends) == (100, [])
    assert len(list((work / "kept").iterdir())) == moved
