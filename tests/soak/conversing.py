"""A process that makes the turns of a conversation, and may be killed at any moment. The next one goes on from there.

Its model gives another reply each time it is asked. So a reply that is lost is noticed, and so is an effect of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from tests.session.killed import DOUBT, KEY, Moments, happened, watch
from tests.session.till import calls
from toolwire import ApprovalRequest, CallContext, Decision, Session, Store, ToolRegistry, ToolSpec, Turn

GUESTS = {"type": "integer", "minimum": 1}
CONVERSATION = "c-17"

MADE: tuple[tuple[str, ...], ...] = (("pay", "book"), ("send", "delegate"))
"""The tools that the replies call, in turns."""
EFFECT_OF = {"delegate": "wire"}
"""The tool that has the effect of a call, where it is another one."""

Answers: TypeAlias = Literal["at once", "later", "never"]
"""When the person answers a question: while its call waits, after the turn was suspended, or not before a kill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One process's part of a conversation."""

    url: str
    folder: str
    """It has the files of the effects and of the noted replies."""
    turns: int
    dies_at: int = 0
    """The moment to die at, counted from 1; 0: never."""
    answers: Answers = "at once"
    is_naive: bool = False
    """True: the turns have no store, and a reply without results is run again. The control, which does things twice."""

    @property
    def effects(self) -> Path:
        return Path(self.folder) / "effects"

    @property
    def noted(self) -> Path:
        return Path(self.folder) / "noted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The faults that kills caused in a conversation."""

    replies_lost: int = 0
    """Replies that were noted and that the conversation no longer has, and effects of such replies."""
    doubled: int = 0
    """Effects that happened twice, and the result does not say that the call may have run."""
    lost: int = 0
    """Calls that are called done and had no effect."""
    hidden: int = 0
    """Calls that had an effect, and neither their result nor a doubt says so."""
    doubts: int = 0
    """Calls of which the conversation says that they may have run."""


def converse(part: Part, answer: Any) -> None:
    """Goes on with the conversation to its end. `answer` gets `asked` before a question waits, and then its turns."""
    moments = Moments(part.dies_at)
    watch(moments)
    with Store.open(part.url, key=KEY) as store:
        answer.send(asyncio.run(_all_turns(store, part, moments, answer)))


def damage(part: Part, turns: Sequence[Mapping[str, Any]]) -> Damage:
    """The faults of a conversation that came to this end."""
    effects, replies = happened(part.effects), {turn["mark"] for turn in turns}
    noted = {one["mark"] for one in happened(part.noted)}
    marks = Counter((effect["tool"], effect["mark"]) for effect in effects)
    keys = Counter((tool, mark) for tool, mark, _ in {(one["tool"], one["mark"], one["key"]) for one in effects})
    doubled = lost = hidden = doubts = 0
    for turn in turns:
        for tool, result in zip(turn["tools"], turn["results"], strict=True):
            effect = (EFFECT_OF.get(tool, tool), turn["mark"])
            # The receiver of `send` recognises a text by its key.
            count = keys[effect] if tool == "send" else marks[effect]
            is_doubt = DOUBT in result["text"]
            doubts += is_doubt
            doubled += count > 1 and not is_doubt
            lost += not count and not is_doubt and result["kind"] == "success"
            hidden += bool(count) and not is_doubt and result["kind"] != "success"
    unknown = {effect["mark"] for effect in effects} - replies
    return Damage(
        replies_lost=len(noted - replies) + len(unknown), doubled=doubled, lost=lost, hidden=hidden, doubts=doubts
    )


async def _all_turns(store: Store, part: Part, moments: Moments, answer: Any) -> list[dict[str, Any]]:
    found = store.document(CONVERSATION)
    turns, version = list[dict[str, Any]](found.value or []), found.version

    def save() -> None:
        nonlocal version
        moments.passed()
        version = store.save_document(CONVERSATION, turns, version=version)
        moments.passed()

    session = _session(store, part, moments, answer)
    while True:
        if not turns or "results" in turns[-1]:
            if len(turns) == part.turns:
                return turns
            turns.append({"mark": secrets.token_hex(4), "tools": list(MADE[len(turns) % len(MADE)])})
            save()
            write_line(part.noted, {"mark": turns[-1]["mark"]})
        turn = await _turn(session, store, turns, part)
        kinds = [result.failure.kind if result.failure else "success" for result in turn.results]
        turns[-1]["results"] = [
            {"text": result.text, "kind": kind} for result, kind in zip(turn.results, kinds, strict=True)
        ]
        save()


async def _turn(session: Session, store: Store, turns: Sequence[Mapping[str, Any]], part: Part) -> Turn:
    """The last reply's turn. If it has a run, an earlier process began it, and this one goes on with that run."""
    runs = [] if part.is_naive else store.runs(conversation=CONVERSATION, limit=len(turns))
    if len(runs) == len(turns):
        turn = await session.resume(runs[0].run_id)
    else:
        turn = await session.turn(calls(*((tool, {"mark": turns[-1]["mark"]}) for tool in turns[-1]["tools"])))
    while turn.suspended is not None:
        for request in turn.suspended.pending:
            store.decide(request.id, _decision(request))
        turn = await session.resume(turn.suspended.run_id)
    return turn


def _decision(request: ApprovalRequest) -> Decision:
    if request.kind == "question":
        return Decision(verdict="answer", answer=3)
    return Decision(verdict="deny", reason=DOUBT) if request.attempt > 1 else Decision(verdict="approve")


def _session(store: Store, part: Part, moments: Moments, answer: Any) -> Session:
    async def approver(request: ApprovalRequest) -> Decision | None:
        if request.kind == "question" or request.parent:
            answer.send("asked")
            moments.passed()
            if part.answers == "never":
                await asyncio.Event().wait()
            if part.answers == "later":
                return None
        return _decision(request)

    kept = None if part.is_naive else store
    tools = _tools(store, part, moments)
    return Session(tools, protocol="openai", store=kept, conversation=CONVERSATION, approver=approver)


def write_line(path: Path, line: Mapping[str, Any]) -> None:
    """Adds a line to a file of effects or notes, on the disk before this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(line) + "\n").encode())
    os.fsync(descriptor)
    os.close(descriptor)


def _tools(store: Store, part: Part, moments: Moments) -> list[Any]:
    def effect(tool: str, mark: str, key: str = "") -> None:
        moments.passed()
        write_line(part.effects, {"tool": tool, "mark": mark, "key": key})
        moments.passed()

    def pay(mark: str) -> str:
        """Pays."""
        effect("pay", mark)
        return "paid"

    def send(mark: str, context: CallContext) -> str:
        """Sends, and recognises by its key a text that it has sent."""
        effect("send", mark, context.idempotency_key)
        return "sent"

    async def book(mark: str, context: CallContext) -> str:
        """Asks how many guests come, and books."""
        guests = await context.ask("How many guests?", GUESTS)
        effect("book", mark)
        return f"booked for {guests}"

    def wire(mark: str) -> str:
        """Wires money."""
        effect("wire", mark)
        return "wired"

    async def delegate(mark: str, context: CallContext) -> str:
        """Lets another agent do the work by tools of its own. Its model's reply is saved before the calls run."""
        found = store.document(f"helper-{mark}")
        if found.value is None:
            moments.passed()
            reply = {"text": secrets.token_hex(4)}
            store.save_document(f"helper-{mark}", reply, version=found.version)
            moments.passed()
        else:
            reply = found.value
        helper = context.using(own, agent="helper")
        await helper.call("plan", **reply)
        return (await helper.call("wire", mark=mark)).text

    def plan(text: str) -> str:
        """Plans."""
        return text

    own = ToolRegistry()
    own.register(plan)
    own.register(ToolSpec.from_function(wire, permission="confirm", effects=["spend"]))

    return [
        ToolSpec.from_function(pay, permission="confirm", effects=["spend"]),
        ToolSpec.from_function(send, idempotent="key", effects=["send"]),
        ToolSpec.from_function(book, effects=["write"]),
        # Its calls are on record by themselves, and its model's reply is saved.
        ToolSpec.from_function(delegate, idempotent="natural"),
    ]
