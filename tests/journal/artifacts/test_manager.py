"""Artifacts in a store: every version is kept, no change is lost, and a repeated call makes nothing twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import text

from tests.forks import forked
from tests.journal.artifacts.histories import OPERATIONS, SEEDS, Operation, history, violations
from tests.journal.world import done
from tests.session.test_documents import SLACK, Watch, stored_parts
from toolwire import ConfigurationError, DecisionRefused, Store
from toolwire.journal.artifacts import manager as managers
from toolwire.journal.artifacts import versions
from toolwire.journal.artifacts.artifact import ARTIFACT_LIMIT_BYTES
from toolwire.journal.ledger.parts import ABANDONED_S, PART_BYTES, Parts
from toolwire.tools import ArtifactConflict, ArtifactError, ArtifactManager

WRITERS = 8
EDITS = 10
"""Edits of each writer; `make soak` makes 500."""


@pytest.fixture
def kept(opened: Callable[[], Store]) -> Iterator[Store]:
    with opened() as store:
        yield store


@pytest.fixture
def artifacts(kept: Store) -> ArtifactManager:
    return ArtifactManager(kept, namespace="c-17")


def change(store: Store, statement: str) -> int:
    """Changes the database behind the store's back."""
    return done(store._database.run(lambda connection: connection.execute(text(statement)).rowcount))


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(ArtifactError) as error:
        work()
    return str(error.value)


def test_every_version_is_kept_and_read(artifacts: ArtifactManager) -> None:
    first = artifacts.create("plan", "1. Read\n2. Write\n", title="The plan", content_type="text/markdown")
    assert (first.version, first.size_bytes, first.title) == (1, 17, "The plan")
    assert artifacts.update("plan", "2. Write", "2. Test").version == 2
    assert artifacts.rewrite("plan", "é\ud83d").version == 3
    assert artifacts.restore("plan", 1).version == 4
    contents = [artifacts.read("plan", number).content for number in (1, 2, 3, 4)]
    assert contents == ["1. Read\n2. Write\n", "1. Read\n2. Test\n", "é\ud83d", "1. Read\n2. Write\n"]
    assert artifacts.read("plan").version == 4
    history = artifacts.history("plan")
    assert [version.version for version in history] == [1, 2, 3, 4]
    assert {(version.title, version.content_type) for version in history} == {("The plan", "text/markdown")}
    assert history[0].sha256 == history[3].sha256 != history[1].sha256
    assert artifacts.diff("plan", 1, 2).splitlines()[2:] == ["@@ -1,2 +1,2 @@", " 1. Read", "-2. Write", "+2. Test"]
    assert artifacts.diff("plan", 1) == ""


def test_an_update_by_likeness_says_what_was_replaced(artifacts: ArtifactManager) -> None:
    artifacts.create("plan", "1. Read the text\n2. Write\n")
    made = artifacts.update("plan", "1. Read the test", "1. Look")
    assert (made.score, made.replaced) == (93.8, "1. Read the text")
    assert artifacts.read("plan").content == "1. Look\n2. Write\n"
    assert artifacts.history("plan")[1] == made
    exact = artifacts.update("plan", "1. Look", "1. See")
    assert (exact.score, exact.replaced) == (100.0, "")


def test_namespaces_are_apart_and_another_process_reads_the_same(
    artifacts: ArtifactManager, opened: Callable[[], Store]
) -> None:
    artifacts.create("plan", "ours")
    other = ArtifactManager(opened(), namespace="c-18")
    assert other.list() == []
    other.create("plan", "theirs")
    again = ArtifactManager(opened(), namespace="c-17")
    assert [again.read(version.id).content for version in again.list()] == ["ours"]


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda it: it.read("nope"), "there is no artifact 'nope'. There are 'plan'."),
        (lambda it: it.history("nope"), "there is no artifact 'nope'"),
        (lambda it: it.update("nope", "a", "b"), "there is no artifact 'nope'"),
        (lambda it: it.rewrite("nope", "a"), "there is no artifact 'nope'"),
        (lambda it: it.rewrite("plan", "b", base_version=-1), "has the versions 1 to 1, and no version -1"),
        (lambda it: it.rewrite("plan", "b", base_version=0), "has the versions 1 to 1, and no version 0"),
        (lambda it: it.read("plan", 2), "has the versions 1 to 1, and no version 2"),
        (lambda it: it.read("plan", 0), "has the versions 1 to 1, and no version 0"),
        (lambda it: it.create("plan", "b"), "exists already, at version 1: rewrite or update it"),
        (lambda it: it.create("../plan", "b"), "give 1 to 60 letters, digits"),
        (lambda it: it.create("", "b"), "give 1 to 60 letters, digits"),
        (lambda it: it.create("a" * 61, "b"), "give 1 to 60 letters, digits"),
        (lambda it: it.create("a\n", "b"), "give 1 to 60 letters, digits"),
        (lambda it: it.create("b", "b", title="a\nb"), "give one line of at most 200 characters"),
        (lambda it: it.create("b", "b", title="a" * 201), "give one line of at most 200 characters"),
        (lambda it: it.create("b", "b", content_type="markdown"), "give a media type, such as text/markdown"),
        (lambda it: it.create("b", "b" * (ARTIFACT_LIMIT_BYTES + 1)), "4,194,305 bytes, and 4,194,304 fit"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_write(
    artifacts: ArtifactManager, work: Callable[[ArtifactManager], object], why: str
) -> None:
    artifacts.create("plan", "a")
    assert why in refused(lambda: work(artifacts))
    assert [version.version for version in artifacts.list()] == [1]


@pytest.mark.parametrize("id", ["a" * 60, "2026-report.md", "计划", "_"])
def test_ids_up_to_the_limit_are_taken(artifacts: ArtifactManager, id: str) -> None:
    assert artifacts.create(id, "a", title="t" * 200).id == id


def test_a_namespace_is_a_name(kept: Store) -> None:
    with pytest.raises(ConfigurationError, match="1 to 200 printable characters"):
        ArtifactManager(kept, namespace="")


def test_versions_up_to_the_limit_are_made(artifacts: ArtifactManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managers, "VERSIONS_LIMIT", 2)
    artifacts.create("plan", "a")
    artifacts.rewrite("plan", "b")
    assert "has 2 versions, and no more fit" in refused(lambda: artifacts.rewrite("plan", "c"))


def test_a_rewrite_on_an_older_version_is_a_conflict_that_shows_the_changes(artifacts: ArtifactManager) -> None:
    artifacts.create("plan", "a\nb\n")
    artifacts.update("plan", "b", "c")
    with pytest.raises(ArtifactConflict) as conflict:
        artifacts.rewrite("plan", "x", base_version=1)
    assert conflict.value.version == 2
    assert artifacts.read("plan").sha256 in str(conflict.value)
    assert str(conflict.value).splitlines()[-3:] == [" a", "-b", "+c"]
    assert artifacts.rewrite("plan", "x", base_version=2).version == 3


def test_a_call_that_is_made_again_gives_the_version_that_it_made(artifacts: ArtifactManager) -> None:
    made = [artifacts.create("plan", "a", key="k1") for _ in range(2)]
    made += [artifacts.update("plan", "a", "b", key="k2") for _ in range(2)]
    made += [artifacts.rewrite("plan", "c", base_version=2, key="k3") for _ in range(2)]
    made += [artifacts.restore("plan", 1, key="k4") for _ in range(2)]
    assert [version.version for version in made] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert made[::2] == made[1::2]
    assert "made a version of artifact 'plan'" in refused(lambda: artifacts.create("other", "a", key="k1"))
    # The control: without a key it is another change.
    assert artifacts.restore("plan", 1).version == 5


def test_a_key_counts_once_among_writers_at_the_same_time(artifacts: ArtifactManager) -> None:
    artifacts.create("plan", "a")
    with ThreadPoolExecutor(WRITERS) as pool:
        made = list(pool.map(lambda _: artifacts.rewrite("plan", "b", key="k").version, range(4 * WRITERS)))
        created = list(pool.map(lambda _: artifacts.create("new", "b", key="n").version, range(4 * WRITERS)))
    assert (set(made), set(created)) == ({2}, {1})


@pytest.mark.parametrize(("others", "is_made"), [(99, True), (100, False)])
def test_a_change_gives_up_after_others_were_quicker_each_time(
    artifacts: ArtifactManager, monkeypatch: pytest.MonkeyPatch, others: int, is_made: bool
) -> None:
    artifacts.create("plan", "a")
    assert managers.ATTEMPTS == 1_000
    monkeypatch.setattr(managers, "ATTEMPTS", 100)
    whole, left = versions.write_version, others

    def slower(*given: Any) -> int | None:
        nonlocal left
        if left > 0:
            left -= 1
            raise ArtifactConflict("someone was quicker", version=2)
        return whole(*given)

    monkeypatch.setattr(versions, "write_version", slower)
    if is_made:
        assert artifacts.update("plan", "a", "b").version == 2
    else:
        assert "others were quicker 100 times" in refused(lambda: artifacts.update("plan", "a", "b"))


def test_a_rewrite_without_a_version_is_made_on_the_newest_one_at_the_first_attempt(
    artifacts: ArtifactManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managers, "ATTEMPTS", 1)
    artifacts.create("plan", "a", title="The plan", content_type="text/markdown")
    with ThreadPoolExecutor(WRITERS) as pool:
        made = list(pool.map(lambda number: artifacts.rewrite("plan", f"{number}"), range(4 * WRITERS)))
    assert sorted(each.version for each in made) == list(range(2, 2 + 4 * WRITERS))
    assert {(each.title, each.content_type) for each in made} == {("The plan", "text/markdown")}


def edit(url: str, writer: int, edits: int) -> None:
    with Store.open(url) as store:
        artifacts = ArtifactManager(store, namespace="c-17")
        for number in range(edits):
            artifacts.update("board", f"<{writer}:{number}>", f"<{writer}:{number + 1}>")


def edited(url: str, edits: int) -> tuple[str, int]:
    """The text and the number of versions after writers in processes of their own."""
    with Store.open(url) as store:
        artifacts = ArtifactManager(store, namespace="c-17")
        artifacts.create("board", "\n".join(f"<{writer}:0>" for writer in range(WRITERS)))
        processes = [forked(edit, url, writer, edits) for writer in range(WRITERS)]
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * WRITERS
        return artifacts.read("board").content, len(artifacts.history("board"))


@pytest.mark.timeout(900)
def test_no_edit_of_writers_in_several_processes_is_lost(url: str, whole: bool) -> None:
    edits = 500 if whole else EDITS
    content, versions = edited(url, edits)
    assert content == "\n".join(f"<{writer}:{edits}>" for writer in range(WRITERS))
    assert versions == 1 + WRITERS * edits


def test_without_a_comparison_of_the_head_edits_are_lost(artifacts: ArtifactManager) -> None:
    """The control: a version that is written on an older one takes the change in between away."""
    artifacts.create("board", "<a:0> <b:0>")
    stale = artifacts.read("board").content
    artifacts.update("board", "<a:0>", "<a:1>")
    artifacts.rewrite("board", stale.replace("<b:0>", "<b:1>"))
    assert artifacts.read("board").content == "<a:0> <b:1>"
    assert "was changed since version 1" in refused(lambda: artifacts.rewrite("board", stale, base_version=1))


@pytest.mark.threat(59)
@pytest.mark.timeout(100 * 3_600)
def test_histories_of_clients_at_the_same_time_are_those_of_one_register(
    artifacts: ArtifactManager, whole: bool
) -> None:
    for seed in range(SEEDS if whole else 1):
        made = history(artifacts, f"register-{seed}", operations=OPERATIONS if whole else 15, seed=seed)
        assert violations(made) == []


def _operation(kind: Literal["read", "write"], version: int, began: float) -> Operation:
    return Operation(kind=kind, began=began, ended=began + 0.5, version=version, content=str(version))


@pytest.mark.threat(59)
@pytest.mark.parametrize(
    ("last", "wrong"),
    [
        (_operation("read", 2, 3), []),
        (_operation("read", 1, 3), ["order"]),
        (_operation("write", 2, 3), ["order", "versions"]),
        (_operation("write", 4, 3), ["versions"]),
        (replace(_operation("read", 2, 3), content="1"), ["content"]),
        (_operation("read", 1, 2.2), []),
    ],
)
def test_the_check_of_histories_finds_what_no_register_does(last: Operation, wrong: list[str]) -> None:
    before = [_operation("write", 1, 1), _operation("write", 2, 2)]
    assert sorted(each.partition(" ")[0] for each in violations([*before, last])) == wrong


@pytest.mark.parametrize("size", [PART_BYTES, PART_BYTES + 1, ARTIFACT_LIMIT_BYTES])
def test_a_large_version_is_written_in_parts_and_comes_back(artifacts: ArtifactManager, kept: Store, size: int) -> None:
    content = "é" * (size // 2) + "x" * (size % 2)
    before = kept._database.writer.commits
    assert artifacts.create("large", content).size_bytes == size
    count = 0 if size <= PART_BYTES else -(-size // PART_BYTES)
    assert stored_parts(kept) == count
    # A transaction for each part, one for the version, and one that finds no part to delete.
    assert kept._database.writer.commits - before <= count + 2
    assert artifacts.read("large").content == content


def test_other_records_are_written_between_the_parts_of_a_version(artifacts: ArtifactManager, kept: Store) -> None:
    watch = Watch(kept)
    artifacts.create("large", "x" * ARTIFACT_LIMIT_BYTES)
    assert len(watch.carried) - 1 == ARTIFACT_LIMIT_BYTES // PART_BYTES
    assert max(watch.carried) <= PART_BYTES * SLACK
    # Each record waited for the part before it, and at most for the one after.
    assert all(done(waited) <= 1 for waited in watch.beside)


def test_parts_of_a_change_that_came_too_late_are_deleted(
    artifacts: ArtifactManager, kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts.create("large", "a" * (PART_BYTES + 1))
    whole = managers.write_parts

    def slower(*given: object) -> None:
        whole(*given)  # type: ignore[arg-type]
        monkeypatch.setattr(managers, "write_parts", whole)
        artifacts.rewrite("large", "b")

    monkeypatch.setattr(managers, "write_parts", slower)
    assert artifacts.rewrite("large", "c" * (PART_BYTES + 1)).version == 3
    assert stored_parts(kept) == 4
    # Parts of versions stay, however old they are.
    change(kept, f"UPDATE document_parts SET written_at = written_at - {2 * ABANDONED_S}")
    kept.save_document("c-9", {"a": "x" * 2 * PART_BYTES}, version=0)
    assert [len(artifacts.read("large", number).content) for number in (1, 2, 3)] == [PART_BYTES + 1, 1, PART_BYTES + 1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE artifact_versions SET version = 2 WHERE version = 1 AND artifact_id = 'plan'",
        "UPDATE artifact_versions SET artifact_id = 'plan', version = 2 WHERE artifact_id = 'other'",
        "UPDATE artifact_versions SET content = info",
        "UPDATE artifact_versions SET info = content",
    ],
)
def test_a_version_that_was_changed_in_the_database_is_refused(
    artifacts: ArtifactManager, kept: Store, statement: str
) -> None:
    artifacts.create("plan", "a")
    artifacts.create("other", "b")
    assert artifacts.read("plan").content == "a"
    change(kept, statement)
    version = 2 if "version = 2" in statement else 1
    with pytest.raises(DecisionRefused, match="changed"):
        artifacts.read("plan", version)


def test_a_part_that_is_missing_is_noticed(artifacts: ArtifactManager, kept: Store) -> None:
    artifacts.create("large", "a" * (PART_BYTES + 1))
    change(kept, "DELETE FROM document_parts WHERE number = 1")
    with pytest.raises(DecisionRefused, match="lacks parts"):
        artifacts.read("large")


@pytest.mark.parametrize(("size", "left"), [(PART_BYTES, 2), (PART_BYTES + 1, 0)])
def test_a_large_version_deletes_the_parts_that_a_killed_writer_left(
    artifacts: ArtifactManager, kept: Store, size: int, left: int
) -> None:
    artifacts.create("small", "a")
    for age_s in (0.9 * ABANDONED_S, 1.1 * ABANDONED_S):
        name = Parts(owner="c-17", name=f"abandoned-{age_s}")
        managers.write_parts(kept._database, name, [b"a", b"b"], time.time() - age_s)
    artifacts.rewrite("small", "b" * size)
    assert stored_parts(kept) == 2 + left + (2 if size > PART_BYTES else 0)


def write_until_killed(url: str, ready: str) -> None:
    with Store.open(url) as store:
        artifacts = ArtifactManager(store, namespace="c-17")
        Path(ready).touch()
        number = len(artifacts.history("large"))
        while True:
            number += 1
            artifacts.rewrite("large", chr(97 + number % 26) * (2 * PART_BYTES), key=f"k{number}")


@pytest.mark.timeout(900)
def test_a_writer_that_is_killed_leaves_whole_versions(url: str, tmp_path: Path, whole: bool) -> None:
    chance = random.Random(7)
    with Store.open(url) as store:
        artifacts = ArtifactManager(store, namespace="c-17")
        artifacts.create("large", "a" * PART_BYTES)
        for kill in range(200 if whole else 4):
            ready = tmp_path / f"ready{kill}"
            process = forked(write_until_killed, url, str(ready))
            versions = len(artifacts.history("large"))
            wanted = versions + chance.randrange(1, 4)
            while len(artifacts.history("large")) < wanted:
                process.join(0.002)
                assert process.exitcode is None
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
        history = artifacts.history("large")
        assert [version.version for version in history] == list(range(1, len(history) + 1))
        for version in history[1:]:
            content = artifacts.read("large", version.version).content
            assert (len(content), len(set(content))) == (2 * PART_BYTES, 1)
        change(store, f"UPDATE document_parts SET written_at = written_at - {2 * ABANDONED_S}")
        artifacts.rewrite("large", "z" * (2 * PART_BYTES))
        # The first version has no parts, and the last rewrite two.
        assert stored_parts(store) == 2 * len(history)


def test_an_export_writes_the_newest_versions_and_follows_no_link(artifacts: ArtifactManager, tmp_path: Path) -> None:
    artifacts.create("plan", "a", content_type="text/markdown")
    artifacts.create("plan.md", "b", content_type="text/markdown")
    artifacts.create("data", "{}", content_type="application/json")
    artifacts.create("odd", "c", content_type="x-odd/x-odd")
    artifacts.rewrite("data", "[]")
    folder, victim = tmp_path / "out", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("kept")
    (folder / "plan.md").symlink_to(victim)
    assert [path.name for path in artifacts.export(folder)] == ["data.json", "odd.txt", "plan.md", "plan-2.md"]
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "data.json": "[]",
        "odd.txt": "c",
        "plan.md": "a",
        "plan-2.md": "b",
    }
    assert victim.read_text() == "kept"
    assert len(artifacts.export(folder)) == 4
