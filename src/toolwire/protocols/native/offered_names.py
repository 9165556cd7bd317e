"""The names of tools in a result's error as the provider was given them: the model knows a tool by no other name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from toolwire.protocols.tool_names import provider_name
from toolwire.vocabulary.failures import FailureKind
from toolwire.vocabulary.results import ToolResult

_OF_THE_TOOL: frozenset[FailureKind] = frozenset({"tool_error", "invalid_result"})
"""Failures whose text is the tool's own. It may name a file or a page as a tool is named."""


def with_offered_names(results: Sequence[ToolResult]) -> list[ToolResult]:
    """Returns the results with the provider's name for each tool that an error names: `math_dot_gcd` for `math.gcd`."""
    return [_with_offered_names(result) for result in results]


def name_as_offered(text: str, names: Iterable[str]) -> str:
    """Returns the text with the provider's name in place of each of these names of tools."""
    written = {name: provider_name(name) for name in names if name and provider_name(name) != name}
    if not written:
        return text
    any_name = "|".join(re.escape(name) for name in sorted(written, key=len, reverse=True))
    return re.sub(rf"(?<![\w.])(?:{any_name})(?!\w)", lambda found: written[found[0]], text)


def _with_offered_names(result: ToolResult) -> ToolResult:
    failure = result.failure
    if failure is None or failure.kind in _OF_THE_TOOL or result.call is None:
        return result
    listed: object = failure.data.get("tools")
    # A tool may give a failure with data of its own.
    others = cast("list[object]", listed) if isinstance(listed, list) else []
    names = [result.call.name, *(name for name in others if isinstance(name, str))]
    error, hint = name_as_offered(result.error or "", names), name_as_offered(failure.hint, names)
    return replace(result, error=error, failure=replace(failure, hint=hint))
