"""Content blocks: what a model can be shown. Plain mappings, the shape providers use."""

from __future__ import annotations

from typing import Literal, TypedDict


class TextBlock(TypedDict):
    """Text for the model."""

    type: Literal["text"]
    text: str


class Base64Source(TypedDict):
    """Media carried inline."""

    type: Literal["base64"]
    media_type: str
    data: str


class UrlSource(TypedDict):
    """Media that lies elsewhere."""

    type: Literal["url"]
    url: str


class ImageBlock(TypedDict):
    """An image for the model."""

    type: Literal["image"]
    source: Base64Source | UrlSource


class AudioBlock(TypedDict):
    """Sound for the model."""

    type: Literal["audio"]
    source: Base64Source | UrlSource


ContentBlock = TextBlock | ImageBlock | AudioBlock
