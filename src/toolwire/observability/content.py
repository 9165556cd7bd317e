"""Arguments and results as span attributes: JSON text of limited size, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.texts.cuts import cut_text
from toolwire.vocabulary.texts.lone_surrogates import encodable_text
from toolwire.vocabulary.values import plain_value

CONTENT_LIMIT_BYTES = 16_384
"""Maximum bytes of one attribute. Collectors refuse batches above a few megabytes, and 64 calls should fit into one."""

NOT_SHOWN = "<not recorded: the redact function failed>"

Redact = Callable[[Any], Any]
"""Takes a JSON value and returns it without confidential parts."""

_LOG = logging.getLogger("toolwire.tracing")


def result_text(result: ToolResult, redact: Redact) -> str:
    """Returns the text of a result: its data, or the text for the model if it failed or has only content blocks."""
    if not result.success or (result.data is None and result.blocks):
        return content_text(result.text, redact)
    return content_text(result.data, redact)


def content_text(value: object, redact: Redact) -> str:
    """Returns a value as JSON text. A value without a JSON form becomes the name of its type.

    If `redact` fails on the value, the text says only that.
    """
    try:
        shown = plain_value(value)
    except Unrepresentable:
        shown = f"<{type(value).__name__}>"
    try:
        text = json.dumps(redact(shown), ensure_ascii=False, default=str)
    except Exception:  # noqa: BLE001 - the host's code, and the value may hold a secret
        _LOG.exception("the redact function of tracing failed; the content was left out")
        return NOT_SHOWN
    return cut_text(encodable_text(text), CONTENT_LIMIT_BYTES)
