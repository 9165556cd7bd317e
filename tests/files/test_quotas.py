"""Limits of the file tools hold on both sides, and large folders and files cost little."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.processor import milliseconds
from toolwire import ToolRegistry
from toolwire.builtin.files import disk
from toolwire.builtin.files.paths import NAME_LIMIT_BYTES, PATH_LIMIT
from toolwire.facade.built_in.file_tools import CALL_LIMIT_FILES
from toolwire.tools import DiskFileSystem, FileConflict, FileDomainService, FileRefused, workspace_tools

MEMORY_BYTES = 200 * 1024 * 1024
TIME_MS = 2_000
SPARSE_BYTES = 10 * 1024**3
WRITERS = 8
BOARD = "/workspace/board"


def service_of(folder: Path) -> FileDomainService:
    ops = {"list", "file", "read_file", "read_binary", "read_re", "write", "delete"}
    handle = DiskFileSystem(workspace_dir=folder).create_handle([{"prefix": "/workspace/", "ops": ops}])
    return FileDomainService(handle)


def called(folder: Path, tool: str, **arguments: Any) -> Any:
    registry = ToolRegistry()
    for spec in workspace_tools(folder):
        registry.register(spec)
    return registry.invoke(tool, arguments)


def path_of(length: int) -> str:
    """Returns a path of so many characters, whose names have at most 100."""
    text = "/workspace/" + ("n" * 100 + "/") * (length // 101)
    return text[: length - 1].removesuffix("/").ljust(length, "n")


def test_a_path_and_a_name_may_have_their_limits_and_no_more(tmp_path: Path) -> None:
    service = service_of(tmp_path)
    for path in (path_of(PATH_LIMIT), "/workspace/" + "é" * (NAME_LIMIT_BYTES // 2) + "n"):
        service.write(path, "x")
        assert service.read_text(path) == "x"
    assert len(path_of(PATH_LIMIT)) == 1_024
    with pytest.raises(FileRefused, match="the path has 1,025 characters; at most 1,024 are allowed"):
        service.write(path_of(PATH_LIMIT + 1), "x")
    with pytest.raises(FileRefused, match="is longer than 255 bytes: shorten it"):
        service.write("/workspace/" + "é" * (NAME_LIMIT_BYTES // 2 + 1), "x")


def test_one_call_reads_its_limit_of_files_and_no_more(tmp_path: Path) -> None:
    paths = [f"/workspace/{number:02}" for number in range(CALL_LIMIT_FILES + 1)]
    for path in paths:
        (tmp_path / Path(path).name).write_text("x")
    assert len(called(tmp_path, "read_multiple_files", paths=paths[:-1]).data) == CALL_LIMIT_FILES == 20
    assert "21 paths were given; at most 20 in one call" in called(tmp_path, "read_multiple_files", paths=paths).error


@pytest.mark.threat(37)
def test_a_sparse_file_of_ten_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    service = service_of(tmp_path)
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", SPARSE_BYTES)
    tracemalloc.start()
    try:
        with pytest.raises(FileRefused, match="10,737,418,240 bytes"):
            service.read_text("/workspace/sparse")
        with pytest.raises(FileRefused, match="10,737,418,240 bytes"):
            service.edit("/workspace/sparse", [{"oldText": "a", "newText": "b"}])
        assert service.search(lambda line: True, "/workspace/").entries == []
        assert service.info("/workspace/sparse").size_bytes == SPARSE_BYTES
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.threat(37)
@pytest.mark.timeout(900)
def test_a_large_folder_is_listed_and_searched_within_the_limits(tmp_path: Path, whole: bool) -> None:
    service, entries = service_of(tmp_path), 100_000 if whole else 2_000
    for number in range(entries):
        os.close(os.open(f"{tmp_path}/{number:06}", os.O_CREAT | os.O_WRONLY))
    tracemalloc.start()
    try:
        assert len(service.list("/workspace/").entries) == 1_000
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES
    finally:
        tracemalloc.stop()
    assert milliseconds(lambda: service.list("/workspace/"), enough=TIME_MS) <= TIME_MS


@pytest.mark.threat(37)
@pytest.mark.threat(46)
def test_hostile_patterns_end_in_time(tmp_path: Path) -> None:
    (tmp_path / ("a" * 250)).write_text("a" * 100_000 + "!")

    def search(tool: str, **arguments: Any) -> None:
        assert called(tmp_path, tool, **arguments).data["entries"] == []

    pattern = "*a" * 100 + "*b"
    assert milliseconds(lambda: search("find_files", pattern=pattern), enough=TIME_MS) <= TIME_MS
    lines = milliseconds(lambda: search("search_files", text="^(a|aa)+$", is_regex=True), enough=TIME_MS)
    assert lines <= TIME_MS


@pytest.mark.threat(36)
@pytest.mark.timeout(900)
def test_no_edit_of_several_writers_is_lost(tmp_path: Path, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    edits = 500 if whole else 12
    # Eight writers without a pause can keep one from the lock for longer; it is refused then, and writes nothing.
    monkeypatch.setattr(disk, "LOCK_WAIT_S", 600.0)
    (tmp_path / "board").write_text("\n".join(f"<{writer}:0>" for writer in range(WRITERS)))

    def write(writer: int) -> None:
        # Each writer has descriptors and locks of its own, as a process has.
        service = service_of(tmp_path)
        for number in range(edits):
            old, new = f"<{writer}:{number}>", f"<{writer}:{number + 1}>"
            if writer % 2:
                service.edit(BOARD, [{"oldText": old, "newText": new}])
            else:
                rewritten(service, old, new)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    assert (tmp_path / "board").read_text() == "\n".join(f"<{writer}:{edits}>" for writer in range(WRITERS))


def rewritten(service: FileDomainService, old: str, new: str) -> None:
    """Writes the whole file until no other writer came between."""
    while True:
        text = service.read_text(BOARD)
        try:
            service.write(BOARD, text.replace(old, new), hashlib.sha256(text.encode()).hexdigest())
        except FileConflict:
            continue
        return


@pytest.mark.threat(36)
def test_without_the_digest_a_change_in_between_is_lost(tmp_path: Path) -> None:
    """The control of the writers above."""
    service = service_of(tmp_path)
    service.write(BOARD, "<a:0> <b:0>")
    stale = service.read_text(BOARD)
    service.edit(BOARD, [{"oldText": "<a:0>", "newText": "<a:1>"}])
    with pytest.raises(FileConflict):
        service.write(BOARD, stale.replace("<b:0>", "<b:1>"), hashlib.sha256(stale.encode()).hexdigest())
    assert service.read_text(BOARD) == "<a:1> <b:0>"
    service.write(BOARD, stale.replace("<b:0>", "<b:1>"))
    assert service.read_text(BOARD) == "<a:0> <b:1>"
