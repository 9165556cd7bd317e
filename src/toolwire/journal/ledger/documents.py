"""The documents of conversations.

A large document is written in parts, each in a transaction of its own, so that other records are written in between.
Its last transaction compares the version, and makes the document refer to the new parts. Until then readers see the
document before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from toolwire.journal.conversation_info import Document, refuse_other
from toolwire.journal.database.sealing import Sealer
from toolwire.journal.database.tables import CONVERSATIONS, DOCUMENTS
from toolwire.journal.ledger.conversations import lock_conversation, state_of
from toolwire.journal.ledger.parts import Parts, join_parts
from toolwire.vocabulary.calls import NOBODY, Caller
from toolwire.vocabulary.errors import DocumentChanged
from toolwire.vocabulary.texts.lone_surrogates import utf8_text


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSave:
    """One attempt to save a document."""

    conversation: str
    version: int
    """The version that the document gets."""
    caller: Caller | None
    now: float
    parts_of: str = ""
    """Random text that the parts of this save carry; empty for a document in one piece."""

    def place(self) -> tuple[str, ...]:
        """Returns the place to which the document is sealed: a document in parts does not open as one in one piece."""
        return _document_place(self.conversation, self.version, self.parts_of)


def document(connection: Connection, sealer: Sealer, conversation: str, caller: Caller | None) -> Document:
    """Returns the document of a conversation, at version 0 if it has none.

    Raises:
        DecisionRefused: `not_permitted`, or `bad_mac`: the document was changed in the database.
    """
    _refuse_reader(connection, sealer, conversation, caller)
    row = connection.execute(select(DOCUMENTS).where(DOCUMENTS.c.conversation == conversation)).one_or_none()
    if row is None:
        return Document(value=None, version=0, saved_at=0.0)
    text = sealer.open(row.document, *_document_place(conversation, row.version, row.parts_of))
    if row.parts_of:
        parts = Parts(owner=conversation, name=row.parts_of)
        text = join_parts(connection, sealer, parts, count=int(text), what=f"the document of {conversation!r}")
    return Document(value=json.loads(utf8_text(text)), version=row.version, saved_at=row.saved_at)


def check_save(connection: Connection, sealer: Sealer, save: DocumentSave) -> None:
    """Refuses a save early, before its parts are written. `save_document` checks it again.

    Raises:
        DocumentChanged: The document has another version.
        DecisionRefused: `not_permitted`.
    """
    _refuse_reader(connection, sealer, save.conversation, save.caller)
    _current(connection, save)


def save_document(connection: Connection, sealer: Sealer, save: DocumentSave, sealed: bytes) -> str:
    """Replaces the document of the version before. Returns the `parts_of` of the document that it replaced.

    Raises:
        DocumentChanged: The document has another version.
        DecisionRefused: `not_permitted`.
    """
    owner = lock_conversation(connection, sealer, save.conversation, save.caller or NOBODY, save.now).caller
    if save.caller is not None:
        refuse_other(save.conversation, owner, save.caller)
    before = _current(connection, save)
    values = {"version": save.version, "saved_at": save.now, "parts_of": save.parts_of, "document": sealed}
    if before is None:
        connection.execute(insert(DOCUMENTS).values(conversation=save.conversation, **values))
        return ""
    connection.execute(update(DOCUMENTS).where(DOCUMENTS.c.conversation == save.conversation).values(values))
    return before


def _refuse_reader(connection: Connection, sealer: Sealer, conversation: str, caller: Caller | None) -> None:
    if caller is None:
        return
    query = select(CONVERSATIONS.c.state).where(CONVERSATIONS.c.conversation == conversation)
    state = connection.execute(query).scalar_one_or_none()
    if state is not None:
        refuse_other(conversation, state_of(sealer, conversation, state).caller, caller)


def _current(connection: Connection, save: DocumentSave) -> str | None:
    """Returns the `parts_of` of the document that the save replaces; None if it is the first."""
    columns = select(DOCUMENTS.c.version, DOCUMENTS.c.parts_of)
    row = connection.execute(columns.where(DOCUMENTS.c.conversation == save.conversation)).one_or_none()
    current = row.version if row else 0
    if current != save.version - 1:
        raise DocumentChanged(save.conversation, given=save.version - 1, version=current)
    return row.parts_of if row else None


def _document_place(conversation: str, version: int, parts_of: str) -> tuple[str, ...]:
    return "documents", conversation, str(version), *([parts_of] if parts_of else ())
