"""The part of a store that keeps conversations."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, cast

from toolwire.journal.conversation_info import ConversationInfo, Document, check_name
from toolwire.journal.ledger import conversations, documents
from toolwire.journal.ledger.conversation_leases import ConversationLease
from toolwire.journal.ledger.documents import DocumentSave
from toolwire.journal.ledger.parts import Parts, split
from toolwire.journal.ledger.store_database import Database
from toolwire.journal.page import Page, check_limit
from toolwire.journal.twins import async_twin
from toolwire.journal.writing_parts import delete_parts, write_parts
from toolwire.permission.approval import DecisionRefused
from toolwire.vocabulary.calls import Caller
from toolwire.vocabulary.effects import Label
from toolwire.vocabulary.errors import ConfigurationError, DocumentChanged, Unrepresentable
from toolwire.vocabulary.exact import exact_pieces
from toolwire.vocabulary.texts.lone_surrogates import utf8_bytes
from toolwire.vocabulary.values import plain_value

CONVERSATIONS_LISTED = 100
"""Default number of conversations in a list: more than a person looks through."""

DOCUMENT_LIMIT_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a document as JSON: the messages of a long conversation with images."""


class Conversations(ABC):
    """The part of a `Store` that concerns conversations."""

    @property
    @abstractmethod
    def _database(self) -> Database: ...

    def conversations(self, *, limit: int = CONVERSATIONS_LISTED, after: str | None = None) -> Page[ConversationInfo]:
        """Returns conversations, the one with the latest turn first.

        Raises:
            ConfigurationError: `limit` is not a whole number from 1, or `after` is not the cursor of a page of
                conversations.
        """
        check_limit(limit)
        database = self._database
        return database.read(
            lambda connection: conversations.infos(connection, database.sealer, limit=limit, after=after)
        )

    aconversations = async_twin(conversations)

    def document(self, conversation: str, *, caller: Caller | None = None) -> Document:
        """Returns the document of a conversation. Without one, its value is None and its version 0.

        `caller` must be of the principal and tenant to whom the conversation belongs. None: the host reads it for
        itself.

        Raises:
            DecisionRefused: `not_permitted`, or `bad_mac`: the document was changed in the database.
            ConfigurationError: The name of the conversation is not valid.
        """
        database, name = self._database, check_name(conversation)
        return database.read(
            lambda connection: documents.document(connection, database.sealer, name, caller),
            is_one_state=True,
        )

    adocument = async_twin(document)

    def save_document(self, conversation: str, value: Any, *, version: int, caller: Caller | None = None) -> int:
        """Replaces the document of a conversation, and returns its new version. Blocks until it is durable.

        `value` is in JSON types and takes at most 64 MiB as JSON. `version` is the one that was read, 0 for the first.
        `caller` is as in `document`. A new conversation belongs to it, or if it is None to callers without a principal.

        Raises:
            DocumentChanged: Someone else saved the document since; `version` of the error is the current one.
            DecisionRefused: `not_permitted`.
            ConfigurationError: The value is not in JSON types or is too large, or the name or version is not valid.
        """
        database, name, parts = self._database, check_name(conversation), _encode_document(value)
        if isinstance(cast("object", version), bool) or not isinstance(cast("object", version), int) or version < 0:
            raise ConfigurationError(f"version={version!r}: give the version of the document that you read, or 0")
        parts_of = secrets.token_hex(16) if len(parts) > 1 else ""
        save = DocumentSave(
            conversation=name, version=version + 1, caller=caller, now=database.clock(), parts_of=parts_of
        )
        return _save(database, save, parts)

    asave_document = async_twin(save_document)

    def hold_conversation(self, conversation: str, *, caller: Caller) -> Future[ConversationLease]:
        """Holds a conversation over several turns, until its lease is released. A new one belongs to `caller`.

        Another hold is refused meanwhile, also in this process. Turns of sessions are as free as without it. The lease
        ends with its object, with the store and with its process. If the process is on another host, it ends `lease_s`
        seconds (see `open`) after its last renewal.

        The future raises `DecisionRefused`: `conversation_busy` while a run holds the conversation, or another process
        works on it, or `not_permitted` if it is another principal's.

        Raises:
            ConfigurationError: The name of the conversation is not valid.
        """
        return self._database.hold_conversation(check_name(conversation), caller)

    def active_groups(self, conversation: str, *, caller: Caller) -> frozenset[str]:
        """Returns the tool groups that were active at the end of the conversation's last turn.

        None are of a conversation that is new, or another principal's.

        Raises:
            DecisionRefused: `bad_mac`: the record was changed in the database.
            ConfigurationError: The name of the conversation is not valid.
        """
        database, name = self._database, check_name(conversation)
        return database.read(lambda connection: conversations.active_groups(connection, database.sealer, name, caller))

    aactive_groups = async_twin(active_groups)

    def taints(self, conversation: str, *, caller: Caller) -> frozenset[Label]:
        """Returns the labels of the data that a conversation has read; none of one that is new or another principal's.

        Raises:
            DecisionRefused: `bad_mac`: the record was changed in the database.
            ConfigurationError: The name of the conversation is not valid.
        """
        database, name = self._database, check_name(conversation)
        return database.read(lambda connection: conversations.taints(connection, database.sealer, name, caller))

    ataints = async_twin(taints)

    def keep_groups(self, conversation: str, groups: Iterable[str], *, caller: Caller) -> Future[None]:
        """Records the active tool groups of a conversation. A new one belongs to `caller`.

        The future raises `DecisionRefused` (`not_permitted`) if the conversation is another principal's.

        Raises:
            ConfigurationError: The name of the conversation is not valid.
        """
        database, name, kept = self._database, check_name(conversation), frozenset(groups)
        now = database.clock()
        return database.run(
            lambda connection: conversations.keep_groups(connection, database.sealer, name, caller, kept, now),
            locks=(name,),
        )


def _save(database: Database, save: DocumentSave, parts: Sequence[bytes]) -> int:
    if save.parts_of:
        database.read(lambda connection: documents.check_save(connection, database.sealer, save))
        write_parts(database, Parts(owner=save.conversation, name=save.parts_of), parts, save.now)
    text = str(len(parts)).encode() if save.parts_of else parts[0]
    sealed = database.sealer.seal(text, *save.place())
    try:
        before = database.run(
            lambda connection: documents.save_document(connection, database.sealer, save, sealed),
            locks=(save.conversation,),
        ).result()
    except (DocumentChanged, DecisionRefused):
        delete_parts(database, save.conversation, (save.parts_of,), save.now)
        raise
    if save.parts_of or before:
        delete_parts(database, save.conversation, (save.parts_of, before), save.now)
    return save.version


def _encode_document(value: Any) -> Sequence[bytes]:
    """Returns the value as JSON, in parts. Other threads can run in between.

    Raises:
        ConfigurationError: It would not be read back as the same value, or it is too large.
    """
    try:
        kept = plain_value(value)
    except Unrepresentable as error:
        raise ConfigurationError(f"the document cannot be saved: {error}. Give it in JSON types") from error
    if kept != value:
        raise ConfigurationError(
            "the document cannot be saved: it holds a value, such as a tuple, a date or NaN, that JSON gives back as "
            "another. Give dicts with text keys, lists, texts, numbers, booleans and None"
        )
    text = bytearray()
    for piece in exact_pieces(kept):
        text += utf8_bytes(piece)
    if len(text) > DOCUMENT_LIMIT_BYTES:
        raise ConfigurationError(
            f"the document has {len(text):,} bytes as JSON, and {DOCUMENT_LIMIT_BYTES:,} fit: keep large values "
            "elsewhere, and their ids in the document"
        )
    return split(bytes(text))
