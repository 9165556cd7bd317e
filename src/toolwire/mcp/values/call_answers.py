"""Answers of servers to tool calls that the SDK would refuse as a whole, although most of them can be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

from pydantic import ValidationError

from toolwire.mcp.convert import block_of, items_of
from toolwire.mcp.values.call_results import mcp_block
from toolwire.vocabulary.blocks import ContentBlock, shown
from toolwire.vocabulary.work_clock import WorkClock

Fits = Callable[[Mapping[str, Any]], bool]
"""Returns True if the SDK reads an answer."""


def readable_answer(answer: Mapping[str, Any], fits: Fits) -> dict[str, Any]:
    """Returns the answer without the parts that the SDK refuses.

    A block that it does not know becomes its type as text, and missing content no blocks. If the time is over, that is
    done with all further blocks. A value of structured content that must be an object is put under `result`. What is no
    answer to a call stays as it is.
    """
    if answer.keys().isdisjoint({"content", "structuredContent", "isError"}):
        return dict(answer)
    found = {name: value for name, value in answer.items() if value is not None}
    clock = WorkClock()
    found["content"] = [
        _type_as_text(block_of(item)) if clock.is_over else _readable_block(item, fits)
        for item in items_of(answer.get("content"))
    ]
    for name, mended in (("structuredContent", {"result": found.get("structuredContent")}), ("_meta", {})):
        if name in found and not fits({"content": [], name: found[name]}):
            found[name] = mended
    return found


def _readable_block(item: Any, fits: Fits) -> Any:
    if fits({"content": [item]}):
        return item
    block = block_of(item)
    for candidate in (block, {name: value for name, value in block.items() if name != "annotations"}):
        # The block's own values may be wrong, such as a priority of 7.
        with suppress(ValidationError):
            known = mcp_block(cast("ContentBlock", candidate)).model_dump(by_alias=True, mode="json", exclude_none=True)
            if fits({"content": [known]}):
                return known
    # This revision of the protocol does not know the block.
    return _type_as_text(block)


def _type_as_text(block: ContentBlock) -> dict[str, str]:
    told = shown(block)
    return {"type": "text", "text": told["text"] if told["type"] == "text" else f"[{told['type']}]"}
