"""The content of a user's prompt: texts and content blocks, as one protocol takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, cast

from toolwire.vocabulary.blocks import ContentBlock, ShownBlock, TextBlock, block_for_model, is_block
from toolwire.vocabulary.errors import ConfigurationError

PromptContent = str | Sequence[str | ContentBlock]
"""A prompt of the user: a text, or a list of texts and content blocks."""

_Part = TypeVar("_Part")


def prompt_parts(content: PromptContent, protocol: str, write: Callable[[ShownBlock], _Part | None]) -> list[_Part]:
    """Returns each text and block of a prompt as `write` gives it.

    Raises:
        ConfigurationError: The prompt is empty, a part is blank or no block, or `write` gives None for it.
    """
    given = cast("Any", [content] if isinstance(content, str) else content)
    if not isinstance(given, list | tuple) or not given:
        _refuse_prompt(
            f"a prompt is a text or a list of texts and content blocks with at least one, not {content!r:.80}"
        )
    return [_write_part(item, at, protocol, write) for at, item in enumerate(cast("list[Any]", given))]


def text_prompt(content: PromptContent, protocol: str) -> list[dict[str, Any]]:
    """Returns the message of the user for a protocol whose messages hold text alone. Parts are on lines of their own.

    Raises:
        ConfigurationError: As in `prompt_parts`; an image and a sound have no text.
    """
    parts = prompt_parts(content, protocol, lambda block: block["text"] if block["type"] == "text" else None)
    return [{"role": "user", "content": "\n".join(parts)}]


def _write_part(item: Any, at: int, protocol: str, write: Callable[[ShownBlock], _Part | None]) -> _Part:
    block: Any = TextBlock(type="text", text=item) if isinstance(item, str) else item
    if not is_block(block):
        _refuse_prompt(f"prompt[{at}] is {item!r:.80}: give a text, or a content block such as an ImageBlock")
    block_shown = block_for_model(block)
    if block_shown["type"] == "text" and not block_shown["text"].strip():
        _refuse_prompt(f"prompt[{at}] is a blank text, which providers refuse: leave it out")
    # `block_for_model` has a line of text in place of media that no provider takes. A user must learn of that before it
    # is sent.
    is_lost = block_shown["type"] == "text" and (
        block["type"] in ("image", "audio") or "blob" in block.get("resource", ())
    )
    part = None if is_lost else write(block_shown)
    if part is None:
        reason = f": {block_shown['text']}" if block_shown["type"] == "text" else ""
        refused = f"the protocol {protocol!r} cannot take this {block['type']} block{reason}"
        _refuse_prompt(f"prompt[{at}]: {refused}; give a text in its place")
    return part


def _refuse_prompt(message: str) -> NoReturn:
    raise ConfigurationError(message)
