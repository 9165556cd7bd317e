"""Calls over HTTP: a `ToolServer`, FastMCP and the SDK's bare low-level server, in both eras of the protocol.

Run: python -m benchmarks.served [CALLS]. Each server is a process of its own; they take turns, so that other work on
the machine meets all of them. The processor time of the server for each call is compared.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from contextlib import ExitStack

from benchmarks.http_load import HANDSHAKE, MODERN, Era, Load, ServerProcess, loaded, serving
from benchmarks.servers import PEERS
from benchmarks.timing import Figure, show

CALLS = 400
"""Calls of one turn of one server, about half a second of its processor time."""
ROUNDS = 5
TOOLS = (1, 50)
CLIENTS = (1, 50)

LIMITS: dict[tuple[Era, str, int], float] = {
    (MODERN, "fastmcp", 1): 2.0,
    (MODERN, "fastmcp", 50): 5.0,
    (HANDSHAKE, "fastmcp", 1): 1.3,
    (HANDSHAKE, "fastmcp", 50): 1.3,
    (HANDSHAKE, "sdk", 1): 1.0,
    (HANDSHAKE, "sdk", 50): 1.0,
}
"""The least processor time of a peer, as a multiple of ours."""
FLAT = 1.1
"""The most that 50 tools may cost, as a multiple of one."""

Costs = dict[tuple[str, int], float]
"""Milliseconds of the server's processor time a call, by peer and number of tools."""


def measured(era: Era, clients: int, calls: int) -> Costs:
    """Prints the medians of all servers and returns their costs."""
    with ExitStack() as stack:
        servers = {(peer, tools): stack.enter_context(serving(peer, tools)) for tools in TOOLS for peer in PEERS}
        loads: dict[tuple[str, int], list[Load]] = {key: [] for key in servers}
        for _ in range(ROUNDS):
            for key, server in servers.items():
                loads[key].append(_load(server, era, clients, calls))
    return {key: _told(era, clients, key, found) for key, found in loads.items()}


def _load(server: ServerProcess, era: Era, clients: int, calls: int) -> Load:
    found = asyncio.run(loaded(server, era, clients, calls))
    assert found.errors == 0, found.errors
    return found


def _told(era: Era, clients: int, key: tuple[str, int], loads: list[Load]) -> float:
    cost_ms = statistics.median(load.server_s / load.calls for load in loads) * 1e3
    rate = statistics.median(load.calls / load.seconds for load in loads)
    slow_ms = statistics.median(statistics.quantiles(load.latencies_s, n=100)[98] for load in loads) * 1e3
    peer, tools = key
    print(
        f"  {era} {clients:>3} clients {tools:>3} tools {peer:<9} {cost_ms:6.2f} ms {rate:7.0f} calls/s "
        f"p99 {slow_ms:7.1f} ms",
        flush=True,
    )
    return cost_ms


def figures(calls: int = CALLS) -> list[Figure]:
    """The peers' processor time as a multiple of ours, and what 50 tools cost."""
    found: list[Figure] = []
    for era in (MODERN, HANDSHAKE):
        for clients in CLIENTS:
            costs = measured(era, clients, calls)
            for (peer, tools), cost in costs.items():
                if peer != "toolwire":
                    name = f"{era}, {clients} clients, {tools} tools: {peer}"
                    limit = LIMITS.get((era, peer, tools))
                    found.append(Figure(name=name, ratio=cost / costs["toolwire", tools], limit=limit, is_least=True))
            flat = costs["toolwire", 50] / costs["toolwire", 1]
            found.append(Figure(name=f"{era}, {clients} clients: 50 tools against one", ratio=flat, limit=FLAT))
    return found


def main() -> int:
    """Prints all figures."""
    found = figures(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS)
    show("A call over HTTP: the server's processor time of a peer, as a multiple of ours", found)
    return 0 if all(figure.is_met for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
