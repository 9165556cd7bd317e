"""Images and sounds of a tool's result, as providers take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from toolwire.vocabulary.content import ContentBlock

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The media types of images that every provider takes inline."""

_SOUND_FORMATS: dict[str, Literal["wav", "mp3"]] = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """Media carried inline."""

    media_type: str
    """As `image/png`."""
    data: str
    """In base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """Sound carried inline."""

    format: Literal["wav", "mp3"]
    """What it is encoded in."""
    data: str
    """In base64."""


def inline(block: ContentBlock) -> Inline | None:
    """The media of a block that carries them; None for text and for what lies elsewhere."""
    source = _source(block)
    media_type, data = source.get("media_type"), source.get("data")
    if source.get("type") != "base64" or not isinstance(media_type, str) or not isinstance(data, str):
        return None
    return Inline(media_type=media_type, data=data)


def linked(block: ContentBlock) -> str | None:
    """Where the media of a block lie; None for text and for what is carried inline."""
    source = _source(block)
    url = source.get("url")
    return url if source.get("type") == "url" and isinstance(url, str) else None


def data_url(block: ContentBlock) -> str | None:
    """The address of an image: where it lies, or itself as a `data:` address. None where no provider would take it."""
    found = inline(block)
    if found is None:
        return linked(block)
    return f"data:{found.media_type};base64,{found.data}" if found.media_type in IMAGE_TYPES else None


def audio_data(block: ContentBlock) -> Sound | None:
    """An inline sound as WAV or MP3; None for anything else."""
    found = inline(block) if block["type"] == "audio" else None
    kind = None if found is None else _SOUND_FORMATS.get(found.media_type)
    return None if found is None or kind is None else Sound(format=kind, data=found.data)


def _source(block: ContentBlock) -> Mapping[str, Any]:
    # A tool's own blocks are whatever its author made of them.
    source = cast("Any", block.get("source"))
    return cast("Mapping[str, Any]", source) if isinstance(source, Mapping) else {}
