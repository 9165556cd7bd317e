"""Prints all figures; exits 1 when one is not met."""

from __future__ import annotations

import platform
import sys

from benchmarks import calls, chains, executors, files, growth, imports, many_tools, programs, store, stored_turns
from benchmarks.timing import show

GROUPS = {
    "One call, against validation alone": calls,
    "Importing and defining": imports,
    "Many tools": many_tools,
    "Programs": programs,
    "One program, against a bare fork": executors,
    "The store": store,
    "Processes on one log": chains,
    "What a store keeps of a call of 1 KB in and out": growth,
    "Turns with a store": stored_turns,
    "Files": files,
}


def main() -> int:
    """Every group, one after another."""
    print(f"Python {platform.python_version()} on {platform.machine()}")
    met = True
    for title, group in GROUPS.items():
        figures = group.figures()
        show(title, figures)
        met = met and all(figure.is_met for figure in figures)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
