"""The page on middleware: its examples run, one after the other, with the results in their comments."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.architecture.source import ROOT
from toolwire.invocation.middleware import cache, circuit_breaker, concurrency, rate_limit, retry

PAGE = (ROOT / "docs" / "middleware.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_give_what_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "middleware_page"}
    for block in BLOCKS:
        exec(compile(block, "docs/middleware.md", "exec", dont_inherit=True), names)
    said = "\n".join(line for block in BLOCKS for line in re.findall(r"(?:^|  )# (.*)$", block, re.MULTILINE))
    assert capsys.readouterr().out == f"{said}\n"
    assert len(BLOCKS) == 3


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
