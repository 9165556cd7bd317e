"""2,000 half heads, 200 half bodies and 100 slow readers: an honest client is answered as on a quiet server.

Run: python -m tests.soak.slow_clients [heads]. `tests/gateway/test_slow_clients.py` is the short form of it.
"""

from __future__ import annotations

import resource
import statistics
import sys
from collections.abc import Callable
from contextlib import ExitStack
from socket import socket

from tests.gateway.slow_clients import ServerProcess, server_process

HEADS, BODIES, READERS = 2_000, 200, 100
ROUND = {"half heads": 20, "half bodies": 2, "slow readers": 1}
"""Connections between two calls of the honest client."""
LONGEST_S = 2.0
SLOWER = 2.0
"""The most that the median may be of that on the quiet server. Both are called in turns."""
GROWTH_MB = 300.0
"""The most memory that is held for them: twice 64 MiB, and what the server works on."""


def attack(attacked: ServerProcess, quiet: ServerProcess, heads: int) -> bool:
    """Prints what the honest client saw, and returns whether it is as expected."""
    kinds: list[tuple[str, int, Callable[[], socket]]] = [
        ("half heads", heads, attacked.half_head),
        ("half bodies", heads * BODIES // HEADS, attacked.half_body),
        ("slow readers", heads * READERS // HEADS, attacked.slow_reader),
    ]
    is_right = True
    with ExitStack() as stack:
        for name, count, opened in kinds:
            first: list[float] = []
            beside: list[float] = []
            alone: list[float] = []
            for number in range(count):
                stack.enter_context(opened())
                if (number + 1) % ROUND[name] == 0:
                    # The first call waits for the work of opening them too. The second is about holding them.
                    first.append(attacked.call_s())
                    beside.append(attacked.call_s())
                    alone.append(quiet.call_s())
            longest = max(first + beside)
            slower = statistics.median(beside) / statistics.median(alone)
            print(
                f"{count:,} {name}: {len(first + beside)} calls, the longest {longest:.2f} s; the median "
                f"{statistics.median(beside) * 1e3:.1f} ms, {slower:.2f} x as on the quiet server; "
                f"{attacked.files} files"
            )
            is_right = is_right and longest <= LONGEST_S and slower <= SLOWER
        grown = attacked.peak_mb - quiet.peak_mb
        print(f"the memory at its peak: {grown:.0f} MB more than that of the quiet server")
    return is_right and grown <= GROWTH_MB


def soak(heads: int) -> bool:
    """Attacks one of two servers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with server_process("port", 1_024) as attacked, server_process("port", 1_024) as quiet:
        for _ in range(20):
            attacked.call_s()
            quiet.call_s()
        return attack(attacked, quiet, heads)


if __name__ == "__main__":
    sys.exit(0 if soak(int(sys.argv[1]) if len(sys.argv) > 1 else HEADS) else 1)
