"""The bytes of images and sounds: whether they are what their block says, and the text in place of those that are not.

A provider that refuses one image refuses each later request of the conversation too.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwire.vocabulary.texts.counting import count_of

IMAGE_LIMIT_CHARACTERS = 5 * 1024 * 1024
"""Maximum characters of an image in base64 for a provider. Anthropic's API takes 5 MB, and the others more."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
"""The first bytes of the images that models can see, besides WebP."""
_MODEL_TYPES = frozenset({"image/webp", "image/jpg", *(kind for _, kind in _SIGNATURES)})
_HEAD_CHARACTERS = 32
"""Characters of base64 that hold the first bytes of an image."""
_MEDIA_TYPE = re.compile(r"[a-z0-9][\w.+-]{0,60}(/[\w.+-]{1,60})?", re.IGNORECASE | re.ASCII)
_URL_SAFE = str.maketrans("-_", "+/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image or a sound that a provider accepts."""

    media_type: str
    """The media type in lower case, without parameters. That of an image is the one of its bytes."""
    data: str
    """The bytes in the standard form of base64."""


def image_type(content: bytes) -> str | None:
    """Returns the media type of an image by its first bytes; None if it is something else."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if content.startswith(signature)), None)


def image_type_of_base64(data: str) -> str | None:
    """Works as `image_type`, for the image in base64."""
    content = _decode_base64("".join(data[: 2 * _HEAD_CHARACTERS].split())[:_HEAD_CHARACTERS])
    return None if content is None else image_type(content)


def read_media(kind: str, source: Mapping[str, Any], *, is_for_model: bool = True) -> Media | str:
    """Returns the media of a source, or the text that stands in its place.

    `kind` is `image` or `audio`. `source` has the base64 as `data`, which may be a `data:` URL, and the media type as
    `media_type`. Models take no large image, and only those of four types: an image `is_for_model`, or for a client.
    """
    head, comma, after = str(source.get("data", "")).partition(",")
    is_url = bool(comma) and head.lower().startswith("data:") and head.lower().endswith(";base64")
    data = after if is_url else f"{head}{comma}{after}"
    given = str(source.get("media_type") or "") or (head[5:] if is_url else "")
    media_type = given.partition(";")[0].strip().lower()
    named = media_type if _MEDIA_TYPE.fullmatch(media_type) else "of unknown type"
    if not data.strip():
        return f"[{kind}: {named}, empty]"
    if kind == "image" and is_for_model and len(data) > IMAGE_LIMIT_CHARACTERS:
        most = IMAGE_LIMIT_CHARACTERS * 3 // 4
        return f"[{kind}: {named}, {len(data) * 3 // 4:,} bytes, which is more than {most:,}]"
    content = _decode_base64(data)
    if content is None:
        return f"[{kind}: {named}, not base64]"
    # Written anew: some providers refuse bits behind the last byte, which other readers ignore.
    text = binascii.b2a_base64(content, newline=False).decode()
    if kind != "image":
        return Media(media_type=media_type, data=text)
    true_type = image_type(content)
    is_other = media_type.startswith("image/") and named == media_type and media_type not in _MODEL_TYPES
    if true_type is None and is_other and not is_for_model:
        true_type = media_type
    if true_type is None:
        size = count_of(len(content), "byte, which is", "bytes, which are")
        return f"[{kind}: {named}, {size} not PNG, JPEG, GIF or WebP]"
    return Media(media_type=true_type, data=text)


def _decode_base64(data: str) -> bytes | None:
    """Returns the bytes of base64; None if it is something else.

    Line breaks, the alphabet for URLs and missing padding are mended.
    """
    for text in (data, _standard(data)):
        try:
            return binascii.a2b_base64(text, strict_mode=True)
        except (binascii.Error, ValueError):
            continue
    return None


def _standard(data: str) -> str:
    text = "".join(data.split()).translate(_URL_SAFE).rstrip("=")
    return text + "=" * (-len(text) % 4)
