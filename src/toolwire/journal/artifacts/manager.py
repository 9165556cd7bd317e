"""`ArtifactManager`: the artifacts of one namespace in a store."""

from __future__ import annotations

import builtins
import hashlib
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from sqlalchemy import Connection

from toolwire.journal.artifacts import versions
from toolwire.journal.artifacts.artifact import (
    ARTIFACT_LIMIT_BYTES,
    Artifact,
    ArtifactConflict,
    ArtifactError,
    ArtifactLimit,
    ArtifactVersion,
)
from toolwire.journal.artifacts.editing import DIFF_LINES, difference, place_of
from toolwire.journal.artifacts.export import export_to
from toolwire.journal.artifacts.versions import NewVersion
from toolwire.journal.conversation_info import check_name
from toolwire.journal.ledger.parts import PART_BYTES, Parts, split
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.store import Store
from toolwire.journal.writing_parts import delete_parts, write_parts
from toolwire.vocabulary.errors import ConfigurationError
from toolwire.vocabulary.machine.work_clock import WorkClock
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes

VERSIONS_LIMIT = 10_000
"""Maximum number of versions of one artifact. More would come from a loop, not from work."""

ATTEMPTS = 1_000
"""Number of times that a change without a base version starts again because someone else was quicker.

On a busy machine, eight writers without a pause let a slow one lose more than 100 times in a row.
"""

ID_PATTERN = r"\w[\w.-]{0,59}"
"""Ids: letters of any script, digits, `_`, `.` and `-`. At most 60, so that a file can have the name."""

CONTENT_TYPE_PATTERN = r"[\w.+-]{1,60}/[\w.+-]{1,60}"
TITLE_LIMIT = 200
"""Maximum characters of a title: one line on a screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """The content of a new version, and what else it changes. None leaves a field as it is."""

    content: str
    title: str | None = None
    content_type: str | None = None
    score: float | None = None
    replaced: str = ""


class ArtifactManager:
    """The artifacts of one namespace: texts that a model and people work on, with every version kept.

    >>> artifacts = ArtifactManager(store, namespace="c-17")
    >>> artifacts.create("plan", "1. Read\\n2. Write\\n", title="The plan").version
    1
    >>> artifacts.update("plan", "2. Write", "2. Test").version
    2
    >>> artifacts.read("plan", version=1).content
    '1. Read\\n2. Write\\n'

    Versions are numbered 1, 2, 3 and so on, are encrypted like the store's runs, and are never changed or deleted. Two
    writers never lose a change: a change without `base_version` is made on the newest version, and one with it raises
    `ArtifactConflict` if the artifact was changed since. All methods block until the disk has the change, and may be
    called from any thread.

    `key` makes a change idempotent: a second call with the same key gives the version that the first one made.
    """

    def __init__(self, store: Store, *, namespace: str) -> None:
        """`namespace` is usually the conversation: a text of 1 to 200 printable characters.

        Raises:
            ConfigurationError: The store is not an open `Store`, or the namespace is not valid.
        """
        if not isinstance(cast("object", store), Store):
            kind = type(cast("object", store)).__name__
            raise ConfigurationError(f"ArtifactManager: store is a {kind} and not an open store: give Store.open(url)")
        self._store = store
        self._namespace = check_name(namespace)

    def create(
        self, id: str, content: str, *, title: str = "", content_type: str = "text/plain", key: str = ""
    ) -> ArtifactVersion:
        """Makes the first version of a new artifact of at most 4 MiB as UTF-8.

        Raises:
            ArtifactConflict: The artifact exists.
            ArtifactError: The id, title or content type is not valid, or the content is too large.
        """
        _check_id(id)
        if len(title) > TITLE_LIMIT or not re.fullmatch(r"[^\r\n]*", title):
            raise ArtifactError(f"title={title!r:.80}: give one line of at most {TITLE_LIMIT} characters")
        if not re.fullmatch(CONTENT_TYPE_PATTERN, content_type):
            raise ArtifactError(f"content_type={content_type!r:.80}: give a media type, such as text/markdown")
        made = self._version_by_key(id, key)
        return made or self._write(id, 1, _Change(content=content, title=title, content_type=content_type), key)

    def read(self, id: str, version: int | None = None) -> Artifact:
        """Returns a version with its content; None means the newest one.

        Raises:
            ArtifactError: The artifact or the version does not exist.
            DecisionRefused: `bad_mac`: it was changed in the database.
        """
        database, namespace = self._database, self._namespace
        current = self._check_there(id)
        wanted = current if version is None else version
        found = database.read(
            lambda connection: versions.read_version(connection, database.sealer, namespace, id, wanted),
            is_one_state=True,
        )
        if found is None:
            raise ArtifactError(f"artifact {id!r} has the versions 1 to {current}, and no version {version!r}")
        return found

    def update(self, id: str, old_str: str, new_str: str, *, key: str = "") -> ArtifactVersion:
        """Replaces a text that stands once in the newest version.

        If it does not stand there exactly, it may stand there once with other quotes, dashes, blanks at line ends, or
        forms of characters (NFKC). Else the passage that is most alike is replaced: its score must be at least 90 of
        100, and 3 above that of any other place. `score` and `replaced` of the new version say so.

        Raises:
            ArtifactError: The artifact does not exist, or does not have this text exactly once. The message
                names the places.
            ArtifactLimit: The search for alike text takes too long.
        """

        def attempt() -> ArtifactVersion:
            now = self.read(id)
            place = place_of(now.content, old_str)
            found = now.content[place.start : place.end]
            content = now.content[: place.start] + new_str + now.content[place.end :]
            replaced = "" if found == old_str else found
            change = _Change(content=content, score=round(place.score, 1), replaced=replaced)
            return self._write(id, now.version + 1, change, key)

        return self._retry_on_conflict(id, attempt, key)

    def rewrite(self, id: str, content: str, *, base_version: int | None = None, key: str = "") -> ArtifactVersion:
        """Replaces the whole content. `base_version` is the version that was read; None replaces any.

        Raises:
            ArtifactConflict: The artifact was changed since `base_version`. The message has the differences, in at most
                40 lines.
            ArtifactError: The artifact does not exist, or the content is too large.
        """
        if base_version is None:
            return self._retry_on_conflict(id, lambda: self._write(id, None, _Change(content=content), key), key)
        current = self._check_there(id)
        if (made := self._version_by_key(id, key)) is not None:
            return made
        if current == base_version:
            with suppress(ArtifactConflict):
                return self._write(id, base_version + 1, _Change(content=content), key)
        now, base = self.read(id), self.read(id, base_version)
        changes = difference(base.content, now.content, names=(_name(base), _name(now)), lines=DIFF_LINES)
        raise ArtifactConflict(
            f"artifact {id!r} was changed since version {base_version}: it is at version {now.version}, with the "
            f"digest {now.sha256}. Nothing was written. Take these changes over, and give "
            f"base_version={now.version}:\n{changes}",
            version=now.version,
        )

    def restore(self, id: str, version: int, *, key: str = "") -> ArtifactVersion:
        """Makes a new version with the content of an older one.

        Raises:
            ArtifactError: The artifact or the version does not exist.
        """
        content = self.read(id, version).content
        return self.rewrite(id, content, key=key)

    def list(self) -> builtins.list[ArtifactVersion]:
        """Returns the newest version of each artifact, by id."""
        database = self._database
        return database.read(lambda connection: versions.heads(connection, database.sealer, self._namespace))

    def history(self, id: str) -> builtins.list[ArtifactVersion]:
        """Returns the versions of an artifact, oldest first.

        Raises:
            ArtifactError: The artifact does not exist.
        """
        database, namespace = self._database, self._namespace
        _check_id(id)
        found = database.read(lambda connection: versions.history(connection, database.sealer, namespace, id))
        if not found:
            raise ArtifactError(f"there is no artifact {id!r}. {self._ids_text()}")
        return found

    def diff(self, id: str, old: int, new: int | None = None) -> str:
        """Returns a unified diff of two versions; None means the newest one. Empty if they are equal.

        Raises:
            ArtifactError: The artifact or the version does not exist.
            ArtifactLimit: The versions have too many lines to compare.
        """
        before, after = self.read(id, old), self.read(id, new)
        return difference(before.content, after.content, names=(_name(before), _name(after)))

    def export(self, folder: str | Path) -> builtins.list[Path]:
        """Writes the newest version of each artifact to a file in a folder, and returns the files.

        The file is called like the artifact, with the extension of its content type. A file of that name is replaced.

        Raises:
            OSError: The folder or a file cannot be written.
        """
        return export_to(Path(folder), (self.read(version.id) for version in self.list()))

    @property
    def _database(self) -> Database:
        return self._store._database  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _check_there(self, id: str) -> int:
        """Returns the number of the current version.

        Raises:
            ArtifactError: The artifact does not exist.
        """
        _check_id(id)
        current = self._database.read(lambda connection: versions.head(connection, self._namespace, id))
        if not current:
            raise ArtifactError(f"there is no artifact {id!r}. {self._ids_text()}")
        return current

    def _retry_on_conflict(self, id: str, attempt: Callable[[], ArtifactVersion], key: str) -> ArtifactVersion:
        """Makes a version, and starts again if someone else makes one meanwhile."""
        self._check_there(id)
        clock = WorkClock()
        for _ in range(ATTEMPTS):
            clock.add(ARTIFACT_LIMIT_BYTES)
            if clock.is_over:
                raise ArtifactLimit(f"artifact {id!r} was not changed in time: others change it meanwhile: try later")
            if (made := self._version_by_key(id, key)) is not None:
                return made
            try:
                return attempt()
            except ArtifactConflict:
                continue
        raise ArtifactError(f"artifact {id!r} changes too often: others were quicker {ATTEMPTS:,} times")

    def _version_by_key(self, id: str, key: str) -> ArtifactVersion | None:
        """Returns the version that an earlier call with this key made."""
        namespace = self._namespace
        made = (
            self._database.read(lambda connection: versions.version_by_key(connection, namespace, id, key))
            if key
            else None
        )
        return None if made is None else _without_content(self.read(id, made))

    def _write(self, id: str, version: int | None, change: _Change, key: str) -> ArtifactVersion:
        """Makes a version. Without a number it follows the version that is the newest when the store writes it."""
        content = utf8_bytes(change.content)
        if len(content) > ARTIFACT_LIMIT_BYTES:
            raise ArtifactError(f"the content has {len(content):,} bytes, and {ARTIFACT_LIMIT_BYTES:,} fit: split it")
        database = self._database
        given = ArtifactVersion(
            id=id,
            version=version or 0,
            title=change.title or "",
            content_type=change.content_type or "",
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            made_at=database.clock(),
            score=change.score,
            replaced=change.replaced,
        )
        parts_of, stored = "", content
        if len(content) > PART_BYTES:
            parts_of, parts = secrets.token_hex(16), split(content)
            write_parts(database, Parts(owner=self._namespace, name=parts_of), parts, given.made_at)
            stored = str(len(parts)).encode()

        def write(connection: Connection) -> ArtifactVersion | int | ArtifactError:
            info = given
            if change.title is None:
                now = versions.newest(connection, database.sealer, self._namespace, id)
                number = now.version + 1 if version is None else version
                info = replace(info, version=number, title=now.title, content_type=now.content_type)
            if info.version > VERSIONS_LIMIT:
                return ArtifactError(
                    f"artifact {id!r} has {VERSIONS_LIMIT:,} versions, and no more fit: make another one"
                )
            new = NewVersion(namespace=self._namespace, info=info, key=key, parts_of=parts_of)
            sealed = database.sealer.seal(stored, *new.place("content"))
            try:
                return versions.write_version(connection, database.sealer, new, sealed) or info
            except ArtifactError as refused:
                # Nothing was written. Raised here, it would make the writer undo the rest of the transaction.
                return refused

        made = database.run(write, locks=(f"{self._namespace}/{id}",)).result()
        if parts_of:
            # Those of a version that was not made, and those that a killed writer left.
            delete_parts(database, self._namespace, (parts_of,), given.made_at)
        if isinstance(made, ArtifactVersion):
            return made
        if isinstance(made, ArtifactError):
            raise made
        return _without_content(self.read(id, made))

    def _ids_text(self) -> str:
        names = ", ".join(repr(version.id) for version in self.list()[:20])
        return f"There are {names}." if names else "There are none yet."


def _without_content(found: Artifact) -> ArtifactVersion:
    fields = {name: getattr(found, name) for name in ArtifactVersion.__dataclass_fields__}
    return ArtifactVersion(**fields)


def _name(version: ArtifactVersion) -> str:
    return f"{version.id} version {version.version}"


def _check_id(id: str) -> None:
    if not isinstance(cast("object", id), str) or not re.fullmatch(ID_PATTERN, id):
        raise ArtifactError(f"id={id!r:.80}: give 1 to 60 letters, digits, '_', '.' and '-', such as 'report'")
