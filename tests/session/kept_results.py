"""A process that makes a call with a long result in a store, and ends."""

from __future__ import annotations

import sys

from tests.session.till import calls
from toolwire import Caller, Session, Store, ToolRegistry

LINES = "".join(f"line {n} of the ledger\n" for n in range(1000))
ADA = Caller(principal="ada")
LIMIT_BYTES = 500


def registry() -> ToolRegistry:
    tools = ToolRegistry(result_limit_bytes=LIMIT_BYTES)

    @tools.register
    def lines() -> str:
        """Gives many lines."""
        return LINES

    @tools.register
    def short() -> str:
        """Gives one line."""
        return "short"

    tools.configure(result_pages=True)
    return tools


def session(store: Store | None, conversation: str = "c-17", caller: Caller = ADA) -> Session:
    return Session(registry(), protocol="openai", store=store, conversation=conversation, caller=caller)


def main(url: str) -> None:
    """Prints the id of the run and the id of its long result."""
    with Store.open(url) as store:
        turn = session(store).run_turn(calls(("lines", {})))
        print(store.runs()[0].run_id, turn.results[0].metadata["result_id"])


if __name__ == "__main__":
    main(sys.argv[1])
