"""`TimeLimit`: how long calls may take, by the tool's name."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import ClassVar

from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero
from toolwire.vocabulary.results import ToolResult


class TimeLimit:
    """Seconds that a call may take with everything that is further inside: waiting for a turn, further attempts.

    A tool's own name counts before a pattern (`*` stands for any text), of patterns the first one that fits; a tool
    that none fits has no limit by this. A call that takes longer fails as `timeout`, or as `unknown_outcome` when its
    tool could not be stopped.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(self, limits_s: Mapping[str, float]) -> None:
        """`limits_s` are seconds by name or pattern.

        Raises:
            ConfigurationError: a limit that is not above 0.
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
