"""Random approvals over tools that call tools, in catalogues below each other: each decision reaches its own call."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

from tests.session.till import calls, texts
from toolwire import ApprovalRequest, CallContext, Decision, Session, ToolRegistry, ToolSpec
from toolwire.session.runs.resume import RunStore

APPROVALS = 40
WHOLE = 500
DEPTH = 3
"""Catalogues below that of the session."""
WIDTH = 3
"""Calls that one tool makes, at most."""
NESTED = 5
"""Tools that call each other, at most."""


class Tree:
    """Catalogues below each other. Each has the same names: a call that waits, and one that makes calls."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.levels = [self._level(depth) for depth in range(DEPTH + 1)]

    def _level(self, depth: int) -> ToolRegistry:
        def leaf(mark: str) -> str:
            """Runs once, after an approval."""
            self.ran[f"{depth}:{mark}"] += 1
            return f"did {depth}:{mark}"

        async def branch(parts: list[Any], below: bool, beside: bool, context: CallContext) -> list[str]:
            """Makes these calls, one by one or side by side, here or in the catalogue below."""
            inner = context.using(self.levels[depth + 1], agent=f"agent {depth + 1}") if below else context
            if beside:
                made = await asyncio.gather(*(inner.call(part["tool"], **part["arguments"]) for part in parts))
            else:
                made = [await inner.call(part["tool"], **part["arguments"]) for part in parts]
            return [one.text for one in made]

        registry = ToolRegistry()
        # Another description at each depth gives another digest, under the same name.
        registry.register(ToolSpec.from_function(leaf, description=f"Level {depth}.", permission="confirm"))
        registry.register(ToolSpec.from_function(branch))
        return registry

    def session(self, store: RunStore) -> Session:
        return Session(self.levels[0], protocol="openai", store=store)


def planned(chance: random.Random, level: int, marks: list[str], nested: int = 1) -> dict[str, Any]:
    """A random call in the catalogue of a level. `marks` gets the calls that wait, as `level:mark`."""
    if nested == NESTED or (nested > 1 and chance.random() < 0.4):
        mark = f"m{len(marks)}."
        marks.append(f"{level}:{mark}")
        return {"tool": "leaf", "arguments": {"mark": mark}}
    below, beside = level < DEPTH and chance.random() < 0.7, chance.random() < 0.5
    parts = [planned(chance, level + below, marks, nested + 1) for _ in range(chance.randint(1, WIDTH))]
    return {"tool": "branch", "arguments": {"parts": parts, "below": below, "beside": beside}}


async def decided_run(store: RunStore, chance: random.Random) -> tuple[list[str], int]:
    """Makes one turn with random decisions. Returns the calls that waited, and the number that got a wrong decision."""
    tree, marks = Tree(), list[str]()
    plan = planned(chance, 0, marks)
    given: dict[str, bool] = {}
    turn = await tree.session(store).turn(calls((plan["tool"], plan["arguments"])))
    while turn.suspended is not None:
        run_id, waiting = turn.suspended.run_id, list(turn.suspended.pending)
        chosen = chance.sample(waiting, chance.randint(1, len(waiting)))
        verdicts = {request.id: chance.random() < 0.6 for request in chosen}
        given.update({mark_of(request): verdicts[request.id] for request in chosen})
        if chance.random() < 0.5:
            turn = await tree.session(store).resume(run_id, [as_json(one, verdicts[one.id]) for one in chosen])
            continue
        for request in chosen:
            store.decide(request.id, decision(verdicts[request.id]))
        turn = await tree.session(store).resume(run_id)
    (text,) = texts(turn.messages)
    assert set(given) == set(marks)
    ran_wrong = {mark for mark in marks if tree.ran[mark] != given[mark]}
    told_wrong = {mark for mark in marks if (f"did {mark}" in text) != given[mark]}
    return marks, len(ran_wrong | told_wrong)


def mark_of(request: ApprovalRequest) -> str:
    return f"{request.depth}:{request.arguments['mark']}"


def decision(is_approved: bool) -> Decision:
    return Decision(verdict="approve") if is_approved else Decision(verdict="deny", reason="no")


def as_json(request: ApprovalRequest, is_approved: bool) -> dict[str, Any]:
    return {"request_id": request.id, "verdict": "approve" if is_approved else "deny"}


async def test_random_decisions_over_catalogues_below_each_other_reach_their_own_calls(
    store: RunStore, whole: bool
) -> None:
    chance, marks, misrouted = random.Random(5), list[str](), 0
    while len(marks) < (WHOLE if whole else APPROVALS):
        made, wrong = await decided_run(store, chance)
        marks, misrouted = marks + made, misrouted + wrong
    assert {mark.partition(":")[0] for mark in marks} == {"0", "1", "2", "3"}
    assert misrouted == 0
