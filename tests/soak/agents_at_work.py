"""A process in which an agent and its sub-agent work on a conversation, and that may be killed at any moment.

The models are functions of the request, and each request is noted. So a reply that is asked for again is counted, and
it makes the same calls: a call that ran again has its effect twice.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.agent.worlds import conversation_is_well_formed
from tests.session.killed import DOUBT, KEY, Moments, happened, watch
from tests.soak.conversing import CONVERSATION, GUESTS, Part, write_line
from toolwire import Agent, ApprovalRequest, Budget, CallContext, Decision, Store, ToolSpec
from toolwire.agent.memory import StoreMemory
from toolwire.models import Request
from toolwire.testing import ScriptedModel

PROMPTS, TURNS = 3, 7
"""A conversation has so many prompts, and so many replies to each. The last reply to a prompt is its answer."""

LEAD: tuple[tuple[str, ...], ...] = (("pay", "send"), ("payer",), ("book",), ("payer", "pay"))
"""The tools that the replies of the lead call, in turns."""
PAYER: tuple[tuple[str, ...], ...] = (("wire", "send"), ("book",))
"""The tools that the sub-agent calls, reply by reply. Its third reply tells what came of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The faults that kills caused in a conversation."""

    asked_again: int
    """Replies that were asked for more than once."""
    doubled: int
    """Effects that happened twice, and nothing says that the call may have run."""
    lost: int
    """Calls that are called done and had no effect, and calls of the plan that nobody knows of."""
    doubts: int
    """Calls of which a result says that they may have run."""


def work(part: Part, answer: Any) -> None:
    """Goes on with the conversation to its end. `answer` gets `asked` before a question waits, and then the messages.

    With `is_naive` the agent has no store, and the conversation begins again. The control, which does things twice.
    """
    moments = Moments(part.dies_at)
    watch(moments)
    _watch_saves(moments)
    with Store.open(part.url, key=KEY) as store:
        answer.send(asyncio.run(_converse(store, part, moments, answer)))


def damage(part: Part, messages: list[Any]) -> Damage:
    """The faults of a conversation that came to this end."""
    conversation_is_well_formed(messages)
    results = _results(messages)
    effects, keys = Counter[str](), dict[str, set[str]]()
    for effect in happened(part.effects):
        keys.setdefault(effect["mark"], set()).add(effect["key"])
        # The receiver of `send` recognises a text by its key.
        effects[effect["mark"]] = len(keys[effect["mark"]]) if effect["key"] else effects[effect["mark"]] + 1
    doubled = lost = doubts = 0
    for mark in _planned():
        text, count = results.get(mark), effects[mark]
        is_doubt = text is not None and DOUBT in text
        doubts += is_doubt
        doubled += count > 1 and not is_doubt
        lost += text is None or (not is_doubt and not count)
    asked = Counter(note["request"] for note in happened(part.noted))
    return Damage(asked_again=asked.total() - len(asked), doubled=doubled, lost=lost, doubts=doubts)


def _planned() -> list[str]:
    """The marks of all calls that have effects."""
    marks = list[str]()
    for number in (number for number in range(PROMPTS * TURNS) if (number + 1) % TURNS):
        for tool in LEAD[number % len(LEAD)]:
            if tool != "payer":
                marks.append(f"{tool} {number}")
                continue
            marks += [f"{inner} {number}.{step}" for step, tools in enumerate(PAYER) for inner in tools]
    return marks


def _results(messages: list[Any]) -> dict[str, str]:
    """The texts of the results by their marks. The answers of the sub-agent are the results of its calls."""
    found, names = dict[str, str](), dict[str, str]()
    for message in messages:
        for call in message.get("tool_calls") or ():
            names[call["id"]] = json.loads(call["function"]["arguments"]).get("mark", "")
        if message["role"] != "tool":
            continue
        mark = names[message["tool_call_id"]]
        if mark:
            found[mark] = message["content"]
        else:
            found |= json.loads(message["content"])
    return found


async def _converse(store: Store, part: Part, moments: Moments, answer: Any) -> list[Any]:
    lead = _lead(store, part, moments, answer)
    while True:
        document = store.document(CONVERSATION).value or {"messages": [], "ended": None}
        messages = [] if part.is_naive else document["messages"]
        prompts = sum(message["role"] == "user" for message in messages)
        has_ended = document["ended"] is not None
        if has_ended and prompts == PROMPTS:
            return messages
        prompt = f"Prompt {prompts}." if has_ended or not prompts else None
        result = await lead.run(prompt, conversation=CONVERSATION)
        while result.stop == "suspended":
            decisions = [_decision(request, by_hand=True) for request in result.pending]
            result = await lead.run(conversation=CONVERSATION, decisions=decisions)
        assert result.stop == "answered", result
        if part.is_naive:
            return result.messages


def _decision(request: ApprovalRequest, *, by_hand: bool = False) -> Decision:
    named: Mapping[str, Any] = {"request_id": request.id} if by_hand else {}
    if request.kind == "question":
        return Decision(verdict="answer", answer=3, **named)
    if request.attempt > 1:
        return Decision(verdict="deny", reason=DOUBT, **named)
    return Decision(verdict="approve", **named)


def _lead(store: Store, part: Part, moments: Moments, answer: Any) -> Agent:
    async def approver(request: ApprovalRequest) -> Decision | None:
        answer.send("asked")
        moments.passed()
        if part.answers == "never":
            await asyncio.Event().wait()
        return None if part.answers == "later" else _decision(request)

    def model(reply: Callable[[Request], Any]) -> ScriptedModel:
        return ScriptedModel(reply)

    def lead_reply(request: Request) -> Any:
        number = _replies(request)
        note(f"lead {number}")
        if (number + 1) % TURNS == 0:
            return f"Answer {number}."
        tools = LEAD[number % len(LEAD)]
        return [
            ("payer", {"task": str(number)}) if tool == "payer" else (tool, {"mark": f"{tool} {number}"})
            for tool in tools
        ]

    def payer_reply(request: Request) -> Any:
        task, step = request.messages[0]["content"], _replies(request)
        note(f"payer {task}.{step}")
        if step == len(PAYER):
            return json.dumps(_results(request.messages))
        return [(tool, {"mark": f"{tool} {task}.{step}"}) for tool in PAYER[step]]

    def note(request: str) -> None:
        moments.passed()
        write_line(part.noted, {"request": request})
        moments.passed()

    tools = _tools(part, moments)
    payer = Agent("payer", model(payer_reply), [tools["wire"], tools["send"], tools["book"]], approver=approver)
    return Agent(
        "lead",
        model(lead_reply),
        [tools["pay"], tools["send"], tools["book"], payer.as_tool("Pays bills.")],
        budget=Budget(turns=None, seconds=None),
        store=None if part.is_naive else store,
        approver=approver,
    )


def _replies(request: Request) -> int:
    return sum(message["role"] == "assistant" for message in request.messages)


def _tools(part: Part, moments: Moments) -> dict[str, ToolSpec]:
    def effect(mark: str, key: str = "") -> None:
        moments.passed()
        write_line(part.effects, {"mark": mark, "key": key})
        moments.passed()

    def pay(mark: str) -> str:
        """Pays."""
        effect(mark)
        return "paid"

    def send(mark: str, context: CallContext) -> str:
        """Sends, and recognises by its key a text that it has sent."""
        effect(mark, context.idempotency_key)
        return "sent"

    async def book(mark: str, context: CallContext) -> str:
        """Asks how many guests come, and books."""
        guests = await context.ask("How many guests?", GUESTS)
        effect(mark)
        return f"booked for {guests}"

    async def wire(mark: str) -> str:
        """Wires money."""
        await asyncio.sleep(0)
        effect(mark)
        return "wired"

    return {
        "pay": ToolSpec.from_function(pay, effects=["spend"]),
        "send": ToolSpec.from_function(send, idempotent="key", effects=["send"]),
        "book": ToolSpec.from_function(book, effects=["write"]),
        "wire": ToolSpec.from_function(wire, permission="confirm", effects=["spend"]),
    }


def _watch_saves(moments: Moments) -> None:
    """Makes moments of the saves of the agent's document."""
    save = StoreMemory.save

    async def watched(self: StoreMemory, *given: Any) -> None:
        moments.passed()
        await save(self, *given)
        moments.passed()

    StoreMemory.save = watched  # type: ignore[method-assign]
