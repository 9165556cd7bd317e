"""Large values in parts.

Each part is written in a transaction of its own, so that other records are written in between. A row of another table
refers to the parts when all are there; until then they are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, or_, select

from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import ARTIFACT_VERSIONS, DOCUMENT_PARTS, DOCUMENTS
from toolwire.permission.approval import DecisionRefused

PART_BYTES = 512 * 1024
"""Bytes in one transaction. Larger parts hold up other records longer, and smaller ones sync the disk more often."""

ABANDONED_S = 86_400.0
"""Seconds after which parts without a referring row are deleted: a day. The process that wrote them died."""

DELETED_AT_ONCE = 2
"""Parts deleted per transaction: a few milliseconds' work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of one value.

    Attributes:
        owner: The conversation or namespace to which the value belongs.
        name: Random text that these parts carry.
    """

    owner: str
    name: str

    def place(self, number: int) -> tuple[str, ...]:
        """Returns the place to which one part is sealed."""
        return "document_parts", self.owner, self.name, str(number)


def split(text: bytes) -> Sequence[bytes]:
    """Returns the text in parts of `PART_BYTES`."""
    return [text[start : start + PART_BYTES] for start in range(0, len(text), PART_BYTES)]


def write_part(connection: Connection, parts: Parts, number: int, sealed: bytes, now: float) -> None:
    """Writes one part. `sealed` is bound to the part's place."""
    values = {"conversation": parts.owner, "parts_of": parts.name, "number": number}
    connection.execute(insert(DOCUMENT_PARTS).values(**values, written_at=now, data=sealed))


def join_parts(connection: Connection, sealer: Sealer, parts: Parts, *, count: int, what: str) -> bytes:
    """Returns the value.

    Raises:
        DecisionRefused: `bad_mac`: a part is missing or was changed.
    """
    columns = DOCUMENT_PARTS.c
    same = and_(columns.conversation == parts.owner, columns.parts_of == parts.name)
    rows = connection.execute(select(columns.data).where(same).order_by(columns.number)).scalars()
    opened = [sealer.open(data, *parts.place(number)) for number, data in enumerate(rows)]
    if len(opened) != count:
        raise DecisionRefused("bad_mac", f"{what} lacks parts that were saved")
    return b"".join(opened)


def delete_parts(connection: Connection, owner: str, names: Sequence[str], now: float) -> int:
    """Deletes some parts to which nothing refers, and returns their number.

    These are the parts of these names, and abandoned ones of any owner.
    """
    columns = DOCUMENT_PARTS.c
    ours = and_(columns.conversation == owner, columns.parts_of.in_(names))
    # The part 0 of a value is deleted last. Until then the value is found by it.
    abandoned = and_(columns.number == 0, columns.written_at < now - ABANDONED_S)
    query = select(columns.conversation, columns.parts_of).where(ours | abandoned, ~_is_referred_to()).limit(1)
    found = connection.execute(query).one_or_none()
    if found is None:
        return 0
    these = and_(columns.conversation == found.conversation, columns.parts_of == found.parts_of)
    last = select(columns.number).where(these).order_by(columns.number.desc()).limit(DELETED_AT_ONCE)
    return connection.execute(delete(DOCUMENT_PARTS).where(these, columns.number.in_(last))).rowcount


def _is_referred_to() -> ColumnElement[bool]:
    columns, document, artifact = DOCUMENT_PARTS.c, DOCUMENTS.c, ARTIFACT_VERSIONS.c
    return or_(
        exists().where(document.conversation == columns.conversation, document.parts_of == columns.parts_of),
        exists().where(artifact.namespace == columns.conversation, artifact.parts_of == columns.parts_of),
    )
