"""The compiled guest in the user's cache: kept whole or not at all, and loaded only if nobody else could have made it.

A guest of one instruction stands for the real one, which takes ten seconds to compile.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from wasmtime import Engine

from toolwire import ToolRegistry, WasmRunner
from toolwire.sandbox.wasm import compiled, wasm_runner
from toolwire.sandbox.wasm.compiled import KEPT_FILES, load_or_compile
from toolwire.sandbox.wasm.guest_file import Guest
from toolwire.sandbox.wasm.machine import make_config
from toolwire.tools import workspace_tools
from toolwire.vocabulary.machine import code_cache

TARGET = "test"


@dataclass(frozen=True, slots=True)
class SmallGuest(Guest):
    """Counts how often it is compiled."""

    unpacked: list[int]

    def unpack(self) -> bytes:
        self.unpacked.append(1)
        return b"(component)"


@pytest.fixture
def guest() -> SmallGuest:
    return SmallGuest("ab" * 32, "3.14.0", [])


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The log is heard whatever a test before has made of the package's own."""
    log = logging.getLogger("toolwire.sandbox")
    log.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, log.name):
        yield
    log.removeHandler(caplog.handler)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(code_cache, "_roots", set())
    return tmp_path / "toolwire" / "wasm"


def load(guest: SmallGuest) -> None:
    """Loads the guest for one engine, as the first program of a process does."""
    load_or_compile(guest, Engine(make_config(None)), TARGET)(Engine(make_config(None)))


def the_file(folder: Path) -> Path:
    (found,) = folder.glob("*.cwasm")
    return found


def test_it_is_compiled_once_and_kept_for_this_user_alone(guest: SmallGuest, folder: Path) -> None:
    load(guest)
    load(guest)
    assert guest.unpacked == [1]
    assert (folder.stat().st_mode & 0o777, the_file(folder).stat().st_mode & 0o777) == (0o700, 0o600)
    assert the_file(folder).name.startswith(guest.digest[:32])


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def write_foreign(file: Path) -> None:
    content = b"machine code of another program"
    file.write_bytes(content + hashlib.sha256(b"").digest())


def halve(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def open_to_all(file: Path) -> None:
    file.chmod(0o666)


def link(file: Path) -> None:
    other = file.with_suffix(".other")
    file.rename(other)
    file.symlink_to(other)


def make_folder_shared(file: Path) -> None:
    file.parent.parent.chmod(0o777)


@pytest.mark.parametrize("spoil", [damage, write_foreign, halve, Path.unlink, open_to_all, link])
def test_what_is_not_whole_and_ones_own_is_made_anew(
    spoil: Callable[[Path], None], guest: SmallGuest, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load(guest)
    spoil(the_file(folder))
    caplog.clear()
    load(guest)
    assert guest.unpacked == [1, 1]
    assert ("is compiled anew" in caplog.text) == (spoil is not Path.unlink)
    load(guest)
    assert guest.unpacked == [1, 1]


def test_in_a_folder_that_others_may_write_nothing_is_read(
    guest: SmallGuest, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load(guest)
    make_folder_shared(the_file(folder))
    load(guest)
    assert guest.unpacked == [1, 1]
    assert "kept in memory alone" in caplog.text
    assert f"another user may replace files in {folder.parent}: chmod go-w {folder.parent}" in caplog.text


def test_where_a_file_tool_reaches_nothing_is_read(
    guest: SmallGuest, folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load(guest)
    workspace_tools(tmp_path)
    load(guest)
    assert guest.unpacked == [1, 1]
    assert f"a file tool of this process may write to {folder}" in caplog.text


@pytest.mark.parametrize("home", [None, "relative"])
def test_without_a_home_it_is_compiled_in_memory(
    home: str | None, guest: SmallGuest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for variable in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
        if home is not None:
            monkeypatch.setenv(variable, home)
    load(guest)
    assert "kept in memory alone, because this user has no folder for caches" in caplog.text


def test_a_full_disk_leaves_no_part_of_it(
    guest: SmallGuest, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled.os, "fsync", full)
    load(guest)
    assert "cannot keep it: No space left on device" in caplog.text
    assert not [file for file in folder.iterdir() if not file.name.endswith(".lock")]


def test_where_the_folder_cannot_be_made_it_is_compiled_in_memory(
    guest: SmallGuest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    load(guest)
    assert guest.unpacked == [1]
    assert "kept in memory alone" in caplog.text


def test_what_a_killed_process_left_is_in_nobodys_way(guest: SmallGuest, folder: Path) -> None:
    load(guest)
    kept = the_file(folder)
    kept.rename(kept.with_name(f"{kept.name}.draft"))
    load(guest)
    load(guest)
    assert guest.unpacked == [1, 1]
    assert sorted(file.suffix for file in folder.iterdir()) == [".cwasm", ".lock"]


def test_old_guests_do_not_pile_up(folder: Path) -> None:
    for number in range(KEPT_FILES + 3):
        load(SmallGuest(f"{number:064x}"[::-1], "3.14.0", []))
    assert len(list(folder.glob("*.cwasm"))) == KEPT_FILES


def test_where_no_machine_code_may_be_made_wasmtimes_interpreter_runs_it(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """The self-test is told to fail, as in a process that may not make memory executable."""
    monkeypatch.setattr(wasm_runner, "_loaded", [])
    monkeypatch.setattr(wasm_runner, "_SELF_TEST", "raise SystemExit(1)")
    monkeypatch.setattr(wasm_runner, "load_or_compile", lambda guest, engine, target: (engine.is_pulley(), target))
    loaded = wasm_runner._load_guest()
    assert (loaded._load, loaded._target) == ((True, "pulley64"), "pulley64")
    assert loaded.report["wasm"].endswith("interpreted")


def test_the_self_test_finds_what_a_process_may_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import wasmtime

    packages = Path(wasmtime.__file__).parent.parent
    assert wasm_runner._may_make_code(packages)
    # From Linux 6.3 on a process can give up the right to make memory executable: PR_SET_MDWE.
    refuse = "import ctypes\nif ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): raise SystemExit(0)\n"
    monkeypatch.setattr(wasm_runner, "_SELF_TEST", refuse + wasm_runner._SELF_TEST)
    assert not wasm_runner._may_make_code(packages)


def test_a_model_that_writes_the_cache_is_refused_and_its_code_never_runs(folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    registry = ToolRegistry(rules=[{"effect": "auto", "tool": "*"}])
    for tool in workspace_tools(tmp_path):
        registry.register(tool)
    write = next(name for name in registry if "write" in name)
    parameters = {"path": "/workspace/toolwire/wasm/evil.cwasm", "content": "x"}
    result = registry.invoke(write, parameters)
    assert "belongs to the compiled programs of toolwire" in str(result.error)
    assert not list(folder.iterdir())
    beside = registry.invoke(write, {**parameters, "path": "/workspace/toolwire/wasm2/evil.cwasm"})
    assert beside.success, beside
    assert [file.name for file in (folder.parent / "wasm2").iterdir()] == ["evil.cwasm"]
    assert WasmRunner.usual_isolation == "wasm"
