"""A store in a place that cannot be written says which place it is, and what to do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from benchmarks.kills import in_child

from tests.journal.postgres import NOBODY
from tests.session.till import Till, calls
from toolwire import Session, Store, StoreUnavailable
from toolwire.journal.database.location import location_of
from toolwire.journal.database.sealing import key_of

KEY = "ab" * 32
PRICE = calls(("price", {"thing": "tea"}))
WRITABLE = (
    "is read-only for this process. A store keeps three files in its folder: name a folder in the URL that this "
    "process may write to, or make this one writable"
)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A folder that all users can enter, which pytest's own are not."""
    monkeypatch.setenv("TOOLWIRE_KEY", KEY)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def in_child_without_rights(work: Callable[[], None]) -> None:
    """Runs in a process of a user without rights: the administrator of a system may write everywhere."""

    def child() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        work()

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(child), 0)[1]) == 0


def refusal(path: Path) -> str:
    with pytest.raises(StoreUnavailable) as unavailable:
        Session([len], protocol="openai", store=f"sqlite:///{path}")
    return str(unavailable.value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "named", "why"),
    [
        (0o555, 0o666, "", "cannot be used: attempt to write a readonly database"),
        (0o777, 0o444, "runs.db", "cannot be used"),
        (0o555, None, "", "cannot be made: Permission denied"),
    ],
    ids=["its folder", "its file", "the folder of a new one"],
)
def test_a_session_names_the_place_that_cannot_be_written(
    folder: Path, folder_mode: int, file_mode: int | None, named: str, why: str
) -> None:
    path = folder / "runs.db"
    with Store.open(f"sqlite:///{path}") as store:
        Till().session(store).run_turn(PRICE)
        shown = store.url if file_mode is not None else str(path)

    def check() -> None:
        assert refusal(path) == f"{shown} {why}\n{folder / named} {WRITABLE}"

    if file_mode is None:
        path.unlink()
    else:
        path.chmod(file_mode)
    folder.chmod(folder_mode)
    in_child_without_rights(check)
    if file_mode is not None:
        # The control: the same user and file, when both may be written.
        folder.chmod(0o777)
        path.chmod(0o666)
        in_child_without_rights(lambda: _take_a_turn(path))


def _take_a_turn(path: Path) -> None:
    with Store.open(f"sqlite:///{path}") as store:
        assert len(store.runs()) == 1
        session = Session([len], protocol="openai", store=store)
        assert session.run_turn("done").suspended is None


def test_a_folder_that_is_not_there_is_named(folder: Path) -> None:
    (folder / "file").touch()
    for where in ("none", "file"):
        ending = f"\n{folder / where} is not a folder: make it, or name another in the URL"
        assert refusal(folder / where / "runs.db").endswith(ending)
    ending = f"\n{folder} is a folder: name a file in it, such as sqlite:///{folder}/runs.db"
    assert refusal(folder).endswith(ending)


def test_a_key_that_cannot_be_kept_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLWIRE_KEY")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    (folder / "file").touch()
    location = location_of("postgresql://ann@host/runs")
    with pytest.raises(StoreUnavailable) as unavailable:
        key_of(location, is_new=True)
    lines = str(unavailable.value).splitlines()
    assert lines[0].startswith(f"the key of {location.shown} cannot be kept at {folder}/file/toolwire/")
    assert lines[0].endswith(": Not a directory")
    assert lines[1:] == ["Set TOOLWIRE_KEY, for example to the output of: openssl rand -hex 32"]
    # The control: with the variable no key is kept.
    monkeypatch.setenv("TOOLWIRE_KEY", KEY)
    assert key_of(location, is_new=True) == bytes.fromhex(KEY)
