"""The raw file tools: their lines, limits and messages."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from toolwire import ToolRegistry, ToolResult
from toolwire.builtin.files.disk import FILE_LIMIT_BYTES
from toolwire.builtin.files.readable import READ_LIMIT_BYTES
from toolwire.facade.built_in import raw_files
from toolwire.tools import insert_text_file, view_text_file, write_text_file

TOOLS = (view_text_file, write_text_file, insert_text_file)


def called(tool: Any, /, **arguments: Any) -> ToolResult:
    registry = ToolRegistry()
    registry.register(tool, permission="auto")
    return registry.invoke(tool.name, arguments)


@pytest.fixture
def poem(tmp_path: Path) -> Path:
    path = tmp_path / "poem.txt"
    path.write_text("".join(f"line {number}\n" for number in range(1, 21)))
    return path


@pytest.mark.requirement("toolkit.files.three")
def test_a_file_is_written_viewed_and_inserted_into(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    assert called(write_text_file, file_path=path, content="one\nthree").text == f"Created {path}, 2 lines."
    assert called(insert_text_file, file_path=path, content="two", line_number=2).text == (
        f"Inserted 1 line at line 2 of {path}. Now:\n1: one\n2: two\n3: three"
    )
    assert called(view_text_file, file_path=path).text == f"{path}, lines 1 to 3 of 3:\n1: one\n2: two\n3: three"
    assert called(write_text_file, file_path=path, content="").text == f"Overwrote {path}, 0 lines."
    assert called(view_text_file, file_path=path).text == f"{path} is empty."


def test_the_tools_ask_a_person_and_say_what_they_do() -> None:
    found = [(tool.name, tool.permission, *_declared(tool)) for tool in TOOLS]
    assert found == [
        ("view_text_file", "confirm", {"read"}, "no", {"private"}),
        ("write_text_file", "confirm", {"write"}, "no", {"private"}),
        ("insert_text_file", "confirm", {"write"}, "no", {"private"}),
    ]


def _declared(tool: Any) -> tuple[Any, ...]:
    effects = tool.__tool__().effects
    return set(effects.kinds), effects.idempotent, set(effects.labels)


def test_without_an_approver_nothing_is_written(tmp_path: Path) -> None:
    registry = ToolRegistry()
    registry.register(write_text_file)
    refused = registry.invoke("write_text_file", {"file_path": str(tmp_path / "a"), "content": "x"})
    assert refused.failure is not None
    assert refused.failure.kind == "approval_required"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ranges", "seen"), [([2, 3], [2, 3]), ([-2, -1], [19, 20]), ([19, 99], [19, 20]), ([-99, 1], [1])]
)
def test_a_view_shows_the_lines_of_its_range(poem: Path, ranges: list[int], seen: list[int]) -> None:
    lines = called(view_text_file, file_path=str(poem), ranges=ranges).text.splitlines()
    assert lines == [
        f"{poem}, lines {seen[0]} to {seen[-1]} of 20:",
        *(f"{number}: line {number}" for number in seen),
    ]


@pytest.mark.parametrize("ranges", [[0, 1], [3, 2], [21, 22], [-1, -2], [1, 0], [-30, -21]])
def test_a_view_of_no_line_says_which_lines_exist(poem: Path, ranges: list[int]) -> None:
    refused = called(view_text_file, file_path=str(poem), ranges=ranges)
    assert refused.error == (f"ranges={ranges}: {poem} has 20 lines: give [first, last] with 1 <= first <= last")


def test_a_write_into_a_range_replaces_those_lines_alone_and_shows_five_around(poem: Path) -> None:
    done = called(write_text_file, file_path=str(poem), content="new", ranges=[10, 12])
    numbers = [int(line.partition(":")[0]) for line in done.text.splitlines()[1:]]
    assert numbers == list(range(10 - raw_files.SNIPPET_LINES, 10 + raw_files.SNIPPET_LINES + 1))
    kept = [f"line {number}" for number in range(1, 21)]
    assert poem.read_text().splitlines() == [*kept[:9], "new", *kept[12:]]


def test_an_empty_text_in_place_of_lines_deletes_them(poem: Path) -> None:
    assert called(write_text_file, file_path=str(poem), content="", ranges=[2, 20]).success
    assert poem.read_text() == "line 1\n"


@pytest.mark.parametrize("ranges", [[0, 1], [2, 1], [1, 21], [-2, -1]])
def test_a_write_into_lines_that_do_not_exist_changes_nothing(poem: Path, ranges: list[int]) -> None:
    before = poem.read_text()
    refused = called(write_text_file, file_path=str(poem), content="x", ranges=ranges)
    assert refused.error == (f"ranges={ranges}: {poem} has 20 lines: give [first, last] with 1 <= first <= last <= 20")
    assert poem.read_text() == before


@pytest.mark.parametrize("number", [1, 21])
def test_an_insert_takes_each_place_between_lines(poem: Path, number: int) -> None:
    assert called(insert_text_file, file_path=str(poem), content="new", line_number=number).success
    assert poem.read_text().splitlines()[number - 1] == "new"
    assert len(poem.read_text().splitlines()) == 21


@pytest.mark.parametrize(
    ("before", "number", "content", "after"),
    [
        (b"a\r\nb\r\n", 2, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\r\nb", 3, "x\n", b"a\r\nb\r\nx\r\n"),
        (b"a\r\nb\r\n", 1, "x", b"x\r\na\r\nb\r\n"),
        (b"a\nb\n", 2, "x\r\ny\r\n", b"a\nx\ny\nb\n"),
        (b"a", 2, "x", b"a\nx"),
    ],
)
def test_new_lines_get_the_line_ends_of_the_lines_around_them(
    tmp_path: Path, before: bytes, number: int, content: str, after: bytes
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(before)
    assert called(insert_text_file, file_path=str(path), content=content, line_number=number).success
    assert path.read_bytes() == after
    path.write_bytes(b"a\r\nb\r\n")
    assert called(write_text_file, file_path=str(path), content="x\ny", ranges=[2, 2]).success
    assert path.read_bytes() == b"a\r\nx\r\ny"


@pytest.mark.parametrize("number", [0, 22, -1])
def test_an_insert_elsewhere_is_refused(poem: Path, number: int) -> None:
    refused = called(insert_text_file, file_path=str(poem), content="new", line_number=number)
    assert refused.error == f"line_number={number}: {poem} has 20 lines: give 1 to 21"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (view_text_file, {}),
        (write_text_file, {"content": "x", "ranges": [1, 1]}),
        (insert_text_file, {"content": "x", "line_number": 1}),
    ],
)
def test_a_file_that_does_not_exist_is_named(tmp_path: Path, tool: Any, arguments: dict[str, Any]) -> None:
    path = str(tmp_path / "none")
    refused = called(tool, file_path=path, **arguments)
    assert refused.error == f"{path!r} could not be used: No such file or directory"
    assert refused.metadata["dangerous_io"] is True
    assert list(tmp_path.iterdir()) == []


@pytest.mark.threat(34)
def test_pipes_devices_and_folders_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        for tool, arguments in ((view_text_file, {}), (write_text_file, {"content": "x"})):
            refused = called(tool, file_path=str(path), **arguments)
            assert refused.error == f"{str(path)!r} is not a regular file: only those can be used"


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_text_that_is_not_a_path_is_refused(path: str) -> None:
    assert not called(view_text_file, file_path=path).success


def test_a_file_that_is_not_text_is_refused_and_not_overwritten_in_part(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\n")
    path = str(tmp_path / "a")
    assert called(view_text_file, file_path=path).error == f"{path!r} is not text in UTF-8"
    assert not called(insert_text_file, file_path=path, content="x", line_number=1).success
    assert (tmp_path / "a").read_bytes() == b"\xff\n"


def test_a_text_that_utf8_cannot_hold_creates_no_file(tmp_path: Path) -> None:
    assert not asyncio.run(write_text_file(str(tmp_path / "a"), "\ud800")).success
    assert list(tmp_path.iterdir()) == []


def test_a_read_and_a_file_have_their_limits(tmp_path: Path) -> None:
    path = tmp_path / "a"
    head = len(f"{path}, lines 1 to 1 of 1:\n1: ")
    path.write_text("x" * (READ_LIMIT_BYTES - head))
    assert asyncio.run(view_text_file(str(path))).success
    path.write_text("x" * (READ_LIMIT_BYTES - head + 1))
    assert "the limit of one read" in str(asyncio.run(view_text_file(str(path))).error)
    assert asyncio.run(write_text_file(str(path), "x" * FILE_LIMIT_BYTES)).success
    refused = asyncio.run(write_text_file(str(path), "x" * (FILE_LIMIT_BYTES + 1)))
    assert refused.error == f"{str(path)!r} was not written: 10,485,761 bytes; at most 10,485,760"
    with path.open("a") as file:
        file.write("x")
    refused = asyncio.run(view_text_file(str(path)))
    assert refused.error == f"{str(path)!r} has 10,485,761 bytes; at most 10,485,760 can be used"


def test_a_file_keeps_its_mode_its_links_and_its_other_name(tmp_path: Path) -> None:
    real, link, other = tmp_path / "real", tmp_path / "link", tmp_path / "other"
    real.write_text("a\n")
    real.chmod(0o640)
    link.symlink_to("real")
    other.hardlink_to(real)
    assert called(write_text_file, file_path=str(link), content="b\n").success
    assert (link.is_symlink(), other.read_text(), stat.S_IMODE(real.stat().st_mode)) == (True, "b\n", 0o640)


def test_a_write_that_fails_puts_the_old_content_back(poem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, syncs = poem.read_bytes(), 0
    real = os.fsync

    def fails_once(file: int) -> None:
        nonlocal syncs
        syncs += 1
        if syncs == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(raw_files.os, "fsync", fails_once)
    refused = called(write_text_file, file_path=str(poem), content="short")
    assert refused.error == f"{str(poem)!r} could not be used: No space left on device"
    assert poem.read_bytes() == before


async def test_edits_at_once_lose_none(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("")
    await asyncio.gather(*(insert_text_file(str(path), str(number), 1) for number in range(40)))
    assert sorted(map(int, path.read_text().split())) == list(range(40))
