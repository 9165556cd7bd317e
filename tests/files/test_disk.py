"""The folders on disk: nothing outside them can be read or changed."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.files.case_blind import CaseBlindOs
from tests.files.races import raced
from toolwire.builtin.files import disk as disk_module
from toolwire.builtin.files import posix_calls
from toolwire.builtin.files.disk import FILE_LIMIT_BYTES, Disk
from toolwire.builtin.files.disk_calls import LINUX, OLD_LINUX, POSIX, DiskCalls
from toolwire.builtin.files.paths import FilePath, FileRefused, read_path
from toolwire.builtin.files.service import FileHandle
from toolwire.tools import DiskFileSystem, FileDomainService, workspace_tools


@pytest.fixture
def disk(calls: DiskCalls, tmp_path: Path) -> Iterator[Disk]:
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    made = Disk({"workspace": str(tmp_path / "work")}, calls=calls)
    yield made
    made.close()


def outside(tmp_path: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in (tmp_path / "outside").iterdir()}


_BAD = ["..", "../x", "a/../..", ".", "a//b", "~", "~root", "a\\b", "c:\\x", "\0", "a\0b", "\x1b", "\u202e", "\u200b"]
_BAD += ["e\u0301", "a/./b", "x" * 256, "\ud800", "\n", ".toolwire-tmp-1"]
ESCAPES = [
    f"{before}{name}{after}" for name in _BAD for before in ("/workspace/", "/workspace/a/") for after in ("", "/x")
]
ESCAPES += [f"{name}{after}" for name in _BAD for after in ("", "/workspace/a")]
ESCAPES += [
    "",
    "/",
    "//",
    "/etc/passwd",
    "/workspaces/a",
    "/workspace../a",
    "//workspace/a",
    "workspace/a",
    "/WORKSPACE/a",
]
ESCAPES += ["/proc/self/environ", "file:///etc/passwd", "/workspace/" + "a/" * 600]


def test_the_corpus_has_at_least_120_paths() -> None:
    assert len(set(ESCAPES)) >= 120


@pytest.mark.threat(32)
@pytest.mark.parametrize("text", ESCAPES)
def test_a_path_out_of_the_folders_is_refused_before_the_disk_is_asked(text: str) -> None:
    with pytest.raises(FileRefused):
        read_path(text)


@pytest.mark.threat(32)
@pytest.mark.parametrize("text", ["../outside/secret", "/etc/passwd", "link", "folder/secret"])
def test_the_kernel_refuses_what_the_check_of_the_text_would_let_pass(
    calls: DiskCalls, text: str, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (tmp_path / "work/link").symlink_to("../outside/secret")
    (tmp_path / "work/folder").symlink_to("../outside")
    root = os.open(tmp_path / "work", os.O_PATH)
    assert (tmp_path / "work" / text).read_bytes()  # the control: a plain open reads it
    with pytest.raises(OSError, match=r"\[Errno"):
        calls.open_below(root, text, os.O_RDONLY)
    os.close(root)


@pytest.mark.threat(32)
def test_no_operation_follows_a_symbolic_link(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "work/link").symlink_to("../outside/secret")
    (tmp_path / "work/folder").symlink_to("../outside")
    disk.change(read_path("/workspace/a"), lambda _: b"a")
    attempts = [
        lambda: disk.read(read_path("/workspace/link")),
        lambda: disk.read(read_path("/workspace/folder/secret")),
        lambda: disk.names(read_path("/workspace/folder")),
        lambda: disk.info(read_path("/workspace/folder/secret")),
        lambda: disk.change(read_path("/workspace/link"), lambda _: b"x"),
        lambda: disk.change(read_path("/workspace/folder/new"), lambda _: b"x"),
        lambda: disk.change(read_path("/workspace/folder/deep/new"), lambda _: b"x"),
        lambda: disk.delete(read_path("/workspace/folder/secret")),
        lambda: disk.move(read_path("/workspace/a"), read_path("/workspace/folder/a")),
        lambda: disk.move(read_path("/workspace/folder/secret"), read_path("/workspace/b")),
    ]
    for attempt in attempts:
        with pytest.raises(FileRefused):
            attempt()
    assert outside(tmp_path) == {"secret": "secret"}


def test_a_mistake_has_the_same_message_by_either_calls(tmp_path: Path) -> None:
    (tmp_path / "work/folder").mkdir(parents=True)
    (tmp_path / "work/folder/a").write_text("a")
    (tmp_path / "work/link").symlink_to("folder/a")
    (tmp_path / "work/linked").symlink_to("folder")
    (tmp_path / "work/nowhere").symlink_to("absent")
    (tmp_path / "work/hard").hardlink_to(tmp_path / "work/folder/a")
    os.mkfifo(tmp_path / "work/pipe")
    names = ("", "/absent", "/absent/a", "/folder", "/folder/a/b", "/link", "/linked", "/linked/a", "/nowhere")
    paths = [read_path(f"/workspace{name}") for name in (*names, "/hard", "/pipe")]
    free = read_path("/workspace/free")
    operations: list[Callable[[Disk, FilePath], object]] = [
        lambda disk, path: disk.read(path),
        lambda disk, path: disk.info(path).kind,
        lambda disk, path: disk.names(path),
        lambda disk, path: disk.move(path, free),
        lambda disk, path: disk.move(path, path),
        lambda disk, path: disk.change(path, lambda _: b"x" * (FILE_LIMIT_BYTES + 1)),
    ]
    said: list[list[str]] = []
    for calls in (LINUX, OLD_LINUX, POSIX):
        disk = Disk({"workspace": str(tmp_path / "work")}, calls=calls)
        said.append([message_of(operation, disk, path) for operation in operations for path in paths])
        disk.close()
    assert len(set(said[0])) > 20
    assert said[1:] == [said[0], said[0]]


def message_of(operation: Callable[[Disk, FilePath], object], disk: Disk, path: FilePath) -> str:
    try:
        return repr(operation(disk, path))
    except FileRefused as error:
        return str(error)


@pytest.mark.threat(32)
def test_a_grant_holds_on_a_disk_that_finds_every_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("secret")
    for module in (disk_module, posix_calls):
        monkeypatch.setattr(module, "os", CaseBlindOs())
    root = os.open(tmp_path, os.O_RDONLY)
    assert CaseBlindOs().stat("SECRET", dir_fd=root)  # the control: the disk finds it
    os.close(root)
    disk = Disk({"workspace": str(tmp_path)}, calls=POSIX)
    everything = {"list", "file", "read_file", "read_re", "write", "delete"}
    grants = [{"prefix": "/workspace/", "ops": everything}, {"prefix": "/workspace/secret/", "ops": set[str]()}]
    grants.append({"prefix": "/workspace/plain.txt", "ops": {"read_file"}})
    service = FileDomainService(FileHandle(disk, grants))
    (tmp_path / "plain.txt").write_text("plain")
    assert service.read_text("/workspace/plain.txt") == "plain"  # the control: its own spelling
    for folder in ("SECRET", "Secret"):
        path = f"/workspace/{folder}/key"
        for attempt in (
            lambda path=path: service.read_text(path),
            lambda path=path: service.info(path),
            lambda path=path: service.list(path.removesuffix("/key")),
            lambda path=path: service.write(path, "x"),
            lambda path=path: service.delete(path),
            lambda path=path: service.move(path, "/workspace/free"),
        ):
            with pytest.raises(FileRefused):
                attempt()
    service.delete("/workspace/PLAIN.txt")  # deletes nothing: there is none of this spelling
    for attempt in (lambda: service.info("/workspace/PLAIN.txt"), lambda: service.write("/workspace/PLAIN.txt", "x")):
        with pytest.raises(FileRefused):
            attempt()
    files = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"secret/key": "secret", "plain.txt": "plain"}
    disk.close()


ROUNDS, ROUNDS_WHOLE = 30, 16_000
"""Rounds of eight operations; the four whole races have 512,000 operations."""


@pytest.mark.threat(33)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pause_s", [0.0, 0.001], ids=["fast", "slow"])
def test_a_process_that_exchanges_names_leads_no_operation_outside(
    disk: Disk, tmp_path: Path, pause_s: float, whole: bool
) -> None:
    rounds = ROUNDS_WHOLE if whole else ROUNDS
    found = raced(disk, tmp_path / "work", tmp_path / "outside", rounds=rounds, pause_s=pause_s)
    assert found.operations >= 8 * rounds
    assert found.succeeded > 0
    assert found.escapes == []
    assert found.naive_escapes > 0


@pytest.mark.threat(34)
def test_pipes_devices_sockets_and_hard_links_are_refused_without_waiting(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    os.mkfifo(work / "pipe")
    os.link(tmp_path / "outside/secret", work / "hard")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(work)
    listening.bind("socket")
    began = time.process_time()
    for name in ("pipe", "hard", "socket"):
        with pytest.raises(FileRefused):
            disk.read(read_path(f"/workspace/{name}"))
        with pytest.raises(FileRefused):
            disk.change(read_path(f"/workspace/{name}"), lambda _: b"x")
        with pytest.raises(FileRefused):
            disk.move(read_path(f"/workspace/{name}"), read_path("/workspace/else"))
    assert time.process_time() - began <= 0.1 * 3
    listening.close()
    assert outside(tmp_path) == {"secret": "secret"}
    # The control: without the check of the number of names, the hard link leads outside.
    monkeypatch.setattr(disk_module, "_check_regular", lambda *_: None)
    assert disk.read(read_path("/workspace/hard")) == b"secret"


def test_a_file_may_have_the_limit_and_no_byte_more(disk: Disk, tmp_path: Path) -> None:
    path = read_path("/workspace/large")
    assert disk.change(path, lambda _: b"x" * FILE_LIMIT_BYTES) == FILE_LIMIT_BYTES
    assert len(disk.read(path)) == FILE_LIMIT_BYTES
    with pytest.raises(FileRefused, match="at most 10,485,760"):
        disk.change(path, lambda _: b"x" * (FILE_LIMIT_BYTES + 1))
    with open(tmp_path / "work/large", "ab") as file:
        file.write(b"x")
    with pytest.raises(FileRefused, match="10,485,761 bytes"):
        disk.read(path)


@pytest.mark.threat(35)
@pytest.mark.parametrize("call", ["write", "rename", "fsync", "chmod"])
def test_a_write_that_fails_leaves_the_old_file_whole(
    disk: Disk, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = read_path("/workspace/a")
    disk.change(path, lambda _: b"old")

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device: /host/path")

    with monkeypatch.context() as patch:
        patch.setattr(disk_module.os, call, fails)
        with pytest.raises(FileRefused, match=r"^/workspace/a was not written: the disk is full$"):
            disk.change(path, lambda _: b"new")
    assert [file.name for file in (tmp_path / "work").iterdir()] == ["a"]
    assert disk.read(path) == b"old"


def test_a_handle_that_may_write_removes_old_unfinished_files_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / ".toolwire-tmp-1"
    half.write_text("half")
    workspace_tools(tmp_path)
    assert half.exists()
    monkeypatch.setattr(disk_module, "STALE_S", -1.0)
    workspace_tools(tmp_path, read_only=True)
    assert half.exists()
    system = DiskFileSystem(workspace_dir=tmp_path, userinput_dir=tmp_path)
    system.create_handle([{"prefix": "/userinput/", "ops": {"write", "delete"}}])
    assert half.exists()
    system.create_handle([{"prefix": "/workspace/", "ops": {"write"}}])
    assert not half.exists()
    half.write_text("half")
    system.create_handle([{"prefix": "/workspace/", "ops": {"write"}}])
    assert half.exists()
    system.close()


def test_a_name_with_another_spelling_is_not_created(disk: Disk) -> None:
    disk.change(read_path("/workspace/Read.md"), lambda _: b"a")
    with pytest.raises(FileRefused, match=r"as 'Read\.md'"):
        disk.change(read_path("/workspace/read.md"), lambda _: b"b")
    assert disk.names(read_path("/workspace")) == ["Read.md"]
