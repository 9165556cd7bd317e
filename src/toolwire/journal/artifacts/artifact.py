"""Artifacts: texts that models and people work on, with every version kept."""

from __future__ import annotations

from dataclasses import dataclass

from toolwire.vocabulary.errors import ToolwireError

ARTIFACT_LIMIT_BYTES = 4 * 1024 * 1024
"""Maximum bytes of one version as UTF-8. A longer text is too large for a model to work on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactVersion:
    """One version of an artifact, without its content.

    Attributes:
        id: The id of the artifact in its namespace.
        version: The number of the version, from 1.
        title: A title for people.
        content_type: The media type, such as `text/markdown`.
        size_bytes: Bytes of the content as UTF-8.
        sha256: Digest of the content as UTF-8, in hex.
        made_at: Time at which it was made, in seconds since the epoch.
        score: For an update, how alike the replaced text and the wanted one are: 100 if they are equal. Else None.
        replaced: For an update, the replaced text if it was not equal to the wanted one. Else empty.
    """

    id: str
    version: int
    title: str
    content_type: str
    size_bytes: int
    sha256: str
    made_at: float
    score: float | None = None
    replaced: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(ArtifactVersion):
    """One version of an artifact with its content.

    Attributes:
        content: The text.
    """

    content: str


class ArtifactError(ToolwireError):
    """An artifact could not be read or changed as asked. Nothing was written. The message is fit for a model."""


class ArtifactLimit(ArtifactError):
    """The work on a text takes more time than its size allows. Nothing was written. The message says what to narrow."""


class ArtifactConflict(ArtifactError):
    """The artifact has another version than the one given, or it exists already. Nothing was written.

    Attributes:
        version: The current version; 0 if the artifact does not exist.
    """

    def __init__(self, message: str, *, version: int) -> None:
        super().__init__(message)
        self.version = version
