"""One agent: its loop, its limits, its conversation, its events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from tests.agent.worlds import Bank, calls, conversation_is_well_formed
from toolwire import (
    Agent,
    ApprovalRequest,
    Budget,
    Caller,
    ConfigurationError,
    Decision,
    DecisionRefused,
    Session,
    Store,
    ToolRegistry,
    ToolSpec,
    protocols,
)
from toolwire.approvals import rule_for
from toolwire.models import ModelFailed, OpenAIModel, Price, Request, Usage
from toolwire.testing import ScriptedModel


class Report(BaseModel):
    """The end of the work."""

    total: int


async def test_a_run_asks_acts_and_answers() -> None:
    bank = Bank()
    model = ScriptedModel([calls("pay", amount=5), "Paid."])
    result = await Agent("clerk", model, bank.tools, instructions="You pay.").run("Pay 5.")
    assert (result.stop, result.text, bank.paid) == ("answered", "Paid.", [5])
    assert result.usage == Usage(input=200, output=20)
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert [request.system for request in model.requests] == ["You pay."] * 2
    assert model.requests[0].messages == result.messages[:1]
    assert [tool["function"]["name"] for tool in model.requests[0].tools] == ["pay"]


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini", "xml", "json", "attp"])
async def test_a_run_works_in_each_protocol(protocol: str) -> None:
    bank = Bank()
    model = ScriptedModel([calls("pay", amount=5), calls("pay", amount=6), "Done."], protocol=protocol)
    result = await Agent("clerk", model, bank.tools).run("Pay.")
    assert (result.stop, bank.paid) == ("answered", [5, 6])
    assert result.text == "Done."


async def test_the_output_is_the_models_last_call() -> None:
    agent: Agent[Report] = Agent("clerk", ScriptedModel([calls("report", total=3)]), output=Report)
    result = await agent.run("Report.")
    assert (result.stop, result.text, result.output) == ("answered", None, Report(total=3))


@pytest.mark.parametrize("protocol", ["openai", "attp"])
async def test_the_output_of_a_named_end_is_any_json_value(protocol: str, agent_store: Any) -> None:
    for number, value in enumerate(["three", 3, None, {"total": [3]}]):
        model = ScriptedModel([calls("answer", answer=value)], protocol=protocol)
        agent = Agent("clerk", model, output="answer", store=agent_store)
        for prompt in ("Count.", None):
            result = await agent.run(prompt, conversation=f"c{number}")
            assert (result.stop, result.output, len(model.requests)) == ("answered", value, 1)
            assert result.text == (value if isinstance(value, str) else json.dumps(value))


async def test_a_history_with_the_line_about_the_end_is_well_formed() -> None:
    bank = Bank()
    model = ScriptedModel([calls("pay", amount=5), calls("pay", amount=6), "Done."])
    result = await Agent("clerk", model, bank.tools, ending_line=True).run("Pay.")
    assert [message["role"] for message in result.messages] == ["user", *["assistant", "tool", "user"] * 2, "assistant"]
    conversation_is_well_formed(result.messages)


async def test_a_model_may_speak_a_text_protocol_with_an_option() -> None:
    client = openai.AsyncOpenAI(api_key="none")
    model = OpenAIModel("local", client=client, protocol=protocols.get("xml", tag="call"))
    session = Session([], protocol=model.protocol)
    assert "Write one <call>" in session.system_prompt
    with pytest.raises(ConfigurationError, match="this model's API is that of 'openai'"):
        OpenAIModel("local", client=client, protocol=protocols.get("anthropic"))


@pytest.mark.parametrize(
    ("budget", "stop", "asked"),
    [
        (Budget(turns=2), "turns", 2),
        (Budget(tokens=250), "tokens", 3),
        (Budget(cost=0.00025), "cost", 3),
        (Budget(turns=0), "turns", 0),
    ],
)
async def test_a_limit_is_a_result_and_the_next_run_goes_on(
    budget: Budget, stop: str, asked: int, agent_store: Any
) -> None:
    bank = Bank()
    script = [calls("pay", amount=number) for number in range(5)]
    model = ScriptedModel([*script, "Done."], price=Price(input=1.0, output=0.0))
    agent = Agent("clerk", model, bank.tools, budget=budget, store=agent_store)
    result = await agent.run("Pay.", conversation="c")
    assert (result.stop, len(model.requests), bank.paid) == (stop, asked, list(range(asked)))
    conversation_is_well_formed(result.messages)
    result = await agent.run(conversation="c", budget=Budget())
    assert (result.stop, result.text, bank.paid) == ("answered", "Done.", list(range(5)))


async def test_a_budget_of_cost_needs_a_price() -> None:
    agent = Agent("clerk", ScriptedModel(["Hi."]), budget=Budget(cost=1.0))
    with pytest.raises(ConfigurationError, match="needs the price of its model"):
        await agent.run("Hi.")


class SilentModel:
    """A model that says nothing, and notes that its stream was closed."""

    protocol, price = "openai", None

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.is_closed = False

    async def stream(self, request: Request, /) -> AsyncIterator[Any]:
        try:
            self.begun.set()
            await asyncio.Event().wait()
            yield ""
        finally:
            self.is_closed = True


async def test_the_seconds_of_the_budget_end_a_silent_model() -> None:
    model = SilentModel()
    result = await Agent("clerk", model, budget=Budget(seconds=0.05)).run("Hi.")
    assert (result.stop, model.is_closed) == ("seconds", True)


async def test_the_seconds_are_the_deadline_of_tools() -> None:
    async def wait() -> None:
        """Waits."""
        await asyncio.Event().wait()

    model = ScriptedModel([calls("wait"), "Done."])
    result = await Agent("clerk", model, [wait], budget=Budget(seconds=0.2)).run("Hi.")
    assert (result.stop, len(model.requests)) == ("seconds", 1)
    conversation_is_well_formed(result.messages)


async def test_a_failed_model_is_a_result_and_the_work_is_kept(agent_store: Any) -> None:
    bank = Bank()
    model = ScriptedModel([calls("pay", amount=5), ModelFailed("rate", "too many"), "Done."])
    agent = Agent("clerk", model, bank.tools, store=agent_store)
    result = await agent.run("Pay.", conversation="c")
    assert (result.stop, result.error and result.error.kind, bank.paid) == ("model", "rate", [5])
    result = await agent.run(conversation="c")
    assert (result.stop, result.text, bank.paid) == ("answered", "Done.", [5])


async def test_an_ended_conversation_gives_its_answer_and_asks_nobody(agent_store: Any) -> None:
    model = ScriptedModel([calls("report", total=3), "Four."])
    agent = Agent("clerk", model, output=Report, store=agent_store)
    for _ in range(2):
        result = await agent.run("Report." if not model.requests else None, conversation="c")
        assert (result.stop, result.output, len(model.requests)) == ("answered", Report(total=3), 1)
    assert (await agent.run("And now?", conversation="c")).text == "Four."
    again = await agent.run(conversation="c")
    assert (again.text, again.output, len(model.requests)) == ("Four.", None, 2)


@pytest.mark.parametrize("refused", ["", "thought", "cut"])
async def test_four_unreadable_replies_end_the_run(refused: str) -> None:
    class Odd(ScriptedModel):
        async def stream(self, request: Request, /) -> Any:
            self.requests.append(request)
            call = {"index": 0, "id": "x", "type": "function", "function": {"name": "pay", "arguments": '{"amou'}}
            delta: dict[str, Any] = {"role": "assistant", "content": ""}
            if refused == "thought":
                delta["reasoning_content"] = "I think."
            if refused == "cut":
                delta["tool_calls"] = [call]
            yield {"choices": [{"index": 0, "delta": delta, "finish_reason": "length" if refused == "cut" else "stop"}]}

    model, bank = Odd([]), Bank()
    result = await Agent("clerk", model, bank.tools).run("Pay.")
    assert (result.stop, len(model.requests), bank.paid) == ("unreadable", 4, [])
    conversation_is_well_formed(result.messages)


async def test_a_second_run_is_refused_and_asks_nobody(agent_store: Any) -> None:
    model = SilentModel()
    agent, other = Agent("clerk", model, store=agent_store), ScriptedModel(["Hi."])
    running = asyncio.create_task(agent.run("Hi.", conversation="c"))
    await model.begun.wait()
    second = Agent("clerk", other, store=agent_store) if agent_store is not None else agent
    with pytest.raises(DecisionRefused) as refused:
        await second.run("Hi.", conversation="c")
    assert (refused.value.code, other.requests) == ("conversation_busy", [])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.is_closed


async def test_a_cancelled_run_tells_what_may_have_happened_and_goes_on(agent_store: Any) -> None:
    paid, begun = list[int](), asyncio.Event()

    async def pay(amount: int) -> int:
        """Pays."""
        paid.append(amount)
        return amount

    async def wait() -> None:
        """Waits, after the other calls have ended."""
        for _ in range(100):
            await asyncio.sleep(0.001)
        begun.set()
        await asyncio.Event().wait()

    model = ScriptedModel([[("pay", {"amount": 5}), ("wait", {})], "Done."])
    agent = Agent("clerk", model, [pay, wait], store=agent_store)
    running = asyncio.create_task(agent.run("Pay.", conversation="c"))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await agent.run(conversation="c")).stop == "interrupted"
    result = await agent.run("Go on.", conversation="c")
    assert (result.stop, paid, len(model.requests)) == ("answered", [5], 2)
    conversation_is_well_formed(result.messages)
    contents = [message["content"] for message in result.messages]
    assert contents[2] == "5"
    assert "was stopped: the user stopped it" in contents[3]
    assert "not run" not in contents[3]


async def test_leaving_the_events_stops_the_run(agent_store: Any) -> None:
    model = SilentModel()
    agent = Agent("clerk", model, store=agent_store)
    async with aclosing(agent.stream("Hi.", conversation="c")) as events:
        async for event in events:
            assert event.type == "reply"
            await model.begun.wait()
            break
    assert model.is_closed
    agent.model = ScriptedModel(["Hi."])
    assert (await agent.run("Again.", conversation="c")).text == "Hi."


async def test_the_events_tell_the_run_in_order() -> None:
    bank = Bank()
    agent = Agent("clerk", ScriptedModel([calls("pay", amount=5), "Paid."]), bank.tools)
    told = [(event.type, event.text, event.tool and event.tool.type) async for event in agent.stream("Pay.")]
    assert told == [
        ("reply", "", None),
        ("tool", "", "TOOL_START"),
        ("tool", "", "TOOL_COMPLETE"),
        ("reply", "", None),
        ("text", "Paid.", None),
        ("stopped", "", None),
    ]


async def test_a_slow_reader_slows_the_run() -> None:
    bank = Bank()
    agent = Agent("clerk", ScriptedModel([calls("pay", amount=5), "Paid."]), bank.tools)
    async with aclosing(agent.stream("Pay.")) as events:
        assert (await anext(events)).type == "reply"
        for _ in range(100):
            await asyncio.sleep(0)
        assert bank.paid == []
        assert [event.type async for event in events][-1] == "stopped"
    assert bank.paid == [5]


@pytest.mark.parametrize(("cuts", "stop"), [(2, "answered"), (3, "model")])
async def test_a_stream_that_breaks_off_is_asked_for_again_twice(cuts: int, stop: str) -> None:
    class Cut(ScriptedModel):
        async def stream(self, request: Request, /) -> Any:
            self.requests.append(request)
            yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]}
            if len(self.requests) > cuts:
                yield {"choices": [{"index": 0, "delta": {"content": "lo."}, "finish_reason": "stop"}]}

    model = Cut([])
    events = [event async for event in Agent("clerk", model).stream("Hi.")]
    result = events[-1].result
    assert result is not None
    assert (result.stop, len(model.requests)) == (stop, 3)
    assert [event.attempt for event in events if event.type == "reply"] == [1, 2, 3]
    assert result.text == ("Hello." if stop == "answered" else None)


@pytest.mark.parametrize("kind", ["auth", "rate", "overloaded", "refused", "network"])
async def test_a_request_that_never_began_is_not_made_again(kind: Any) -> None:
    model = ScriptedModel([ModelFailed(kind, "no"), "Hi."])
    result = await Agent("clerk", model).run("Hi.")
    assert (result.stop, len(model.requests)) == ("model", 1)


async def test_a_conversation_that_is_too_long_is_shortened_once_and_asked_again() -> None:
    long = "x" * 20_000
    script = [calls("read"), calls("read"), ModelFailed("context_length", "too long"), "Done."]
    model = ScriptedModel(script, usage=Usage())

    def read() -> str:
        """Reads."""
        return long

    result = await Agent("reader", model, [read]).run("Read.")
    assert (result.stop, len(model.requests)) == ("answered", 4)
    sizes = [len(str(request.messages)) for request in model.requests]
    assert sizes[3] < 0.6 * sizes[2]
    assert sum(message["content"] == long for message in result.messages) == 2


async def test_the_history_is_shortened_in_one_step_and_the_record_keeps_everything(agent_store: Any) -> None:
    def read() -> str:
        """Reads."""
        return "x" * 4_000

    model = ScriptedModel(lambda _: calls("read") if len(model.requests) < 12 else "Done.", usage=Usage())
    agent = Agent("reader", model, [read], limit_tokens=6_000, store=agent_store)
    result = await agent.run("Read.", conversation="c")
    assert result.stop == "answered"
    assert len(result.messages) == 1 + 11 * 2 + 1
    sizes = [len(str(request.messages)) for request in model.requests]
    assert max(sizes) < 6_000 * 4 * 0.95
    assert 1 <= sum(after < before for before, after in pairwise(sizes)) <= 3
    for request in model.requests:
        assert request.messages[0] == {"role": "user", "content": "Read."}
        conversation_is_well_formed(request.messages)
    # The next run begins with the shorter history.
    await agent.run("And?", conversation="c")
    assert len(str(model.requests[-1].messages)) < len(str(result.messages))


async def test_an_owners_shorten_is_asked_and_its_mistakes_are_its_owners() -> None:
    model = ScriptedModel([calls("read"), calls("read"), "Done."], usage=Usage())

    def read() -> str:
        """Reads."""
        return "x" * 4_000

    async def keep_the_first(messages: list[Any]) -> list[Any]:
        return messages[:1]

    result = await Agent("reader", model, [read], limit_tokens=500, shorten=keep_the_first).run("Read.")
    assert [len(request.messages) for request in model.requests] == [1, 1, 1]
    assert result.stop == "answered"
    wrong = Agent(
        "reader", ScriptedModel([calls("read"), "x"]), [read], limit_tokens=500, shorten=lambda found: found[:2]
    )
    with pytest.raises(ConfigurationError, match="shorten= of the agent 'reader'"):
        await wrong.run("Read.")


async def test_values_of_the_run_are_bound(agent_store: Any) -> None:
    seen = list[str]()

    def look(token: str) -> str:
        """Looks."""
        seen.append(token)
        return "ok"

    tool = ToolSpec.from_function(look).bind("token")
    agent = Agent("clerk", ScriptedModel([calls("look"), "Done."] * 2), [tool], store=agent_store, state={"token": "a"})
    await agent.run("Look.")
    await agent.run("Look.", state={"token": "b"})
    assert seen == ["a", "b"]


async def test_a_conversation_belongs_to_its_principal(agent_store: Any) -> None:
    agent = Agent("clerk", ScriptedModel(["Hi.", "Hi."]), store=agent_store)
    await agent.run("Hi.", conversation="c", caller=Caller(principal="ann"))
    with pytest.raises(DecisionRefused, match="another principal"):
        await agent.run("Hi.", conversation="c", caller=Caller(principal="eve"))


async def test_labels_of_earlier_runs_hold_in_the_next(agent_store: Any) -> None:
    def read() -> str:
        """Reads."""
        return "private"

    def send(text: str) -> str:
        """Sends."""
        return text

    registry = ToolRegistry()
    registry.register(ToolSpec.from_function(read, labels=["private", "untrusted"], effects=["read"]))
    registry.register(ToolSpec.from_function(send, effects=["send"]))
    model = ScriptedModel([calls("read"), "Read.", calls("send", text="x"), "Sent."])
    agent = Agent("clerk", model, registry, store=agent_store)
    await agent.run("Read.", conversation="c")
    result = await agent.run("Send.", conversation="c")
    control = await Agent("clerk", ScriptedModel([calls("send", text="x"), "Sent."]), registry).run("Send.")
    assert control.messages[-2]["content"] == "x"
    if agent_store is None:
        assert "person" in result.messages[-2]["content"]
    else:
        assert result.stop == "suspended"


async def test_a_rule_that_a_person_keeps_for_the_session_holds_in_the_next_run(agent_store: Any) -> None:
    bank, asked = Bank(permission="confirm"), list[str]()

    def approve(request: ApprovalRequest) -> Decision:
        asked.append(request.tool)
        return Decision(verdict="approve", remember=rule_for(request, scope="session"))

    model = ScriptedModel([calls("pay", amount=5), "Paid."] * 2 + [calls("pay", amount=6), "Paid."])
    agents = [Agent("clerk", model, bank.tools, store=agent_store, approver=approve) for _ in range(3)]
    for agent in agents if agent_store is not None else agents[:1] * 3:
        await agent.run("Pay.", conversation="c")
    assert (bank.paid, asked) == ([5, 5, 6], ["pay", "pay"])


async def test_a_document_of_somebody_else_is_never_overwritten(store: Store) -> None:
    store.save_document("c", {"my": "value"}, version=0)
    with pytest.raises(ConfigurationError, match="is not in the form"):
        await Agent("clerk", ScriptedModel(["Hi."]), store=store).run("Hi.", conversation="c")
    assert store.document("c").value == {"my": "value"}


async def test_a_conversation_of_another_protocol_is_refused_by_name(agent_store: Any) -> None:
    agent = Agent("clerk", ScriptedModel(["Hi."]), store=agent_store)
    await agent.run("Hi.", conversation="c")
    agent.model = ScriptedModel(["Hi."], protocol="anthropic")
    with pytest.raises(ConfigurationError, match="is in the protocol 'openai'"):
        await agent.run("Hi.", conversation="c")


async def test_an_agent_closes_the_store_that_it_opened(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with Agent("clerk", ScriptedModel(["Hi."]), store=url) as agent:
        await agent.run("Hi.", conversation="c")
    with Store.open(url) as store:
        async with Agent("clerk", ScriptedModel(["Again."]), store=store) as other:
            assert (await other.run("And?", conversation="c")).text == "Again."
        assert len(store.document("c").value["messages"]) == 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, "give it a name"),
        ({"model": "gpt-x"}, "give a model"),
        ({"tools": "pay"}, "give a list of tools"),
        ({"budget": 20}, r"write Budget\(turns=20\)"),
        ({"limit_tokens": 0}, "write a number of tokens"),
        ({"shorten": "half"}, "write a function"),
        ({"colour": "red"}, "there is no such option: it has instructions, output"),
        ({"instruction": "x"}, "did you mean 'instructions'?"),
        ({"protocol": "attp"}, "it belongs to the model"),
        ({"max_turns": 3}, r"write budget=Budget\(turns=...\)"),
        ({"instructions": 5}, "write a text"),
        ({"store": 5}, "give a Store, or a URL"),
        ({"programs": 3}, "write True, False or None"),
        ({"output": 3}, "write the name of a tool"),
    ],
)
def test_wrong_options_are_refused_when_the_agent_is_made(wrong: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"name": "clerk", "model": ScriptedModel([]), "tools": [], **wrong}
    with pytest.raises(ConfigurationError, match=message):
        Agent(options.pop("name"), options.pop("model"), options.pop("tools"), **options)


@pytest.mark.parametrize("wrong", [{"turns": -1}, {"tokens": "10"}, {"cost": float("nan")}, {"seconds": True}])
def test_wrong_budgets_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="write a number that is not negative"):
        Budget(**wrong)


async def test_a_run_needs_a_prompt_or_a_conversation(agent_store: Any) -> None:
    agent = Agent("clerk", ScriptedModel([]), store=agent_store)
    with pytest.raises(ConfigurationError, match="give a prompt, or the conversation"):
        await agent.run()
    with pytest.raises(ConfigurationError, match="has no messages"):
        await agent.run(conversation="new")
    with pytest.raises(ConfigurationError, match="waits for no decision"):
        await agent.run(conversation="new", decisions=[])
    with pytest.raises(ConfigurationError, match="prompt"):
        await agent.run("   ")


def test_a_run_works_in_blocking_code() -> None:
    bank = Bank()
    result = Agent("clerk", ScriptedModel([calls("pay", amount=5), "Paid."]), bank.tools).run_sync("Pay.")
    assert (result.text, bank.paid) == ("Paid.", [5])


async def test_a_run_with_a_store_makes_no_more_records_than_its_turns(store: Store) -> None:
    bank = Bank()
    replies = [calls("pay", amount=1), calls("pay", amount=2), "Done."]
    agent = Agent("clerk", ScriptedModel(replies), bank.tools, store=store)
    await agent.run("Pay.", conversation="agent")
    session = Session(bank.tools, protocol="openai", store=store, conversation="session")
    for reply in replies[:2]:
        stream = session.stream()
        async for piece in ScriptedModel([reply]).stream(Request()):
            if not isinstance(piece, Usage):
                stream.feed(piece)
        await session.turn(stream.reply())
    counts = {
        name: [len(store.calls(run.run_id)) for run in store.runs(conversation=name)] for name in ("agent", "session")
    }
    assert counts["agent"] == counts["session"] == [1, 1]
    # The document: at the prompt and at the stop.
    assert store.document("agent").version == 2


@pytest.mark.parametrize(
    ("wrong", "message"), [({"budget": 5}, r"write Budget\(turns=20\)"), ({"caller": "ann"}, "Caller")]
)
async def test_wrong_options_of_a_run_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await Agent("clerk", ScriptedModel(["Hi."])).run("Hi.", **wrong)


async def test_a_price_that_is_none_is_refused_before_the_first_request() -> None:
    model = ScriptedModel(["Hi."], price=0.25)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="write Price"):
        await Agent("clerk", model).run("Hi.")
    assert model.requests == []
