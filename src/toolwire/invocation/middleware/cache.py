"""`Cache`: keeps what calls of tools that only look have found."""

from __future__ import annotations

import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from toolwire.definition.tool import Tool
from toolwire.invocation.middleware.onion import CallNext, PreparedCall
from toolwire.invocation.middleware.refusal import check_above_zero
from toolwire.vocabulary.effects import Effect
from toolwire.vocabulary.errors import Unrepresentable
from toolwire.vocabulary.results import ToolResult
from toolwire.vocabulary.values import digest

TTL_S = 60.0
"""Seconds that a result counts: a model asks the same thing again within a turn or two."""
ENTRIES_LIMIT = 1_000
"""Results that are kept; of more, those used least recently go."""
RESULT_LIMIT_BYTES = 256 * 1024
"""Bytes of text of the largest result that is kept: a thousand of them are 256 MB at worst."""


@dataclass(frozen=True, slots=True)
class _Kept:
    result: ToolResult
    tool: Tool
    """Held, so that no other tool gets its identity."""
    at: float


_READ: frozenset[Effect] = frozenset({"read"})
_Key = tuple[int, str, str, str, str]


class Cache:
    """Gives the result of an earlier call of the same tool with equal arguments on behalf of the same caller.

    Only of tools declared as natural reads (`effects=["read"]`, `idempotent="natural"`) to which the host gives
    nothing of its own: no bound values, no `CallContext`. Only successes are kept, and every call gets a copy, with
    `metadata["is_cached"]`. A caller is who and for which organisation, whatever the agent.
    """

    is_colourless: ClassVar[bool] = True

    def __init__(
        self,
        ttl_s: float = TTL_S,
        *,
        entries_limit: int = ENTRIES_LIMIT,
        result_limit_bytes: int = RESULT_LIMIT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A result counts for `ttl_s` seconds.

        Raises:
            ConfigurationError: a number that is not above 0.
        """
        check_above_zero("Cache", ttl_s=ttl_s, entries_limit=entries_limit, result_limit_bytes=result_limit_bytes)
        self._ttl_s = ttl_s
        self._entries_limit = entries_limit
        self._result_limit_bytes = result_limit_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._kept.clear()

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        key = _key(call)
        if key is None:
            return await call_next(call)
        known = self._find(key)
        if known is not None:
            return _copied(known, call).with_metadata(is_cached=True)
        result = await call_next(call)
        if result.success:
            self._keep(key, call, result)
        return result

    def _find(self, key: _Key) -> ToolResult | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            if self._clock() - kept.at >= self._ttl_s:
                del self._kept[key]
                return None
            self._kept.move_to_end(key)
            return kept.result

    def _keep(self, key: _Key, call: PreparedCall, result: ToolResult) -> None:
        try:
            if len(result.text.encode("utf-8", "replace")) > self._result_limit_bytes:
                return
            kept = _Kept(_copied(result, call), call.prepared.entry.tool, self._clock())
        except Exception:  # noqa: BLE001 - what cannot be shown or copied is an owner's object: it is not kept
            return
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > self._entries_limit:
                self._kept.popitem(last=False)


def _key(call: PreparedCall) -> _Key | None:
    """What must be equal; None when the call must be made."""
    tool, effects = call.prepared.entry.tool, call.effects
    is_read = effects.idempotent == "natural" and effects.kinds == _READ
    # Arguments that a middleware wrote are judged further inside, where a kept result would not come by. What a
    # context lends a tool, its calls above all, would not be done either.
    if not is_read or call.has_own_values or call.rewritten is not None or tool.context_parameter is not None:
        return None
    try:
        arguments = digest(call.arguments)
    except Unrepresentable:
        return None
    return id(tool), call.tool_digest, arguments, call.caller.principal, call.caller.tenant


def _copied(result: ToolResult, call: PreparedCall) -> ToolResult:
    """The same for another call, sharing nothing that could be changed."""
    data, metadata, blocks = copy.deepcopy((result.data, dict(result.metadata), result.blocks))
    return ToolResult(True, data, None, metadata, content=blocks, call=call.call)
