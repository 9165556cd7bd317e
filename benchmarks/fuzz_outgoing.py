"""Tools, calls and results at random, in the form of each provider and of MCP: all of them are taken.

Run: python -m benchmarks.fuzz_outgoing [turns of each API, and tools]. The suite runs the first 400 turns of each,
600 tools, and a fifth of the tools of real services.
"""

from __future__ import annotations

import logging
import sys

from tests.catalogue.service_tools import service_tools
from tests.protocols.outgoing_histories import APIS, refusal
from tests.protocols.test_declared_schemas import is_taken_by_all, mutated

TURNS = 10_000


def main(turns: int) -> int:
    """Returns the number of turns that were refused, each of which is printed.

    Raises:
        AssertionError: A tool that can be defined was refused.
    """
    logging.getLogger("toolwire.definition").disabled = True
    print(f"{sum(is_taken_by_all(mutated(seed)) for seed in range(turns)):,} of {turns:,} schemas define a tool")
    services = [tool.input_schema for tool in service_tools()]
    print(f"{sum(is_taken_by_all(schema) for schema in services):,} of {len(services):,} tools of real services")
    refused = 0
    for api in APIS:
        for seed in range(turns):
            if said := refusal(api, seed):
                refused += 1
                print(f"{api} {seed}: {said}")
        print(f"{api}: {turns:,} turns")
    return refused


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else TURNS)))
