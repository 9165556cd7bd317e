"""Content blocks that a model can receive. They are plain mappings in the shape that providers use."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypedDict, TypeGuard, cast


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


class ToolUseBlock(TypedDict):
    """A call that a model asks for. Any mapping with `name` and `input` is taken in its place."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


ContentBlock = TextBlock | ImageBlock | AudioBlock


def is_block(value: object) -> TypeGuard[ContentBlock]:
    """True only for an exact content block. A table row that happens to have a `type` is not one."""
    if type(value) is not dict:
        return False
    block = cast("dict[Any, Any]", value)
    match block.get("type"):
        case "text":
            return len(block) == 2 and type(block.get("text")) is str
        case "image" | "audio":
            return len(block) == 2 and _is_source(block.get("source"))
        case _:
            return False


def is_blocks(value: object) -> TypeGuard[list[ContentBlock]]:
    """True for a list of one or more content blocks."""
    items = cast("list[object]", value) if type(value) is list else ()
    return bool(items) and all(is_block(item) for item in items)


def _is_source(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    source = cast("Mapping[Any, Any]", value)
    names = ("url",) if source.get("type") == "url" else ("media_type", "data")
    return source.get("type") in ("url", "base64") and all(type(source.get(name)) is str for name in names)


class Content:
    """Collects content blocks in order. Consecutive pieces of text become one block."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str | ContentBlock] = []

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def extend(self, pieces: Iterable[str | ContentBlock]) -> None:
        """Adds pieces at the end. A string joins the string before it; a block stays separate."""
        self._pieces.extend(pieces)

    def replace(self, blocks: Iterable[ContentBlock]) -> None:
        """Replaces all earlier content."""
        self._pieces = list(blocks)

    def blocks(self) -> list[ContentBlock]:
        """Returns copies of all blocks."""
        # Stores the joined pieces: joining all of them again for each chunk would take quadratic time.
        self._pieces = list(_joined(self._pieces))
        return [TextBlock(type="text", text=piece) if type(piece) is str else own(piece) for piece in self._pieces]


def own(block: Any) -> Any:
    """Copies a block, because the tool may keep changing its own."""
    return copy.deepcopy(block)


def new_blocks(before: Sequence[ContentBlock], after: Sequence[ContentBlock]) -> list[ContentBlock] | None:
    """Returns the part of `after` that extends `before`; None if `after` does not start with `before`."""
    if not before:
        return list(after)
    end = len(before) - 1
    if len(after) <= end or list(after[:end]) != list(before[:end]):
        return None
    last, now, rest = before[end], after[end], list(after[end + 1 :])
    if last == now:
        return rest
    if is_block(last) and is_block(now) and last["type"] == "text" and now["type"] == "text":
        said, says = last["text"], now["text"]
        return [TextBlock(type="text", text=says[len(said) :]), *rest] if says.startswith(said) else None
    return None


def _joined(pieces: Iterable[str | ContentBlock]) -> Iterator[str | ContentBlock]:
    for is_text, run in groupby(pieces, key=_is_text):
        if is_text:
            yield "".join(cast("Iterator[str]", run))
        else:
            yield from run


def _is_text(piece: object) -> bool:
    return type(piece) is str
