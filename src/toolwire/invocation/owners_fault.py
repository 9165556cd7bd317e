"""Failures that only the owner of a tool can fix. The model reads the event, and the owner reads the correction."""

from __future__ import annotations

import logging
from typing import Any

from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.results import ToolResult

_LOG = logging.getLogger("toolwire.tools")


def owners_fault(
    kind: FailureKind,
    message: str,
    *,
    for_owner: str,
    call: ToolCall | None,
    hint: str = "",
    data: dict[str, Any] | None = None,
    **more: Any,
) -> ToolResult:
    """Returns a failed result. The sentence for the owner is in the log `toolwire.tools` and in `failure.data`.

    Its key in `failure.data` is `for_owner`.
    """
    _LOG.warning("%s For its owner: %s", message, for_owner)
    return ToolResult.failed(kind, message, hint=hint, data={**(data or {}), "for_owner": for_owner}, call=call, **more)
