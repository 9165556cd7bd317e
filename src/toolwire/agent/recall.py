"""Going on with a conversation: the runs that its document lacks, and the save that no cancellation breaks off."""

from __future__ import annotations

import asyncio
from typing import Any

from toolwire.agent.agent_loop import whole_turn
from toolwire.agent.agent_run import AgentRun
from toolwire.agent.memory import Memory
from toolwire.agent.result import AgentResult
from toolwire.session.runs.wire import GivenDecisions
from toolwire.vocabulary.errors import ConfigurationError

_OPEN = ("suspended", "running")
"""The states of runs that decisions may be for: a process may have died after it took them."""


async def recall(
    run: AgentRun, memory: Memory, decisions: GivenDecisions | None, *, has_prompt: bool
) -> AgentResult[Any] | None:
    """Adds the runs that the history lacks, in their order. Returns the result if the last of them ends the run.

    A run that has ended gives its recorded turn, a lost one goes on, and one that waits takes the decisions.

    Raises:
        ConfigurationError: There is a prompt while decisions are wanted, or there are decisions for nothing.
        DecisionRefused: A run cannot go on, or a decision is not valid.
    """
    conversation = run.session.conversation
    runs = await memory.unheld_runs(run.session, run.history)
    waiting = [one.run_id for one in runs if one.status in _OPEN]
    if decisions is not None and not waiting:
        raise ConfigurationError(f"Agent.run(decisions=...): conversation {conversation!r} waits for no decision")
    wanted = ConfigurationError(
        f"conversation {conversation!r} waits for decisions: give Agent.run(decisions=...) before the next prompt"
    )
    if has_prompt and decisions is None and any(one.pending for one in runs):
        raise wanted
    result: AgentResult[Any] | None = None
    for one in runs:
        given = decisions if one.run_id in waiting[-1:] else None
        turning = run.session.resume(one.run_id, given, deadline_s=run.spending.remaining_s, events=run.tool_events)
        result = run.take(await whole_turn(run, turning))
        if one.status == "stopped" and result is None:
            result = run.result("stopped")
        if result is not None and result.stop == "suspended":
            # The decisions are a part of those that are wanted, or a call whose outcome a crash hid asks only now.
            if has_prompt:
                raise wanted
            return result
    return result


async def save_whole(run: AgentRun, memory: Memory, output: Any) -> None:
    """Saves the history. A cancellation comes after it."""
    saving = asyncio.ensure_future(memory.save(run.session, run.history, output))
    try:
        await asyncio.shield(saving)
    except asyncio.CancelledError:
        await asyncio.wait((saving,))
        raise
