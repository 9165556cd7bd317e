"""`Cache`: keeps the results of tools that only read."""

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
"""Default lifetime of a result in seconds. A model repeats a question within a turn or two."""
ENTRIES_LIMIT = 1_000
"""Default maximum number of results. Beyond it, the least recently used ones are dropped."""
RESULT_LIMIT_BYTES = 256 * 1024
"""Default maximum size of a kept result in bytes of text. A thousand such results are 256 MB."""


@dataclass(frozen=True, slots=True)
class _CachedResult:
    result: ToolResult
    tool: Tool
    """Keeps the tool alive, so that no other tool gets its identity."""
    at: float


_READ: frozenset[Effect] = frozenset({"read"})
_Key = tuple[int, str, str, str, str]


class Cache:
    """Returns the result of an earlier call of the same tool with equal arguments for the same caller.

    It only handles tools declared as natural reads (`effects=["read"]`, `idempotent="natural"`) that receive nothing
    from the host: no bound values and no `CallContext`. Only successes are kept. Every call gets a copy with
    `metadata["is_cached"]`. Callers are compared by principal and tenant; the agent does not matter.
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
        """`ttl_s` is the lifetime of a result in seconds, 60 by default.

        `entries_limit` is the number of results kept, 1,000 by default; then the least recently used one is dropped.
        `result_limit_bytes` is the size of the largest result kept, 256 KiB of text by default. `clock` returns
        seconds.

        Raises:
            ConfigurationError: A number is not above 0.
        """
        check_above_zero("Cache", ttl_s=ttl_s, entries_limit=entries_limit, result_limit_bytes=result_limit_bytes)
        self._ttl_s = ttl_s
        self._entries_limit = entries_limit
        self._result_limit_bytes = result_limit_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._results: OrderedDict[_Key, _CachedResult] = OrderedDict()

    def __len__(self) -> int:
        return len(self._results)

    def clear(self) -> None:
        """Drops all results."""
        with self._lock:
            self._results.clear()

    async def __call__(self, call: PreparedCall, call_next: CallNext, /) -> ToolResult:
        key = _cache_key(call)
        if key is None:
            return await call_next(call)
        known = self._find(key)
        if known is not None:
            return _copy_for(known, call).with_metadata(is_cached=True)
        result = await call_next(call)
        if result.success:
            self._keep(key, call, result)
        return result

    def _find(self, key: _Key) -> ToolResult | None:
        with self._lock:
            kept = self._results.get(key)
            if kept is None:
                return None
            if self._clock() - kept.at >= self._ttl_s:
                del self._results[key]
                return None
            self._results.move_to_end(key)
            return kept.result

    def _keep(self, key: _Key, call: PreparedCall, result: ToolResult) -> None:
        try:
            if len(result.text.encode("utf-8", "replace")) > self._result_limit_bytes:
                return
            kept = _CachedResult(_copy_for(result, call), call.prepared.entry.tool, self._clock())
        except Exception:  # noqa: BLE001 - an owner's object that cannot be shown or copied is not kept
            return
        with self._lock:
            self._results[key] = kept
            self._results.move_to_end(key)
            while len(self._results) > self._entries_limit:
                self._results.popitem(last=False)


def _cache_key(call: PreparedCall) -> _Key | None:
    """Returns the key of a call, or None if the call must be made."""
    tool, effects = call.prepared.entry.tool, call.effects
    is_read = effects.idempotent == "natural" and effects.kinds == _READ
    # Arguments from a middleware are judged further inside, and a kept result would skip that. It would also skip the
    # calls and other actions that a context lends a tool.
    if not is_read or call.has_own_values or call.rewritten is not None or tool.context_parameter is not None:
        return None
    try:
        arguments = digest(call.arguments)
    except Unrepresentable:
        return None
    return id(tool), call.tool_digest, arguments, call.caller.principal, call.caller.tenant


def _copy_for(result: ToolResult, call: PreparedCall) -> ToolResult:
    """Returns a copy of the result for another call. The copy shares no mutable object."""
    data, metadata, blocks = copy.deepcopy((result.data, dict(result.metadata), result.blocks))
    return ToolResult(True, data, None, metadata, content=blocks, call=call.call)
