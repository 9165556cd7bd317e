"""The folder of compiled guests: no file tool reads or writes it, by whatever path and root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolwire import ConfigurationError, ToolRegistry, ToolSpec
from toolwire.builtin.files import refused_folder
from toolwire.builtin.files.disk import Disk
from toolwire.builtin.files.disk_calls import DiskCalls
from toolwire.builtin.files.paths import FileRefused, read_path
from toolwire.tools import DiskFileSystem, insert_text_file, view_text_file, workspace_tools, write_text_file
from toolwire.vocabulary.machine.code_cache import is_in_reach

GUEST = "guest.cwasm"
WHY = (
    " belongs to the compiled programs of toolwire, which run as machine code in this process: no file tool may use "
    "them. Choose another folder"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a user whose cache is a link, as on a machine with a small home."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "large/caches").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.cache").symlink_to(tmp_path / "large/caches")
    return tmp_path / "home"


@pytest.fixture
def folder(home: Path) -> Path:
    """The folder of compiled guests, with one in it."""
    made = home.parent / "large/caches/toolwire/wasm"
    made.mkdir(parents=True)
    (made / GUEST).write_text("guest\n")
    return made


def registry_of(tools: list[ToolSpec]) -> ToolRegistry:
    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    for tool in tools:
        registry.register(tool)
    return registry


# -- the tools of a folder ------------------------------------------------------------------------------------------


ABOVE = {"large": "caches/toolwire/wasm", "large/caches": "toolwire/wasm", "large/caches/toolwire": "wasm"}
"""Roots that contain the folder, and the way from each to it."""


@pytest.fixture(params=ABOVE)
def disk(request: pytest.FixtureRequest, home: Path, calls: DiskCalls) -> Iterator[tuple[Disk, str]]:
    """A disk whose root contains the folder, and the folder's path on it."""
    root: Path = home.parent / request.param
    root.mkdir(parents=True, exist_ok=True)
    made = Disk({"workspace": str(root)}, calls=calls)
    yield made, f"/workspace/{ABOVE[request.param]}"
    made.close()


@pytest.mark.threat(32)
@pytest.mark.parametrize("spelling", [str, str.upper, str.title], ids=["same", "upper", "title"])
def test_no_operation_of_a_root_above_reads_or_writes_it(
    disk: tuple[Disk, str], spelling: Callable[[str], str], folder: Path
) -> None:
    made, there = disk
    *above, last = there.split("/")
    there = "/".join([*above, spelling(last)])
    inside, whole, beside = read_path(f"{there}/{GUEST}"), read_path(there), read_path(f"{there}-other/{GUEST}")
    assert made.change(beside, lambda _: b"beside") == 6  # the control: the same write, beside the folder
    refused = [
        (inside, lambda: made.read(inside)),
        (inside, lambda: made.info(inside)),
        (whole, lambda: made.info(whole)),
        (whole, lambda: made.names(whole)),
        (inside, lambda: made.change(inside, lambda _: b"evil")),
        (inside, lambda: made.delete(inside)),
        (whole, lambda: made.delete(whole)),
        (inside, lambda: made.move(inside, beside)),
        (inside, lambda: made.move(beside, inside)),
    ]
    for path, attempt in refused:
        with pytest.raises(FileRefused) as error:
            attempt()
        assert str(error.value) == f"{path}{WHY}"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {GUEST: "guest\n"}
    made.delete(beside)


@pytest.mark.threat(32)
def test_it_cannot_be_made_before_toolwire_makes_it(disk: tuple[Disk, str]) -> None:
    made, there = disk
    beside = read_path(f"{there}-other")
    made.change(beside, lambda _: b"x")
    for path in (there, f"{there}/{GUEST}"):
        with pytest.raises(FileRefused, match="machine code"):
            made.change(read_path(path), lambda _: b"x")
        with pytest.raises(FileRefused, match="machine code"):
            made.move(beside, read_path(path))
    assert made.names(beside.parent) == [beside.names[-1]]


@pytest.mark.threat(32)
def test_a_link_on_the_way_to_it_is_not_replaced_by_a_folder(home: Path) -> None:
    disk = Disk({"workspace": str(home)})
    disk.delete(read_path("/workspace/.cache"))
    with pytest.raises(FileRefused, match="machine code"):
        disk.change(read_path(f"/workspace/.cache/toolwire/wasm/{GUEST}"), lambda _: b"evil")
    disk.change(read_path(f"/workspace/.cache/toolwire/other/{GUEST}"), lambda _: b"beside")
    disk.close()


@pytest.mark.threat(32)
def test_a_folder_that_becomes_it_by_another_name_is_refused(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a mount does, which needs rights: the place on the disk is the same, and no name is."""
    work = home / "work"
    work.mkdir()
    disk = Disk({"workspace": str(work)})
    folder.rename(work / "mounted")
    (folder.parent / "wasm").symlink_to(work / "mounted")
    for attempt in (
        lambda: disk.names(read_path("/workspace/mounted")),
        lambda: disk.change(read_path(f"/workspace/mounted/{GUEST}"), lambda _: b"evil"),
        lambda: disk.change(read_path("/workspace/mounted/new"), lambda _: b"evil"),
        lambda: disk.delete(read_path(f"/workspace/mounted/{GUEST}")),
    ):
        with pytest.raises(FileRefused, match="machine code"):
            attempt()
    disk.close()


@pytest.mark.threat(32)
@pytest.mark.parametrize("root", ["", "deeper"])
@pytest.mark.parametrize("way", ["large/caches/toolwire/wasm", "home/.cache/toolwire/wasm", "link"])
def test_a_root_in_it_is_refused_when_it_is_made(root: str, way: str, home: Path, folder: Path) -> None:
    (folder / "deeper").mkdir()
    (home.parent / "link").symlink_to(folder)
    path = home.parent / way / root
    for make in (
        lambda: workspace_tools(path),
        lambda: DiskFileSystem(path),
        lambda: DiskFileSystem(userinput_dir=path),
    ):
        with pytest.raises(ConfigurationError, match="machine code"):
            make()
    assert sorted(each.name for each in folder.rglob("*")) == ["deeper", GUEST]
    assert not is_in_reach(folder)
    workspace_tools(folder.parent)  # the control: the folder above may be a root
    assert is_in_reach(folder)


@pytest.mark.threat(32)
def test_a_search_and_a_listing_leave_it_out(home: Path, folder: Path) -> None:
    (folder.parent / "notes.txt").write_text("guest\n")
    registry = registry_of(workspace_tools(home.parent / "large"))

    def entries(tool: str, **arguments: str) -> list[str]:
        return registry.invoke(tool, arguments).data["entries"]

    assert entries("list_directory", path="/workspace/caches/toolwire") == ["notes.txt"]
    assert entries("find_files", pattern="**") == ["/workspace/caches/toolwire/notes.txt"]
    assert entries("search_files", text="guest") == ["/workspace/caches/toolwire/notes.txt:1: guest"]
    refused = registry.invoke("write_file", {"path": f"/workspace/caches/toolwire/wasm/{GUEST}", "content": "evil"})
    assert refused.error == f"/workspace/caches/toolwire/wasm/{GUEST}{WHY}"


# -- the raw tools --------------------------------------------------------------------------------------------------


def raw(tool: object, path: str, **arguments: object) -> str | None:
    registry = registry_of([view_text_file, write_text_file, insert_text_file])
    return registry.invoke(getattr(tool, "name", ""), {"file_path": path, **arguments}).error


def paths_to(folder: Path, home: Path) -> dict[str, str]:
    """Every way to the guest: the name of the way, and the path."""
    top = home.parent
    (top / "to-folder").symlink_to(folder)
    (top / "to-file").symlink_to(folder / GUEST)
    (top / "again").symlink_to(top / "to-file")
    (top / "hard").hardlink_to(folder / GUEST)
    return {
        "its path": f"{home}/.cache/toolwire/wasm/{GUEST}",
        "its path without links": f"{folder}/{GUEST}",
        "dots": f"{folder}/../wasm/./{GUEST}",
        "slashes": f"{folder}//{GUEST}",
        "relative": os.path.relpath(folder / GUEST),
        "a link to the folder": f"{top}/to-folder/{GUEST}",
        "a link to the file": f"{top}/to-file",
        "a link to a link": f"{top}/again",
        "a hard link": f"{top}/hard",
        "the process": f"/proc/self/root{folder}/{GUEST}",
        "the working folder": f"/proc/self/cwd/{os.path.relpath(folder / GUEST)}",
    }


@pytest.mark.threat(38)
def test_the_raw_tools_refuse_every_way_to_it(home: Path, folder: Path) -> None:
    for way, path in paths_to(folder, home).items():
        assert Path(path).read_text() == "guest\n", way  # the control: a plain open reads it
        said = [
            raw(view_text_file, path),
            raw(write_text_file, path, content="evil"),
            raw(insert_text_file, path, content="evil", line_number=1),
        ]
        assert (way, said) == (way, [f"{path!r}{WHY}"] * 3)
    for new in (f"{folder}/new", f"{home.parent}/to-folder/new", f"{folder}/new/../other"):
        assert raw(write_text_file, new, content="evil") == f"{new!r}{WHY}"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {GUEST: "guest\n"}
    beside = f"{folder.parent}/{GUEST}"
    assert raw(write_text_file, beside, content="beside") is None  # the control
    assert raw(view_text_file, beside) is None


@pytest.mark.threat(38)
def test_the_raw_tools_know_it_by_its_place_on_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a mount, which needs rights: no name on the way to it is the same."""
    monkeypatch.setattr(refused_folder, "_spellings", lambda _: (Path("/elsewhere"), Path("/elsewhere")))
    path = f"{folder}/new"
    assert raw(write_text_file, path, content="evil") == f"{path!r}{WHY}"
    assert not Path(path).exists()
    assert raw(write_text_file, f"{folder.parent}/new", content="beside") is None


@pytest.mark.threat(38)
def test_the_raw_tools_make_no_file_in_the_place_of_the_folder(home: Path) -> None:
    (home / ".cache/toolwire").mkdir()
    for name in ("wasm", "WASM"):
        path = f"{home}/.cache/toolwire/{name}"
        assert raw(write_text_file, path, content="x") == f"{path!r}{WHY}"
    assert raw(write_text_file, f"{home}/.cache/toolwire/wasm-other", content="x") is None


def test_without_a_home_every_folder_may_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "home")
    assert raw(write_text_file, f"{tmp_path}/a", content="x") is None
    workspace_tools(tmp_path)
