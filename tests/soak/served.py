"""Calls over HTTP for ten minutes at 70 % of the peak, in both eras: no call fails, and the server's memory stays.

Run: python -m tests.soak.served [seconds [peer]]. The peer is `toolwire` or `gateway-store`, a gateway with a store
and a server behind it.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.http_load import HANDSHAKE, MODERN, Client, ServerProcess, answering, loaded, serving
from benchmarks.servers import BEHIND

SECONDS = 600.0
SHARE = 0.7
CLIENTS = {"toolwire": 50, "gateway-store": 20}
PAUSE_S = 2.0
"""The longest pause of a client between two calls: the server closes a connection after 5 idle seconds."""
TOOLS = 10
PEAK_CALLS = 1_500
WARM_UP = 0.1
"""The part of the time before memory is first looked at."""
LOOK_S = 2.0
GROWTH = 0.05
"""The most that the memory may differ from what it was after the warm-up."""


@dataclass(kw_only=True)
class Outcome:
    """What happened in the time."""

    calls: int = 0
    errors: Counter[str] = field(default_factory=Counter[str])
    """Answers that were not the sum, and connections that broke, by kind."""
    resident_mb: list[float] = field(default_factory=list[float])
    """The server's memory, at each look after the warm-up."""

    @property
    def difference(self) -> float:
        """The largest difference from the first look, as a part of it."""
        first = self.resident_mb[0]
        return max(abs(now - first) / first for now in self.resident_mb)


async def steady(server: ServerProcess, rate: float, seconds: float, most: int, tool: str) -> Outcome:
    """Makes `rate` calls a second by at most so many clients, half in each era. A late call is made at once."""
    outcome = Outcome()
    begun = time.monotonic()
    until = begun + seconds
    clients = min(most, math.ceil(rate * PAUSE_S))

    async def work(number: int) -> None:
        client = Client(MODERN if number % 2 else HANDSHAKE, tool)
        await client.connect(server)
        due = begun + number / rate
        while (now := time.monotonic()) < until:
            await asyncio.sleep(max(0.0, due - now))
            due = max(due + clients / rate, now)
            outcome.calls = call = outcome.calls + 1
            try:
                if await client.add(call, 1) != call + 1:
                    outcome.errors["wrong answer"] += 1
            except (OSError, EOFError) as error:
                outcome.errors[type(error).__name__] += 1
                await client.connect(server)
        client.close()

    async def look() -> None:
        await asyncio.sleep(seconds * WARM_UP)
        while time.monotonic() < until:
            outcome.resident_mb.append(server.resident_mb)
            await asyncio.sleep(LOOK_S)

    await asyncio.gather(look(), *map(work, range(clients)))
    return outcome


async def soak(seconds: float, peer: str) -> bool:
    """Prints the outcome, and returns whether it is as expected."""
    clients, tool = CLIENTS[peer], "add" if peer == "toolwire" else BEHIND
    with serving(peer, TOOLS) as server:
        await answering(server, tool)
        peaks = [await loaded(server, era, clients, PEAK_CALLS, tool) for era in (MODERN, HANDSHAKE)]
        peak = sum(load.calls for load in peaks) / sum(load.seconds for load in peaks)
        found = await steady(server, SHARE * peak, seconds, clients, tool)
    memory = found.resident_mb
    print(
        f"{found.calls:,} calls in {seconds:g} s, {found.calls / seconds / peak:.0%} of {peak:.0f} a second: "
        f"{found.errors.total()} errors {dict(found.errors)}; memory {memory[0]:.1f} MB, "
        f"then {min(memory):.1f} to {max(memory):.1f} MB ({found.difference:.1%})"
    )
    return not found.errors and found.difference <= GROWTH


if __name__ == "__main__":
    given_s, given_peer = [*sys.argv[1:], *(str(SECONDS), "toolwire")[len(sys.argv) - 1 :]]
    sys.exit(0 if asyncio.run(soak(float(given_s), given_peer)) else 1)
