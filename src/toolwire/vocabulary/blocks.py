"""Content blocks that a model can receive. They are plain mappings in the shape that providers use.

Their `annotations`, `_meta` and `icons` are for clients of MCP. No model receives them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NotRequired, TypedDict, TypeGuard, cast

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.media_bytes import Media, read_media
from toolwire.vocabulary.texts.counting import count_of


class Annotations(TypedDict, total=False):
    """Hints for the host about a block, in MCP's form. Models never receive them."""

    audience: list[Literal["user", "assistant"]]
    priority: float
    lastModified: str


class TextBlock(TypedDict):
    """Text for the model, as `{"type": "text", "text": "42 rows"}`."""

    type: Literal["text"]
    text: str
    annotations: NotRequired[Annotations]
    _meta: NotRequired[dict[str, Any]]


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
    """An image for the model: its bytes in base64, or a URL.

    `{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0..."}}` or
    `{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}`
    """

    type: Literal["image"]
    source: Base64Source | UrlSource
    annotations: NotRequired[Annotations]
    _meta: NotRequired[dict[str, Any]]


class AudioBlock(TypedDict):
    """Sound for the model. Its `source` is that of an `ImageBlock`, with a media type such as `audio/wav`."""

    type: Literal["audio"]
    source: Base64Source | UrlSource
    annotations: NotRequired[Annotations]
    _meta: NotRequired[dict[str, Any]]


class TextResource(TypedDict):
    """A resource whose content is text."""

    uri: str
    text: str
    mimeType: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]


class BlobResource(TypedDict):
    """A resource whose content is bytes, in base64."""

    uri: str
    blob: str
    mimeType: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]


class ResourceBlock(TypedDict):
    """A resource with its content, in MCP's form.

    `{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}}`
    """

    type: Literal["resource"]
    resource: TextResource | BlobResource
    annotations: NotRequired[Annotations]
    _meta: NotRequired[dict[str, Any]]


class ResourceLinkBlock(TypedDict):
    """A resource that lies elsewhere, in MCP's form.

    `{"type": "resource_link", "uri": "file:///log.txt", "name": "log", "description": "The log"}`
    """

    type: Literal["resource_link"]
    uri: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]
    size: NotRequired[int]
    icons: NotRequired[list[dict[str, Any]]]
    annotations: NotRequired[Annotations]
    _meta: NotRequired[dict[str, Any]]


class ToolUseBlock(TypedDict):
    """A call that a model asks for. Any mapping with `name` and `input` is taken in its place.

    `{"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}}`
    """

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any]


ShownBlock = TextBlock | ImageBlock | AudioBlock
"""The blocks that the formats of models know."""

ContentBlock = ShownBlock | ResourceBlock | ResourceLinkBlock


def is_block(value: object) -> TypeGuard[ContentBlock]:
    """True only for an exact content block. A table row that happens to have a `type` is not one."""
    if type(value) is not dict:
        return False
    block = cast("dict[Any, Any]", value)
    size = len(block)
    if "annotations" in block:
        if not _is_annotations(block["annotations"]):
            return False
        size -= 1
    if "_meta" in block:
        if type(block["_meta"]) is not dict:
            return False
        size -= 1
    match block.get("type"):
        case "text":
            return size == 2 and type(block.get("text")) is str
        case "image" | "audio":
            return size == 2 and _is_source(block.get("source"))
        case "resource":
            return size == 2 and is_resource(block.get("resource"))
        case "resource_link":
            return _has_texts(block, ("uri", "name")) and block.keys() <= _LINK_FIELDS
        case _:
            return False


_PLAIN = frozenset({"type", "text"})
_LINK_FIELDS = frozenset(ResourceLinkBlock.__annotations__)
_RESOURCE_FIELDS = frozenset({"uri", "mimeType", "text", "blob", "_meta"})
_ANNOTATION_TYPES = {"audience": list, "priority": float | int, "lastModified": str}


def is_blocks(value: object) -> TypeGuard[list[ContentBlock]]:
    """True for a list of one or more content blocks."""
    items = cast("list[object]", value) if type(value) is list else ()
    return bool(items) and all(is_block(item) for item in items)


def data_of(blocks: Sequence[ContentBlock]) -> str | list[ContentBlock] | None:
    """Returns the data of a result that has only blocks: their text if all are text, else copies of the blocks."""
    if all(is_block(block) and block["type"] == "text" for block in blocks):
        return "\n".join(str(cast("TextBlock", block)["text"]) for block in blocks)
    return list(own(blocks)) if is_blocks(list(blocks)) else None


def block_for_model(block: ContentBlock) -> ShownBlock:
    """Returns the block as the formats of models know it, without annotations.

    A resource becomes its text, its image or its sound. Other bytes, and a link, become a line that names the resource.
    An image or a sound has its true media type and clean base64. One that no provider takes becomes a line that says
    why.
    """
    if block["type"] == "resource_link":
        named = (block.get("title") or block.get("name"), _short(block.get("uri") or ""), block.get("description"))
        return TextBlock(type="text", text="[resource] " + ", ".join(str(part) for part in named if part))
    if block["type"] == "resource":
        return _resource_for_model(cast("Mapping[str, Any]", block["resource"]))
    if block["type"] != "text":
        return _media_for_model(block)
    return block if block.keys() == _PLAIN else TextBlock(type="text", text=block["text"])


def _media_for_model(block: ImageBlock | AudioBlock) -> ShownBlock:
    source, kind = cast("Any", block.get("source")), block["type"]
    if not _is_source(source):
        # The author of the tool built it wrongly. It is named by its kind.
        return cast("ShownBlock", {"type": kind, "source": source})
    url: str = source["url"] if source["type"] == "url" else "data:"
    if url.lower().startswith(("http://", "https://")):
        return _media_block(kind, UrlSource(type="url", url=url))
    if not url.startswith("data:"):
        return TextBlock(type="text", text=f"[{kind}: {url}]")
    found = read_media(kind, {"data": url} if source["type"] == "url" else source)
    return _media_block(kind, _inline(found)) if isinstance(found, Media) else TextBlock(type="text", text=found)


def _media_block(kind: str, source: Base64Source | UrlSource) -> ImageBlock | AudioBlock:
    return ImageBlock(type="image", source=source) if kind == "image" else AudioBlock(type="audio", source=source)


def _inline(media: Media) -> Base64Source:
    return Base64Source(type="base64", media_type=media.media_type, data=media.data)


def _resource_for_model(resource: Mapping[str, Any]) -> ShownBlock:
    uri, text, blob, media_type = (resource.get(name) or "" for name in ("uri", "text", "blob", "mimeType"))
    if "text" in resource:
        return TextBlock(type="text", text=f"[resource] {_short(uri)}\n{text}")
    kind = media_type.partition("/")[0].lower()
    found = read_media(kind, {"media_type": media_type, "data": blob}) if kind in ("image", "audio") else ""
    if isinstance(found, str):
        return TextBlock(type="text", text=blob_line(resource))
    return _media_block(kind, _inline(found))


def blob_line(resource: Mapping[str, Any]) -> str:
    """Returns the line that describes a resource of bytes: its URI, its media type and its size."""
    media_type, size = resource.get("mimeType") or "of unknown type", byte_count(resource.get("blob") or "")
    return f"[resource] {_short(resource.get('uri') or '')}, {media_type}, {count_of(size, 'byte')}"


def byte_count(data: str) -> int:
    """Returns the number of bytes that base64 holds."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _short(given: object) -> str:
    """Returns the URI. The data of a `data:` URI, which may be base64, are left out."""
    uri = str(given)
    head, comma, data = uri.partition(",") if uri.startswith("data:") else (uri, "", "")
    return f"{head},[{count_of(len(data), 'character')}]" if comma else uri


def is_media(block: ContentBlock) -> bool:
    """True if a model receives the block as something else than text."""
    try:
        return block_for_model(block)["type"] != "text"
    except (KeyError, TypeError, AttributeError):
        return False


def text_of(blocks: Iterable[ContentBlock]) -> str:
    """Returns the blocks as one text, each on lines of its own. A block without text is named, as `[image]`.

    Raises:
        Unrepresentable: The author of a tool built a block wrongly.
    """
    return "\n".join(map(_block_text, blocks))


def _block_text(block: ContentBlock) -> str:
    try:
        told = block_for_model(block)
        return str(told["text"]) if told["type"] == "text" else f"[{told['type']}]"
    except (KeyError, TypeError, AttributeError) as error:
        raise Unrepresentable(f"a content block like {block!r:.80}", path="") from error


def _is_annotations(value: object) -> bool:
    if type(value) is not dict:
        return False
    annotations = cast("dict[Any, Any]", value)
    return all(
        name in _ANNOTATION_TYPES and isinstance(given, _ANNOTATION_TYPES[name]) for name, given in annotations.items()
    )


def is_resource(value: object) -> bool:
    """True for the content of a `resource` block: a URI, and text or bytes in base64."""
    if not isinstance(value, Mapping):
        return False
    resource = cast("Mapping[Any, Any]", value)
    return (
        resource.keys() <= _RESOURCE_FIELDS
        and type(resource.get("_meta", {})) is dict
        and ("text" in resource) != ("blob" in resource)
        and "uri" in resource
        and _has_texts(resource, tuple(resource.keys() - {"_meta"}))
    )


def _has_texts(fields: Mapping[Any, Any], names: tuple[str, ...]) -> bool:
    return all(type(fields.get(name)) is str for name in names)


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
        self._pieces = list(_join_texts(self._pieces))
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
    if is_plain_text(last) and is_plain_text(now):
        said, says = last["text"], now["text"]
        return [TextBlock(type="text", text=says[len(said) :]), *rest] if says.startswith(said) else None
    return None


def is_plain_text(block: object) -> TypeGuard[TextBlock]:
    """True for text that may be joined with the text before it: a text block with nothing beside its text."""
    return is_block(block) and block["type"] == "text" and block.keys() == _PLAIN


def _join_texts(pieces: Iterable[str | ContentBlock]) -> Iterator[str | ContentBlock]:
    for is_text, run in groupby(pieces, key=lambda piece: type(piece) is str):
        if is_text:
            yield "".join(cast("Iterator[str]", run))
        else:
            yield from run
