"""The file tools: grants, limits, edits and what a model reads."""

from __future__ import annotations

import base64
import hashlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from toolwire import ConfigurationError, Toolkit, ToolRegistry, ToolResult
from toolwire.builtin.files import disk as disk_module
from toolwire.builtin.files import quota as quota_module
from toolwire.builtin.files import service as service_module
from toolwire.builtin.files.paths import FilePath
from toolwire.builtin.files.readable import READ_LIMIT_BYTES
from toolwire.tools import DiskFileSystem, FileConflict, FileDomainService, FileRefused, workspace_tools

ALL = {"list", "file", "read_file", "read_binary", "read_re", "write", "delete"}


@pytest.fixture
def service(tmp_path: Path) -> FileDomainService:
    grants = [{"prefix": "/workspace/", "ops": ALL}, {"prefix": "/userinput/", "ops": ALL}]
    return FileDomainService(DiskFileSystem(tmp_path).create_handle(grants))


def called(tmp_path: Path, tool: str, /, *, read_only: bool = False, **arguments: Any) -> ToolResult:
    registry = ToolRegistry()
    for spec in workspace_tools(tmp_path, read_only=read_only):
        registry.register(spec)
    return registry.invoke(tool, arguments)


@pytest.mark.requirement("toolkit.danger.replacement")
def test_a_toolkit_with_the_confined_tools_reads_and_writes(service: FileDomainService, tmp_path: Path) -> None:
    toolkit = Toolkit()
    for tool, preset in DiskFileSystem(tmp_path).get_tools(service):
        toolkit.register_tool_function(tool, preset_kwargs={"service": preset})
    assert sorted(tool.name for tool in toolkit.tools.values()) == [
        "delete_file",
        "edit_file",
        "find_files",
        "get_file_info",
        "list_allowed_directories",
        "list_directory",
        "move_file",
        "read_multiple_files",
        "read_text_file",
        "search_files",
        "write_file",
    ]
    service.write("/workspace/a", "x")
    assert (tmp_path / "workspace/a").read_text() == "x"
    (tmp_path / "workspace/link").symlink_to("/etc")
    with pytest.raises(FileRefused):
        service.read_text("/workspace/link/passwd")


def test_userinput_is_read_only_whatever_a_grant_says(service: FileDomainService, tmp_path: Path) -> None:
    (tmp_path / "userinput/a").write_text("x")
    assert service.read_text("/userinput/a") == "x"
    for change in (
        lambda: service.write("/userinput/a", "y"),
        lambda: service.edit("/userinput/a", [{"oldText": "x", "newText": "y"}]),
        lambda: service.delete("/userinput/a"),
        lambda: service.move("/userinput/a", "/workspace/a"),
    ):
        with pytest.raises(FileRefused, match="/userinput/ is read-only"):
            change()
    assert (tmp_path / "userinput/a").read_text() == "x"


def test_the_longest_prefix_decides(tmp_path: Path) -> None:
    grants = [{"prefix": "/workspace/", "ops": ALL}, {"prefix": "/workspace/fixed/", "ops": {"read_file"}}]
    service = FileDomainService(DiskFileSystem(tmp_path).create_handle(grants))
    service.write("/workspace/fixed.txt", "x")
    with pytest.raises(FileRefused, match="write refused, not allowed"):
        service.write("/workspace/fixed/a", "x")


@pytest.mark.parametrize(
    "grant",
    [{"prefix": "/etc/", "ops": {"list"}}, {"prefix": "/workspace/", "ops": {"run"}}, {"prefix": "/workspace/"}],
)
def test_a_wrong_grant_is_the_developers_mistake(grant: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        DiskFileSystem(tmp_path).create_handle([grant])


def test_a_read_returns_at_most_the_limit(service: FileDomainService, tmp_path: Path) -> None:
    limit = READ_LIMIT_BYTES
    (tmp_path / "workspace/a").write_text("x" * limit)
    assert len(service.read_text("/workspace/a")) == limit
    (tmp_path / "workspace/a").write_text("x" * limit + "\ny")
    with pytest.raises(FileRefused, match="has 2 lines: give start_line and a smaller read_lines"):
        service.read_text("/workspace/a")
    assert service.read_text("/workspace/a", 2) == "y"


def test_a_page_has_at_most_1000_entries(service: FileDomainService, tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / f"workspace/{number:04}").touch()
    assert service.list("/workspace/").next_start is None
    (tmp_path / "workspace/1000").touch()
    assert service.list("/workspace/").next_start == 1_001
    assert service.list("/workspace/", 1_001).entries == ["1000"]


@pytest.mark.threat(37)
def test_a_run_writes_at_most_its_limits(service: FileDomainService, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (quota_module.RUN_LIMIT_BYTES, quota_module.RUN_LIMIT_FILES) == (1024**3, 10_000)
    monkeypatch.setattr(quota_module, "RUN_LIMIT_BYTES", 10)
    service.write("/workspace/a", "x" * 10)
    with pytest.raises(FileRefused, match="a run may write 10 bytes"):
        service.write("/workspace/b", "x")
    monkeypatch.setattr(quota_module, "RUN_LIMIT_BYTES", 1_000)
    monkeypatch.setattr(quota_module, "RUN_LIMIT_FILES", 2)
    service.write("/workspace/b", "x")
    with pytest.raises(FileRefused, match="and 2 files and new folders"):
        service.write("/workspace/c", "x")


@pytest.mark.threat(37)
def test_folders_that_a_write_or_a_move_makes_count(
    service: FileDomainService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.write("/workspace/a", "x")
    monkeypatch.setattr(quota_module, "RUN_LIMIT_FILES", 6)
    deep = "/workspace" + "/n" * 200
    for refused in (lambda: service.move("/workspace/a", f"{deep}/a"), lambda: service.write(f"{deep}/b", "x")):
        with pytest.raises(FileRefused, match="a run may write"):
            refused()
        # A refused operation counts nothing, and leaves no folder.
        assert [path.name for path in (tmp_path / "workspace").iterdir()] == ["a"]
    service.move("/workspace/a", "/workspace/1/2/a")
    service.write("/workspace/3/4/b", "x")
    with pytest.raises(FileRefused, match="a run may write"):
        service.write("/workspace/c", "x")


def test_a_write_into_a_folder_that_a_refused_one_removes_makes_it_again(
    service: FileDomainService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, folder = disk_module._hold_folders, tmp_path / "workspace/new"
    removals = [folder]

    def held(path: FilePath, *folders: int) -> AbstractContextManager[None]:
        while removals:
            removals.pop().rmdir()
        return real(path, *folders)

    monkeypatch.setattr(disk_module, "_hold_folders", held)
    service.write("/workspace/new/a", "x")
    assert (folder / "a").read_text() == "x"


@pytest.mark.threat(37)
def test_a_search_ends_when_its_time_is_over(service: FileDomainService, monkeypatch: pytest.MonkeyPatch) -> None:
    service.write("/workspace/a", "x")
    assert service.search(lambda line: "x" in line, "/workspace/").entries == ["/workspace/a:1: x"]
    monkeypatch.setattr(service_module, "SEARCH_TIME_S", -1.0)
    with pytest.raises(FileRefused, match="search in a smaller folder"):
        service.search(lambda line: "x" in line, "/workspace/")


@pytest.mark.threat(36)
def test_a_conflict_tells_the_current_digest_and_a_short_diff(service: FileDomainService) -> None:
    first = service.write("/workspace/a", "one\n").sha256
    service.write("/workspace/a", "two\n", first)
    with pytest.raises(FileConflict) as caught:
        service.write("/workspace/a", "".join(f"{number}\n" for number in range(100)), first)
    assert caught.value.sha256 == hashlib.sha256(b"two\n").hexdigest()
    assert len(str(caught.value).splitlines()) == 1 + service_module.DIFF_LINES
    assert service.read_text("/workspace/a") == "two\n"


@pytest.mark.parametrize("ops", [{"write"}, {"write", "read_file"}])
def test_a_conflict_shows_the_content_to_those_alone_who_may_read_it(ops: set[str], tmp_path: Path) -> None:
    grants = [{"prefix": "/workspace/", "ops": {"read_file"}}, {"prefix": "/workspace/box/", "ops": ops}]
    service = FileDomainService(DiskFileSystem(tmp_path).create_handle(grants))
    (tmp_path / "workspace/box").mkdir()
    (tmp_path / "workspace/box/a").write_text("secret\n")
    digest = hashlib.sha256(b"secret\n").hexdigest()
    with pytest.raises(FileConflict) as caught:
        service.write("/workspace/box/a", "x", "0" * 64)
    said = str(caught.value)
    if "read_file" in ops:
        assert "-secret" in said.splitlines()
    else:
        assert said == f"/workspace/box/a was changed since you read it. Its sha256 is {digest} now."


@pytest.mark.parametrize("ops", [{"write", "delete"}, {"write", "delete", "file", "read_file"}])
def test_a_move_makes_nothing_readable(ops: set[str], tmp_path: Path) -> None:
    grants = [
        {"prefix": "/workspace/", "ops": {"file", "read_file", "write"}},
        {"prefix": "/workspace/box/", "ops": ops},
        {"prefix": "/workspace/blind/", "ops": {"write"}},
    ]
    service = FileDomainService(DiskFileSystem(tmp_path).create_handle(grants))
    service.write("/workspace/box/a", "secret")
    if "read_file" in ops:
        service.move("/workspace/box/a", "/workspace/a")
        assert service.read_text("/workspace/a") == "secret"
    else:
        with pytest.raises(FileRefused, match="'/workspace/box/a': file refused, not allowed"):
            service.move("/workspace/box/a", "/workspace/a")
        service.move("/workspace/box/a", "/workspace/blind/a")
        assert (tmp_path / "workspace/blind/a").read_text() == "secret"


def test_an_edit_that_is_made_already_says_so(service: FileDomainService) -> None:
    service.write("/workspace/a", "a c\n")
    edits = [{"oldText": "a", "newText": "a b"}]
    assert service.edit("/workspace/a", edits).has_changed is True
    assert service.edit("/workspace/a", edits).has_changed is False
    assert service.read_text("/workspace/a") == "a b c\n"


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("z", "/workspace/a, edit 1: oldText is not in the file: read the file, and copy the text exactly"),
        ("x", "/workspace/a, edit 1: oldText stands 2 times, in lines 1, 3: give more of its context"),
        ("", "/workspace/a, edit 1: oldText is empty: give the text to replace"),
    ],
)
def test_an_edit_whose_place_is_unclear_changes_nothing(old: str, message: str, service: FileDomainService) -> None:
    service.write("/workspace/a", "x\ny\nx\n")
    with pytest.raises(FileRefused) as caught:
        service.edit("/workspace/a", [{"oldText": old, "newText": "new"}])
    assert (str(caught.value), service.read_text("/workspace/a")) == (message, "x\ny\nx\n")


def test_no_message_names_a_path_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "page.pdf").write_bytes(b"%PDF-1.7\n")
    for name in ("missing", "folder", "bytes", "page.pdf", "bytes/x", "../x"):
        result = called(tmp_path, "read_text_file", path=f"/workspace/{name}")
        assert result.error is not None
        assert f"/workspace/{name}" in result.error
        assert str(tmp_path) not in result.error


def test_a_read_only_workspace_has_no_tool_that_writes(tmp_path: Path) -> None:
    assert called(tmp_path, "write_file", read_only=True, path="/workspace/a", content="x").success is False
    assert called(tmp_path, "write_file", path="/workspace/a", content="x").success is True
    assert called(tmp_path, "read_text_file", read_only=True, path="/workspace/a").data == "x"


def test_a_person_is_asked_before_a_file_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    result = called(tmp_path, "delete_file", path="/workspace/a")
    assert result.failure is not None
    assert result.failure.kind == "approval_required"
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["a.md"]),
        ("**/*.md", ["a.md", "b/c.md"]),
        ("b/?.md", ["b/c.md"]),
        ("a.md|b", []),
        ("**", ["a.md", "b/c.md"]),
    ],
)
def test_patterns_of_paths(pattern: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.md").touch()
    (tmp_path / "b/c.md").touch()
    result = called(tmp_path, "find_files", pattern=pattern)
    assert result.data["entries"] == [f"/workspace/{name}" for name in found]


def test_expressions_are_linear_and_wrong_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a" * 100_000 + "!")
    assert called(tmp_path, "search_files", text="^(a+)+$", is_regex=True).data["entries"] == []
    assert called(tmp_path, "search_files", text="(", is_regex=True).success is False


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
IMAGES = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + b"\0" * 20,
    "image/gif": b"GIF89a" + b"\0" * 20,
    "image/webp": b"RIFF\0\0\0\0WEBP" + b"\0" * 20,
}


@pytest.mark.parametrize("media_type", IMAGES)
def test_an_image_is_read_as_a_block(media_type: str, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(IMAGES[media_type])
    done = called(tmp_path, "read_text_file", path="/workspace/picture")
    data = base64.b64encode(IMAGES[media_type]).decode()
    assert done.content == [{"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}]
    assert done.text == "[image]"


def test_an_image_needs_the_grant_read_binary_and_has_no_lines(tmp_path: Path) -> None:
    system = DiskFileSystem(tmp_path)
    (tmp_path / "workspace/a").write_bytes(PNG)
    service = FileDomainService(system.create_handle([{"prefix": "/workspace/", "ops": {"read_file"}}]))
    with pytest.raises(FileRefused, match="read_binary refused, not allowed"):
        service.read("/workspace/a")
    service = FileDomainService(system.create_handle([{"prefix": "/workspace/", "ops": {"read_file", "read_binary"}}]))
    assert not isinstance(service.read("/workspace/a"), str)
    with pytest.raises(FileRefused, match="is an image, which has no lines"):
        service.read("/workspace/a", 2)
    with pytest.raises(FileRefused, match="read it alone with read_text_file"):
        service.read_text("/workspace/a")


def test_an_image_may_have_the_limit_and_no_byte_more(service: FileDomainService, tmp_path: Path) -> None:
    (tmp_path / "workspace/a").write_bytes(PNG.ljust(READ_LIMIT_BYTES, b"\0"))
    assert not isinstance(service.read("/workspace/a"), str)
    (tmp_path / "workspace/a").write_bytes(PNG.ljust(READ_LIMIT_BYTES + 1, b"\0"))
    with pytest.raises(FileRefused, match="is an image of 1,048,577 bytes; a read returns at most 1,048,576"):
        service.read("/workspace/a")


@pytest.mark.parametrize(
    ("ops", "names"),
    [
        (ALL, 11),
        ({"list"}, ["list_directory", "list_allowed_directories", "find_files"]),
        ({"read_file"}, ["read_text_file", "read_multiple_files", "list_allowed_directories"]),
        ({"write"}, ["list_allowed_directories", "write_file"]),
    ],
)
def test_a_service_gives_the_tools_that_its_grants_allow(ops: set[str], names: Any, tmp_path: Path) -> None:
    system = DiskFileSystem(tmp_path)
    service = FileDomainService(system.create_handle([{"prefix": "/workspace/", "ops": ops}]))
    found = [tool.name for tool, given in service.tools() if given is service]
    assert found == [tool.name for tool, _ in system.get_tools(service)]
    assert found == names or len(found) == names


def test_a_grant_on_userinput_gives_no_tool_that_writes(tmp_path: Path) -> None:
    service = FileDomainService(DiskFileSystem(tmp_path).create_handle([{"prefix": "/userinput/", "ops": ALL}]))
    assert not any("write" in tool.__tool__().effects.kinds for tool, _ in service.tools())
