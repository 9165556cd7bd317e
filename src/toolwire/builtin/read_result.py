"""`read_result`: reads on in a result that was too long to be shown at once."""

from __future__ import annotations

from collections.abc import Callable

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import READ_RESULT
from toolwire.vocabulary.context import CallContext
from toolwire.vocabulary.kept_text import KeptText
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.cuts import page_of

DESCRIPTION = (
    "Read more of a long result. A long result is shown up to some character, with its id and the next offset: "
    "give both."
)
NOTE_BYTES = 160
"""Bytes reserved in a result for a page's own line; the page's text must fit beside it."""

Find = Callable[[str, CallContext], KeptText | None]
"""Returns the text with that id for the caller, or None."""


def read_result_tool(find: Find) -> Tool:
    """Returns the tool as models see it."""

    def read_result(id: str, offset: int, context: CallContext) -> str | ToolResult:
        kept = find(id, context)
        if kept is None:
            return ToolResult.failed(
                "invalid_arguments",
                f"There is no result {id[:64]!r} to read on in: it was dropped to make room, or it is not yours.",
                hint="If you copied the id exactly, make the call again that gave the result, with a narrower request.",
                path="id",
            )
        if offset >= len(kept.text):
            return ToolResult.failed(
                "invalid_arguments",
                f"offset={offset} is beyond the end: the result has {len(kept.text):,} characters.",
                hint="You have read all of it if you began at 0 and gave the offset shown each time.",
                path="offset",
            )
        return _page(kept, offset)

    return from_schema(
        name=READ_RESULT,
        description=DESCRIPTION,
        input_schema={
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The result's id"},
                "offset": {
                    "type": "integer",
                    "description": "The character to go on from",
                    "minimum": 0,
                    "default": 0,
                },
            },
            "required": ["id"],
            "additionalProperties": False,
        },
        function=read_result,
        effects=["read"],
        idempotent="natural",
    )


def _page(kept: KeptText, offset: int) -> str:
    page = page_of(kept.text, offset, max(kept.page_bytes - NOTE_BYTES, kept.page_bytes // 2, 1))
    end, total = offset + len(page), len(kept.text)
    how = f"read on with offset={end}" if end < total else "the end"
    shown = page.removesuffix("\n")
    return f"{shown}\n[characters {offset:,} to {end:,} of {total:,}; {how}]"
