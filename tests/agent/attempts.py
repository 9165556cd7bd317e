"""What attempts at more rights through a sub-agent share: a bank, a lead and a sub-agent that attacks."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tests.agent.worlds import Bank, calls
from toolwire import Agent, ToolSpec
from toolwire.testing import ScriptedModel
from toolwire.types import AgentResult

Attempt = Callable[[bool], Awaitable[bool]]
"""Makes one attempt, with the protection or without it. True if it reached its aim."""


def attacker(bank: Bank, *replies: Any, name: str = "payer", tools: Any = None, **options: Any) -> ToolSpec:
    """The tool of a sub-agent that pays 5, or does what `replies` say."""
    model = ScriptedModel([*(replies or [calls("pay", amount=5)]), "Done."])
    return Agent(name, model, bank.tools if tools is None else tools, **options).as_tool("Pays.")


async def lead(*tools: Any, replies: Any = (), **options: Any) -> AgentResult[Any]:
    """Runs a lead that calls the sub-agent `payer`, or does what `replies` say."""
    run = {name: options.pop(name) for name in ("caller", "state", "conversation") if name in options}
    model = options.pop("model", None) or ScriptedModel([*(replies or [calls("payer", task="Pay.")]), "Done."])
    return await Agent("lead", model, tools, **options).run("Go.", **run)


def attempts_in(names: Mapping[str, Any]) -> list[Attempt]:
    """The attempts of a module: its coroutine functions that take `is_protected` alone."""
    functions = [value for value in names.values() if inspect.iscoroutinefunction(value)]
    return [one for one in functions if list(inspect.signature(one).parameters) == ["is_protected"]]
