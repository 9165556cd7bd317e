"""The images and sounds of a tool's result, in the forms that providers accept.

The blocks come from `shown`, which has read their bytes: an image is one that every provider accepts inline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolwire.vocabulary.blocks import ShownBlock
from toolwire.vocabulary.media_bytes import Media

_SOUND_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def inline(block: ShownBlock) -> Media | None:
    """Returns the inline media of a block. None for text, and for media given by a URL."""
    source = _source(block)
    media_type, data = source.get("media_type"), source.get("data")
    if source.get("type") != "base64" or not isinstance(media_type, str) or not isinstance(data, str):
        return None
    return Media(media_type=media_type, data=data)


def media_url(block: ShownBlock) -> str | None:
    """Returns the URL of the block's media. None for text, and for inline media."""
    source = _source(block)
    url = source.get("url")
    return url if source.get("type") == "url" and isinstance(url, str) else None


def data_url(block: ShownBlock) -> str | None:
    """Returns the URL of an image, or a `data:` URL for an inline image. None if it is neither."""
    found = inline(block)
    return media_url(block) if found is None else f"data:{found.media_type};base64,{found.data}"


def audio_data(block: ShownBlock) -> dict[str, str] | None:
    """Returns the data and the format of an inline sound in WAV or MP3. None for any other block."""
    found = inline(block) if block["type"] == "audio" else None
    kind = None if found is None else _SOUND_FORMATS.get(found.media_type)
    return None if found is None or kind is None else {"data": found.data, "format": kind}


def _source(block: ShownBlock) -> Mapping[str, Any]:
    # The author of a tool can put anything into its blocks.
    source = cast("Any", block.get("source"))
    return cast("Mapping[str, Any]", source) if isinstance(source, Mapping) else {}
