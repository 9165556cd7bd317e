"""The page on middleware gives the defaults of the code."""

from __future__ import annotations

import re

from tests.architecture.source import ROOT
from toolwire.invocation.middleware import cache, circuit_breaker, concurrency, rate_limit, retry

PAGE = (ROOT / "docs" / "middleware.md").read_text("utf-8")


def test_the_table_gives_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `(\w+)\(.*?` \| .*? \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows == {
        "TimeLimit": "no limit for what no name or pattern fits",
        "Cache": f"{cache.TTL_S:g} s, {cache.ENTRIES_LIMIT:,} results of up to "
        f"{cache.RESULT_LIMIT_BYTES // 1024} KiB; natural reads only",
        "Retry": f"{retry.ATTEMPTS} attempts, waits up to {retry.FIRST_WAIT_S} s and {2 * retry.FIRST_WAIT_S} s, "
        f"{retry.LONGEST_WAIT_S:g} s at most",
        "CircuitBreaker": f"{circuit_breaker.FAILURES} failures in a row, {circuit_breaker.OPEN_S:g} s",
        "RateLimit": f"a call waits {rate_limit.WAIT_LIMIT_S:g} s for its turn",
        "Concurrency": f"a call waits {concurrency.WAIT_LIMIT_S:g} s for its turn",
    }
