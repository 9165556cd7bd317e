"""Tools that clients of others try: a value, progress, and two calls that need a person."""

from __future__ import annotations

import asyncio

from toolwire import CallContext, ToolRegistry

STEP_S = 0.6
"""Seconds between two steps of `slow`: a client that waits for a second needs each of them."""


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


async def slow(steps: int, context: CallContext) -> str:
    """Takes its time, and says how far it is."""
    for number in range(1, steps + 1):
        await asyncio.sleep(STEP_S)
        await context.progress(number, steps)
    return f"did {steps} steps"


async def table(day: str, context: CallContext) -> str:
    """Books a table."""
    guests = await context.ask(f"How many guests on {day}?", {"type": "integer", "minimum": 1, "maximum": 12})
    return f"a table for {guests}"


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


registry = ToolRegistry()
for tool in (add, slow, table):
    registry.register(tool)
registry.register(pay, permission="confirm")
__all__ = ["registry"]
