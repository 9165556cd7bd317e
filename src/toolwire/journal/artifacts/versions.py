"""The versions of artifacts in the database: read, and written once each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, and_, select, update

from toolwire.journal.artifacts.artifact import Artifact, ArtifactConflict, ArtifactError, ArtifactVersion
from toolwire.journal.database.driver import insert_new
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import ARTIFACT_VERSIONS, ARTIFACTS
from toolwire.journal.ledger.parts import Parts, join_parts
from toolwire.vocabulary.texts.lone_surrogates import utf8_text

_VERSIONS = ARTIFACT_VERSIONS.c
_IS_CURRENT = and_(
    ARTIFACTS.c.namespace == _VERSIONS.namespace,
    ARTIFACTS.c.artifact_id == _VERSIONS.artifact_id,
    ARTIFACTS.c.head == _VERSIONS.version,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version that is to be written.

    Attributes:
        namespace: The namespace of the artifact.
        info: The version; its number is the current one plus 1.
        key: The idempotency key of the call that makes it; empty without one.
        parts_of: The name of the parts that hold the content; empty if the row holds it.
    """

    namespace: str
    info: ArtifactVersion
    key: str
    parts_of: str

    def place(self, column: str) -> tuple[str, ...]:
        """Returns the place to which `info` or `content` is sealed."""
        return _version_place(self.namespace, self.info.id, self.info.version, self.parts_of, column)


def write_version(connection: Connection, sealer: Sealer, new: NewVersion, content: bytes) -> int | None:
    """Writes a version if it follows the current one. Returns None, or the number of a version with the same key.

    `content` is sealed.

    Raises:
        ArtifactConflict: The current version is another one, or a first version exists already.
        ArtifactError: The key made a version of another artifact.
    """
    info = new.info
    made = version_by_key(connection, new.namespace, info.id, new.key)
    if made is None and _move_head(connection, new):
        values = {"namespace": new.namespace, "artifact_id": info.id, "version": info.version, "made_at": info.made_at}
        sealed = sealer.seal(json.dumps(asdict(info)).encode(), *new.place("info"))
        more = {"key": new.key or None, "parts_of": new.parts_of, "info": sealed, "content": content}
        connection.execute(ARTIFACT_VERSIONS.insert().values(**values, **more))
        return None
    # Another process may have made the same call meanwhile: then its version counts.
    made = made if made is not None else version_by_key(connection, new.namespace, info.id, new.key)
    if made is not None:
        return made
    current = head(connection, new.namespace, info.id)
    if info.version == 1:
        message = f"artifact {info.id!r} exists already, at version {current}: rewrite or update it, or take another id"
    else:
        message = f"artifact {info.id!r} is at version {current}, not {info.version - 1}: read it, and change that"
    raise ArtifactConflict(message, version=current)


def version_by_key(connection: Connection, namespace: str, id: str, key: str) -> int | None:
    """Returns the version that the call with this key made, or None.

    Raises:
        ArtifactError: The key made a version of another artifact.
    """
    if not key:
        return None
    query = select(_VERSIONS.artifact_id, _VERSIONS.version)
    row = connection.execute(query.where(_VERSIONS.namespace == namespace, _VERSIONS.key == key)).one_or_none()
    if row is not None and row.artifact_id != id:
        raise ArtifactError(f"the key {key!r} made a version of artifact {row.artifact_id!r}: give each call its own")
    return None if row is None else row.version


def head(connection: Connection, namespace: str, id: str) -> int:
    """Returns the number of the current version; 0 without one."""
    of = and_(ARTIFACTS.c.namespace == namespace, ARTIFACTS.c.artifact_id == id)
    return connection.execute(select(ARTIFACTS.c.head).where(of)).scalar() or 0


def newest(connection: Connection, sealer: Sealer, namespace: str, id: str) -> ArtifactVersion:
    """Returns the current version of an artifact that exists, without its content."""
    of = and_(_VERSIONS.namespace == namespace, _VERSIONS.artifact_id == id)
    return _list_versions(connection, sealer, select(*_WITHOUT_CONTENT).join(ARTIFACTS, _IS_CURRENT).where(of))[0]


def read_version(connection: Connection, sealer: Sealer, namespace: str, id: str, version: int) -> Artifact | None:
    """Returns a version with its content, or None.

    Raises:
        DecisionRefused: `bad_mac`: it was changed in the database.
    """
    of = and_(_VERSIONS.namespace == namespace, _VERSIONS.artifact_id == id, _VERSIONS.version == version)
    row = connection.execute(select(ARTIFACT_VERSIONS).where(of)).one_or_none()
    if row is None:
        return None
    content = sealer.open(row.content, *_version_place(namespace, id, version, row.parts_of, "content"))
    if row.parts_of:
        parts = Parts(owner=namespace, name=row.parts_of)
        content = join_parts(connection, sealer, parts, count=int(content), what=f"artifact {id!r}")
    return Artifact(**_fields(sealer, row), content=utf8_text(content))


def history(connection: Connection, sealer: Sealer, namespace: str, id: str) -> list[ArtifactVersion]:
    """Returns the versions of an artifact, oldest first."""
    of = and_(_VERSIONS.namespace == namespace, _VERSIONS.artifact_id == id)
    return _list_versions(connection, sealer, select(*_WITHOUT_CONTENT).where(of).order_by(_VERSIONS.version))


def heads(connection: Connection, sealer: Sealer, namespace: str) -> list[ArtifactVersion]:
    """Returns the current version of each artifact, by id."""
    query = select(*_WITHOUT_CONTENT).join(ARTIFACTS, _IS_CURRENT).where(_VERSIONS.namespace == namespace)
    return sorted(_list_versions(connection, sealer, query), key=lambda version: version.id)


_WITHOUT_CONTENT = (_VERSIONS.namespace, _VERSIONS.artifact_id, _VERSIONS.version, _VERSIONS.parts_of, _VERSIONS.info)


def _list_versions(connection: Connection, sealer: Sealer, query: Any) -> list[ArtifactVersion]:
    return [ArtifactVersion(**_fields(sealer, row)) for row in connection.execute(query)]


def _fields(sealer: Sealer, row: Any) -> dict[str, Any]:
    place = _version_place(row.namespace, row.artifact_id, row.version, row.parts_of, "info")
    return json.loads(sealer.open(row.info, *place))


def _version_place(namespace: str, id: str, version: int, parts_of: str, column: str) -> tuple[str, ...]:
    return "artifact_versions", column, namespace, id, str(version), parts_of


def _move_head(connection: Connection, new: NewVersion) -> bool:
    """Moves the head to the new version, if it is at the one before."""
    named = {"namespace": new.namespace, "artifact_id": new.info.id}
    if new.info.version == 1:
        first = insert_new(connection, ARTIFACTS).values(**named, head=1)
        return connection.execute(first.execution_options(preserve_rowcount=True)).rowcount == 1
    of = and_(ARTIFACTS.c.namespace == new.namespace, ARTIFACTS.c.artifact_id == new.info.id)
    moved = update(ARTIFACTS).where(of, ARTIFACTS.c.head == new.info.version - 1).values(head=new.info.version)
    return connection.execute(moved).rowcount == 1
