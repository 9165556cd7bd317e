"""What an edit may cost: a hostile one ends in time, holds nobody up, and honest ones of the same size are quick."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.files.call_costs import CallCost, call_cost
from tests.patience import PATIENCE_S
from toolwire.builtin.files.paths import FileLimit
from toolwire.builtin.files.service import DIFF_LINES, LINE_CHARACTERS
from toolwire.tools import DiskFileSystem, FileConflict, FileDomainService
from toolwire.vocabulary.machine import work_clock

LIMIT_S = 1.0
LIMIT_MB = 128
PATH = "/workspace/a"


def edit(old: str, new: str) -> dict[str, str]:
    return {"oldText": old, "newText": new}


WORD = "a" * 400_000
HOSTILE = {
    "a long word beside the change": (f"{WORD} x", [edit(f"{WORD} y", f"{WORD} x")], {""}),
    # A quick machine counts all of its places within the time.
    "a text that overlaps itself": ("a" * 1_000_000, [edit("a" * 500_000, "b")], {"limit", "tool_error"}),
    "a text that stands often": ("e\n" * 500_000, [edit("e", "f")], {"tool_error"}),
}
NUMBERED = "".join(f"{number:06} some words of a line\r\n" for number in range(30_000))
HOSTILE["ten thousand edits"] = (
    NUMBERED,
    [edit(f"{number * 3:06} some", f"{number * 3:06} any") for number in range(10_000)],
    {"limit"},
)
HOSTILE["line ends and many edits"] = (
    "\r\n" * 300_000 + "x",
    [edit("xy"[number % 2], "yx"[number % 2]) for number in range(5_000)],
    {"limit"},
)
HONEST = {
    "a hundred edits": (
        NUMBERED,
        [edit(f"{number * 300:06} some", f"{number * 300:06} any") for number in range(100)],
        {""},
    ),
    "a long line": (f"{'word ' * 80_000} x", [edit(" x", " y")], {""}),
    "a long text once": ("ab" * 250_000 + "c" + "ab" * 250_000, [edit("ab" * 250_000 + "c", "b")], {""}),
}


def edit_cost(
    folder: Path, text: str, edits: list[dict[str, str]], *, enough_s: float = LIMIT_S, timeout_s: float | None = None
) -> CallCost:
    arguments = {"path": PATH, "edits": edits}
    return call_cost({"a": text}, folder, "edit_file", arguments, enough_s=enough_s, timeout_s=timeout_s)


@pytest.mark.parametrize("name", [*HOSTILE, *HONEST])
def test_an_edit_of_a_megabyte_costs_at_most_a_second(name: str, tmp_path: Path) -> None:
    text, edits, kinds = (HOSTILE | HONEST)[name]
    cost = edit_cost(tmp_path, text, edits)
    assert cost.kind in kinds, cost.text
    assert cost.seconds <= LIMIT_S
    assert cost.megabytes <= LIMIT_MB


def test_an_edit_ends_at_its_deadline(tmp_path: Path) -> None:
    text, edits = "a" * 4_000_000, [edit("a" * 2_000_000, "b")]
    assert edit_cost(tmp_path, text, edits, enough_s=60, timeout_s=0.2).late_seconds < 0.1
    # The control: without a deadline it works on.
    assert edit_cost(tmp_path, text, edits, enough_s=60).seconds > 1


SHORT_LINES = [f"line {number % 150}" for number in range(20_000)]
LINE_ENDS = ["x"] * 500_000
CONFLICTS = {
    "repeated lines in reverse": (SHORT_LINES, SHORT_LINES[::-1]),
    "lines of one character": (LINE_ENDS, [*LINE_ENDS, "y"]),
    "two long lines": (["x" * 500_000], ["y" * 500_000]),
    "an honest change": ([f"{number} {'word ' * 4}" for number in range(20_000)], [*map(str, range(20_000))]),
}


def test_edits_that_take_too_long_say_what_to_narrow_and_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_clock, "WORK_S", -1.0)
    (tmp_path / "a").write_text("one")
    with pytest.raises(FileLimit) as caught:
        service_of(tmp_path).edit(PATH, [edit("one", "two")])
    assert str(caught.value) == ("/workspace/a: these edits take too long: make fewer in one call, of shorter texts")
    assert (tmp_path / "a").read_text() == "one"


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_costs_at_most_a_second_and_its_message_is_short(name: str, tmp_path: Path) -> None:
    current, wanted = map("\n".join, CONFLICTS[name])
    arguments = {"path": PATH, "content": wanted, "base_sha256": "0" * 64}
    cost = call_cost({"a": current}, tmp_path, "write_file", arguments, enough_s=LIMIT_S)
    assert cost.kind == "tool_error", cost.text
    assert cost.seconds <= LIMIT_S
    assert cost.megabytes <= LIMIT_MB
    assert cost.text.startswith("/workspace/a was changed since you read it")
    assert cost.text_size <= (DIFF_LINES + 1) * (LINE_CHARACTERS + 1)


def test_a_conflict_of_too_many_lines_says_so(tmp_path: Path) -> None:
    service = service_of(tmp_path)
    service.write(PATH, "x\n" * 20_001)
    with pytest.raises(FileConflict) as caught:
        service.write(PATH, "y\n" * 20_001, "0" * 64)
    assert str(caught.value).splitlines()[1:] == ["current and yours have too many lines to compare: read them"]


class Edit(Mapping[str, str]):
    """An edit whose texts are read in the middle of the work, when another program does something."""

    def __init__(self, given: dict[str, str], meanwhile: threading.Thread) -> None:
        self._given = given
        self._meanwhile = meanwhile

    def __getitem__(self, name: str) -> str:
        if not self._meanwhile.ident:
            self._meanwhile.start()
        self._meanwhile.join(PATIENCE_S)
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


def service_of(folder: Path) -> FileDomainService:
    grants = [{"prefix": "/workspace/", "ops": {"read_file", "write"}}]
    return FileDomainService(DiskFileSystem(workspace_dir=folder).create_handle(grants))


def test_another_program_writes_in_the_folder_while_an_edit_is_computed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    other = threading.Thread(target=lambda: service_of(tmp_path).write("/workspace/b", "beside"))
    service_of(tmp_path).edit(PATH, [Edit(edit("one", "two"), other)])
    assert ((tmp_path / "a").read_text(), (tmp_path / "b").read_text()) == ("two", "beside")


def test_an_edit_is_made_on_the_text_that_another_program_wrote_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\nmore")
    other = threading.Thread(target=lambda: service_of(tmp_path).edit(PATH, [edit("more", "less")]))
    service_of(tmp_path).edit(PATH, [Edit(edit("one", "two"), other)])
    assert (tmp_path / "a").read_text() == "two\nless"
