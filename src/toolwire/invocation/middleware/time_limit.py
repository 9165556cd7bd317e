"""`TimeLimit`: limits the duration of calls by the tool's name."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import ClassVar

from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero
from toolwire.vocabulary.results import ToolResult


class TimeLimit:
    """Limits the seconds that a call may take, with all inner layers.

    These include waits for a turn and further attempts.

    The limit under a tool's own name counts before any pattern, in which `*` matches any text. The first matching
    pattern counts. A tool without a match has no limit here. A call that takes longer fails as `timeout`, or as
    `unknown_outcome` if its tool could not be stopped.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(self, limits_s: Mapping[str, float]) -> None:
        """`limits_s` maps names or patterns to seconds.

        Raises:
            ConfigurationError: A limit is not above 0.
        """
        check_above_zero("TimeLimit", **limits_s)
        self._limits_s = dict(limits_s)

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        limit_s = self._limit_s(call.tool)
        return await call_next(call if limit_s is None else call.within(limit_s))

    def _limit_s(self, tool: str) -> float | None:
        if tool in self._limits_s:
            return self._limits_s[tool]
        return next((limit_s for pattern, limit_s in self._limits_s.items() if fnmatchcase(tool, pattern)), None)
