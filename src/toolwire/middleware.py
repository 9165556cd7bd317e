"""What may stand around the execution of calls, ready to use: `toolwire.middleware`. See `docs/middleware.md`."""

from toolwire.invocation.middleware.cache import Cache
from toolwire.invocation.middleware.circuit_breaker import CircuitBreaker
from toolwire.invocation.middleware.concurrency import Concurrency
from toolwire.invocation.middleware.keys import Key, by_tool
from toolwire.invocation.middleware.onion import CallMiddleware, CallNext, PreparedCall, colourless
from toolwire.invocation.middleware.rate_limit import RateLimit
from toolwire.invocation.middleware.refusal import is_transport_failure
from toolwire.invocation.middleware.retry import Retry
from toolwire.invocation.middleware.time_limit import TimeLimit

__all__ = [
    "Cache",
    "CallMiddleware",
    "CallNext",
    "CircuitBreaker",
    "Concurrency",
    "Key",
    "PreparedCall",
    "RateLimit",
    "Retry",
    "TimeLimit",
    "by_tool",
    "colourless",
    "is_transport_failure",
]
