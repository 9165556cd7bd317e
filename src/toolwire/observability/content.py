"""Arguments and results as span attributes: JSON text, without secrets, of bounded size."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.text import cut_text, encodable_text
from toolwire.vocabulary.values import plain

CONTENT_LIMIT_BYTES = 16_384
"""Bytes of one attribute's content: collectors refuse whole batches above a few megabytes, and 64 calls may fit one."""

NOT_SHOWN = "<not recorded: the redact function failed>"

Redact = Callable[[Any], Any]
"""Takes a JSON value and gives it without what nobody may read."""

_LOG = logging.getLogger("toolwire.tracing")


def arguments_text(arguments: object, redact: Redact) -> str:
    """A call's arguments as the model gave them."""
    return content_text(arguments, redact)


def result_text(result: ToolResult, redact: Redact) -> str:
    """What a call gave: its data, or the text that a model reads of it."""
    if not result.success or (result.data is None and result.blocks):
        return content_text(result.text, redact)
    return content_text(result.data, redact)


def content_text(value: object, redact: Redact) -> str:
    """A value as JSON, as text where JSON has no word for it. Nothing at all when `redact` fails on it."""
    try:
        shown = plain(value)
    except Unrepresentable:
        shown = f"<{type(value).__name__}>"
    try:
        text = json.dumps(redact(shown), ensure_ascii=False, default=str)
    except Exception:  # noqa: BLE001 - it is its owner's code, and what it failed on may hold a secret
        _LOG.exception("the redact function of tracing failed; the content was left out")
        return NOT_SHOWN
    return cut_text(encodable_text(text), CONTENT_LIMIT_BYTES)
