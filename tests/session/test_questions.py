"""Questions that a tool asks while its call runs: answered at once, or days later by another process."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.session.till import calls, program, texts
from toolwire import (
    ApprovalRequest,
    CallContext,
    ConfigurationError,
    Decision,
    DecisionRefused,
    InputRequired,
    Question,
    QuestionDeclined,
    Session,
    ToolRegistry,
    ToolSpec,
    Turn,
)
from toolwire.session.runs.resume import RunStore

SIZE = {"type": "integer", "minimum": 1, "maximum": 9}


class Kitchen:
    """Tools that ask. `did` lists their effects, in order."""

    def __init__(self) -> None:
        self.did: list[Any] = []

    async def order(self, dish: str, context: CallContext) -> str:
        """Orders a dish."""
        self.did.append("came")
        size = await context.ask(f"How much {dish}?", SIZE)
        drink = await context.ask("And to drink?")
        self.did.append((dish, size, drink))
        return f"{size} x {dish} with {drink}"

    def fetch(self, dish: str, context: CallContext) -> str:
        """Fetches a dish, without an event loop."""
        self.did.append("came")
        size = context.ask(f"How much {dish}?", SIZE)
        self.did.append((dish, size))
        return f"{size} x {dish}"

    async def party(self, dish: str, context: CallContext) -> str:
        """Orders through another tool."""
        inner = await context.call("order", dish=dish)
        self.did.append("party")
        return f"party: {inner.text}"

    async def book(self, day: str, context: CallContext) -> Any:
        """Books a table by rounds of questions."""
        self.did.append(("round", context.state, dict(context.answers)))
        if context.state is None:
            guests = {"guests": Question("How many?", SIZE), "name": Question("For whom?")}
            return InputRequired(guests, state={"day": day, "round": 1})
        if context.state["round"] == 1:
            return InputRequired(
                {"sure": Question("Sure?", {"type": "boolean"})}, state={"round": 2, **context.answers}
            )
        return f"{context.state['guests']} for {context.state['name']}: {context.answers['sure']}"

    def session(self, store: RunStore | None, **options: Any) -> Session:
        tools = [self.order, self.fetch, self.party, self.book]
        return Session(
            [*tools, *options.pop("tools", ())], protocol=options.pop("protocol", "openai"), store=store, **options
        )


def waiting(turn: Turn) -> tuple[ApprovalRequest, ...]:
    assert turn.suspended is not None
    return turn.suspended.pending


def answered(request: ApprovalRequest, answer: Any) -> list[dict[str, Any]]:
    return [{"request_id": request.id, "verdict": "answer", "answer": answer}]


def answers(*given: Any) -> Any:
    """An approver that gives these answers in order, and keeps the questions."""
    rest = iter(given)

    def approver(request: ApprovalRequest) -> Decision | None:
        assert request.kind == "question"
        return Decision(verdict="answer", answer=next(rest))

    return approver


ORDER = ("order", {"dish": "soup"})
FETCH = ("fetch", {"dish": "soup"})


async def test_an_approver_answers_while_the_tool_waits(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store, approver=answers(2, "tea")).turn(calls(ORDER))
    assert texts(turn.messages) == ["2 x soup with tea"]
    assert kitchen.did == ["came", ("soup", 2, "tea")]


async def test_a_sync_tool_gets_the_answer_itself(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store, approver=answers(2)).turn(calls(FETCH))
    assert (texts(turn.messages), kitchen.did) == (["2 x soup"], ["came", ("soup", 2)])


async def test_a_question_is_a_request_with_a_text_and_a_schema(store: RunStore) -> None:
    turn = await Kitchen().session(store).turn(calls(ORDER))
    (request,) = waiting(turn)
    assert (request.kind, request.question, request.answer_schema) == ("question", "How much soup?", SIZE)
    assert (request.tool, dict(request.arguments), request.call_id) == ("order", {}, f"{request.run_id}/1?1")


async def test_a_question_is_answered_in_another_session_and_the_tool_is_called_again(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(ORDER))
    (first,) = waiting(turn)
    turn = await kitchen.session(store).resume(first.run_id, answered(first, 2))
    (second,) = waiting(turn)
    assert second.question == "And to drink?"
    turn = await kitchen.session(store).resume(first.run_id, answered(second, "tea"))
    assert texts(turn.messages) == ["2 x soup with tea"]
    assert kitchen.did == ["came", "came", "came", ("soup", 2, "tea")]


async def test_a_sync_tool_is_suspended_at_its_question_too(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(FETCH))
    (request,) = waiting(turn)
    turn = await kitchen.session(store).resume(request.run_id, answered(request, 3))
    assert texts(turn.messages) == ["3 x soup"]


async def test_resuming_twice_runs_nothing_again(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(FETCH))
    (request,) = waiting(turn)
    done = [await kitchen.session(store).resume(request.run_id, answered(request, 3)) for _ in range(3)]
    assert [texts(each.messages) for each in done] == [["3 x soup"]] * 3
    assert kitchen.did == ["came", "came", ("soup", 3)]


@pytest.mark.parametrize("wrong", ["2", 0, 10, None, 2.5, [2], {"size": 2}, True])
async def test_an_answer_that_does_not_fit_is_refused_and_the_question_waits(store: RunStore, wrong: Any) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(FETCH))
    (request,) = waiting(turn)
    with pytest.raises(DecisionRefused) as refused:
        await kitchen.session(store).resume(request.run_id, answered(request, wrong))
    assert refused.value.code == "invalid_answer"
    with pytest.raises(DecisionRefused) as refused:
        store.decide(request.id, Decision(verdict="answer", answer=wrong))
    assert refused.value.code == "invalid_answer"
    assert store.pending(request.run_id) == [request]
    turn = await kitchen.session(store).resume(request.run_id, answered(request, 2))
    assert texts(turn.messages) == ["2 x soup"]


async def test_a_wrong_answer_of_an_approver_leaves_the_question_waiting(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store, approver=answers("much")).turn(calls(FETCH))
    (request,) = waiting(turn)
    assert (request.question, kitchen.did) == ("How much soup?", ["came"])


@pytest.mark.parametrize("given", [{"verdict": "approve"}, {"verdict": "edit", "arguments": {"dish": "cake"}}])
async def test_a_question_cannot_be_approved(store: RunStore, given: dict[str, Any]) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(FETCH))
    (request,) = waiting(turn)
    with pytest.raises(DecisionRefused, match=r"is a question.* write verdict='answer' with answer=") as refused:
        await kitchen.session(store).resume(request.run_id, [{"request_id": request.id, **given}])
    assert refused.value.code == "invalid_answer"
    with pytest.raises(DecisionRefused) as refused:
        store.decide(request.id, Decision(**given))
    assert (refused.value.code, kitchen.did) == ("invalid_answer", ["came"])


async def test_an_approval_cannot_be_answered(store: RunStore) -> None:
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    tool = ToolSpec.from_function(pay, permission="confirm")
    session = Kitchen().session(
        store, tools=[tool], approver=lambda _: Decision(verdict="answer", answer={"amount": 1})
    )
    turn = await session.turn(calls(("pay", {"amount": 5})))
    (request,) = waiting(turn)
    with pytest.raises(DecisionRefused, match=r"is a request for approval.* write 'approve' or 'edit'") as refused:
        store.decide(request.id, Decision(verdict="answer", answer=True))
    assert (refused.value.code, paid) == ("invalid_answer", [])
    turn = await session.resume(request.run_id, [{"request_id": request.id, "verdict": "approve"}])
    assert (texts(turn.messages), paid) == (["paid"], [5])


async def test_a_question_lets_no_confirmed_tool_run(store: RunStore) -> None:
    kitchen = Kitchen()
    tool = ToolSpec.from_function(kitchen.fetch, name="buy", permission="confirm")
    session = kitchen.session(store, tools=[tool])
    turn = await session.turn(calls(("buy", {"dish": "soup"})))
    (approval,) = waiting(turn)
    assert (approval.kind, kitchen.did) == ("approval", [])
    turn = await session.resume(approval.run_id, [{"request_id": approval.id, "verdict": "approve"}])
    (question,) = waiting(turn)
    assert (question.kind, kitchen.did) == ("question", ["came"])
    turn = await session.resume(approval.run_id, answered(question, 2))
    assert (texts(turn.messages), kitchen.did) == (["2 x soup"], ["came", "came", ("soup", 2)])


async def test_the_model_reads_that_the_person_declined(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(FETCH))
    (request,) = waiting(turn)
    decisions = [{"request_id": request.id, "verdict": "deny", "reason": "not hungry"}]
    turn = await kitchen.session(store).resume(request.run_id, decisions)
    (text,) = texts(turn.messages)
    assert text.split("\n") == [
        "'fetch' was stopped at its question: the person declined to answer 'How much soup?': not hungry.",
        "Do not ask again; find another way or tell the user.",
    ]
    assert turn.results[0].failure is not None
    assert turn.results[0].failure.kind == "denied"


async def test_a_tool_can_go_on_without_an_answer(store: RunStore) -> None:
    async def tip(context: CallContext) -> str:
        """Tips."""
        try:
            return f"tip {await context.ask('How much tip?', SIZE)}"
        except QuestionDeclined as declined:
            return f"no tip: {declined.reason}"

    session = Kitchen().session(store, tools=[tip])
    turn = await session.turn(calls(("tip", {})))
    (request,) = waiting(turn)
    turn = await session.resume(request.run_id, [{"request_id": request.id, "verdict": "deny", "reason": "stingy"}])
    assert texts(turn.messages) == ["no tip: stingy"]


async def test_a_person_can_stop_the_run_at_a_question(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(FETCH, FETCH))
    first, _ = waiting(turn)
    decisions = [{"request_id": first.id, "verdict": "stop_run", "reason": "closed"}]
    turn = await kitchen.session(store).resume(first.run_id, decisions)
    assert [result.success for result in turn.results] == [False, False]
    assert "closed" in texts(turn.messages)[0]
    assert ("soup", 2) not in kitchen.did


async def test_without_a_person_and_a_store_the_call_says_so() -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(None).turn(calls(FETCH))
    failure = turn.results[0].failure
    assert failure is not None
    assert (failure.kind, kitchen.did) == ("approval_required", ["came"])
    assert texts(turn.messages)[0].startswith(
        "'fetch' was stopped at its question: a person has to answer, and no answer came."
    )


async def test_questions_of_a_tool_that_another_tool_calls_wait_too(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(("party", {"dish": "cake"})))
    (request,) = waiting(turn)
    assert request.call_id == f"{request.run_id}/1/1?1"
    turn = await kitchen.session(store).resume(request.run_id, answered(request, 5))
    (request,) = waiting(turn)
    turn = await kitchen.session(store).resume(request.run_id, answered(request, "wine"))
    assert texts(turn.messages) == ["party: 5 x cake with wine"]
    assert kitchen.did == ["came", "came", "came", ("cake", 5, "wine"), "party"]


async def test_questions_inside_a_program_wait_too(store: RunStore) -> None:
    kitchen = Kitchen()
    code = 'first = await order(dish="soup")\nprint(first)\nprint(await fetch(dish="cake"))'
    turn = await kitchen.session(store, protocol="attp").turn(program(code))
    for answer in (2, "tea", 3):
        (request,) = waiting(turn)
        turn = await kitchen.session(store, protocol="attp").resume(request.run_id, answered(request, answer))
    assert turn.results[0].data == "2 x soup with tea\n3 x cake\n"
    assert [one for one in kitchen.did if one != "came"] == [("soup", 2, "tea"), ("cake", 3)]


async def test_a_tool_returns_its_questions_and_is_called_again_with_state(store: RunStore) -> None:
    kitchen = Kitchen()
    turn = await kitchen.session(store).turn(calls(("book", {"day": "Monday"})))
    guests, name = waiting(turn)
    turn = await kitchen.session(store).resume(guests.run_id, answered(name, "Ada"))
    assert waiting(turn) == (guests,)
    turn = await kitchen.session(store).resume(guests.run_id, answered(guests, 4))
    (sure,) = waiting(turn)
    turn = await kitchen.session(store).resume(guests.run_id, answered(sure, True))
    assert texts(turn.messages) == ["4 for Ada: True"]
    given = {"guests": 4, "name": "Ada"}
    assert kitchen.did == [
        ("round", None, {}),
        ("round", {"day": "Monday", "round": 1}, given),
        ("round", {"round": 2, **given}, {"sure": True}),
    ]


async def test_returned_questions_are_answered_at_once_by_an_approver(store: RunStore) -> None:
    turn = await Kitchen().session(store, approver=answers(4, "Ada", False)).turn(calls(("book", {"day": "Monday"})))
    assert texts(turn.messages) == ["4 for Ada: False"]


async def test_a_declined_question_of_a_round_is_a_value(store: RunStore) -> None:
    async def pick(context: CallContext) -> Any:
        """Picks."""
        if not context.answers:
            return InputRequired({"a": Question("A?"), "b": Question("B?")})
        return {name: str(answer) for name, answer in context.answers.items()}

    def approver(request: ApprovalRequest) -> Decision:
        return (
            Decision(verdict="deny", reason="no") if "A" in request.question else Decision(verdict="answer", answer="b")
        )

    turn = await Kitchen().session(store, tools=[pick], approver=approver).turn(calls(("pick", {})))
    assert turn.results[0].data == {"a": "the approver declined to answer 'A?': no", "b": "b"}


async def begun(session: Session, reply: dict[str, Any], reached: asyncio.Event) -> None:
    """Cancels a turn when its tool has come so far. Its record is then that of a killed process."""
    turn = asyncio.ensure_future(session.turn(reply))
    await asyncio.wait_for(reached.wait(), PATIENCE_S)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@pytest.mark.parametrize("is_past", [False, True])
async def test_a_tool_that_ran_on_after_an_answer_is_in_doubt_and_one_that_waited_is_not(
    store: RunStore, is_past: bool
) -> None:
    paid: list[str] = []
    reached, run_ids = asyncio.Event(), []

    async def pay(context: CallContext) -> str:
        """Pays."""
        run_ids.append(context.call_id.partition("/")[0])
        amount = await context.ask("How much?", SIZE)
        paid.append(amount)
        if len(run_ids) == 1:
            reached.set()
            await asyncio.Event().wait()
        return f"paid {amount}"

    async def approver(request: ApprovalRequest) -> Decision | None:
        if is_past:
            return Decision(verdict="answer", answer=5)
        reached.set()
        return await asyncio.Event().wait() and None

    await begun(Kitchen().session(store, tools=[pay], approver=approver), calls(("pay", {})), reached)
    session = Kitchen().session(store, tools=[pay])
    turn = await session.resume(run_ids[0])
    (request,) = waiting(turn)
    if is_past:
        assert (request.kind, request.attempt, paid) == ("approval", 2, [5])
        assert "this may already have run" in request.reasons[0]
        turn = await session.resume(request.run_id, [{"request_id": request.id, "verdict": "approve"}])
        assert (texts(turn.messages), paid) == (["paid 5"], [5, 5])
    else:
        assert (request.kind, request.question, paid) == ("question", "How much?", [])
        turn = await session.resume(request.run_id, answered(request, 5))
        assert (texts(turn.messages), paid) == (["paid 5"], [5])


async def test_a_tool_that_ran_on_with_one_of_two_answers_is_in_doubt(store: RunStore) -> None:
    reached, run_ids = asyncio.Event(), []

    async def pay(context: CallContext) -> Any:
        """Asks two questions at once, and runs on with the first answer."""
        run_ids.append(context.call_id.partition("/")[0])
        return await asyncio.gather(paid(context), context.ask("B?"))

    async def paid(context: CallContext) -> None:
        await context.ask("A?")
        reached.set()

    other = asyncio.Event()

    async def approver(request: ApprovalRequest) -> Decision | None:
        if request.question == "A?":
            await other.wait()
            return Decision(verdict="answer", answer="a")
        other.set()
        return await asyncio.Event().wait() and None

    await begun(Kitchen().session(store, tools=[pay], approver=approver), calls(("pay", {})), reached)
    turn = await Kitchen().session(store, tools=[pay]).resume(run_ids[0])
    assert {(request.kind, request.attempt) for request in waiting(turn)} == {("question", 1), ("approval", 2)}


async def test_a_tool_that_asks_another_question_than_the_recorded_one_is_stopped(store: RunStore) -> None:
    asked = iter(["At 8:00?", "At 8:01?"])

    async def meet(context: CallContext) -> str:
        """Meets."""
        return str(await context.ask(next(asked)))

    session = Kitchen().session(store, tools=[meet])
    (request,) = waiting(await session.turn(calls(("meet", {}))))
    turn = await session.resume(request.run_id, answered(request, "yes"))
    failure = turn.results[0].failure
    assert failure is not None
    assert failure.kind == "approval_mismatch"
    assert texts(turn.messages)[0].startswith("'meet' was stopped: it asked another question than the one on record.")


@pytest.mark.parametrize(("count", "kind"), [(100, None), (101, "limit")])
async def test_one_call_asks_at_most_100_questions(count: int, kind: str | None) -> None:
    async def nag(context: CallContext) -> int:
        """Nags."""
        for place in range(count):
            await context.ask(f"Really {place}?")
        return count

    session = Kitchen().session(None, tools=[nag], approver=lambda _: Decision(verdict="answer", answer="yes"))
    (result,) = (await session.turn(calls(("nag", {})))).results
    assert (result.failure and result.failure.kind) == kind


async def test_a_wrong_schema_or_text_is_told_to_the_tool() -> None:
    told: list[str] = []

    async def wrong(context: CallContext) -> str:
        """Asks wrongly."""
        for message, schema in (
            ("", None),
            ("x" * 16_385, None),
            ("A?", {"type": "colour"}),
            ("A?", {"$ref": "http://x"}),
        ):
            try:
                await context.ask(message, schema)
            except ConfigurationError as error:
                told.append(str(error))
        return await context.ask("x" * 16_384)

    turn = await Kitchen().session(None, tools=[wrong], approver=answers("fine")).turn(calls(("wrong", {})))
    assert (texts(turn.messages), len(told)) == (["fine"], 4)


async def test_a_hostile_pattern_in_the_schema_does_not_hold_the_host() -> None:
    """The pattern would take hours with Python's own engine."""

    async def trap(context: CallContext) -> str:
        """Asks."""
        return await context.ask("Which?", {"type": "string", "pattern": "^(a+)+$"})

    session = Kitchen().session(None, tools=[trap], approver=answers("a" * 50_000 + "!"))
    began = time.process_time()
    turn = await session.turn(calls(("trap", {})))
    failure = turn.results[0].failure
    assert failure is not None
    assert failure.kind == "approval_required"
    assert time.process_time() - began < 5


@pytest.mark.parametrize("made", [ORDER, FETCH])
async def test_the_wait_for_a_person_does_not_count_towards_the_time_limit(made: tuple[str, dict[str, Any]]) -> None:
    kitchen = Kitchen()
    registry = ToolRegistry()
    for tool in (kitchen.order, kitchen.fetch):
        registry.register(tool, timeout_s=0.3)

    async def approver(request: ApprovalRequest) -> Decision:
        await asyncio.sleep(0.5)
        return Decision(verdict="answer", answer=2 if request.answer_schema == SIZE else "tea")

    turn = await Session(registry, protocol="openai", approver=approver).turn(calls(made))
    assert turn.results[0].success


@pytest.mark.parametrize("made", [ORDER, FETCH])
async def test_the_time_limit_counts_before_and_after_the_wait(made: tuple[str, dict[str, Any]]) -> None:
    """The control of the test above: the tool itself takes too long, beside its question."""

    async def slow(context: CallContext) -> None:
        """Is slow."""
        await context.ask("A?")
        await asyncio.Event().wait()

    registry = ToolRegistry()
    registry.register(slow, timeout_s=0.3)

    async def approver(_: ApprovalRequest) -> Decision:
        await asyncio.sleep(0.5)
        return Decision(verdict="answer", answer="a")

    turn = await Session(registry, protocol="openai", approver=approver).turn(calls(("slow", {})))
    assert (failure := turn.results[0].failure) is not None
    assert failure.kind == "timeout"


async def test_a_cancelled_turn_frees_the_thread_of_a_sync_tool_that_waits() -> None:
    ended, reached = threading.Event(), asyncio.Event()

    def wait(context: CallContext) -> None:
        """Waits."""
        try:
            context.ask("A?")
        finally:
            ended.set()

    async def approver(_: ApprovalRequest) -> Decision | None:
        reached.set()
        return await asyncio.Event().wait() and None

    await begun(Kitchen().session(None, tools=[wait], approver=approver), calls(("wait", {})), reached)
    assert await asyncio.to_thread(ended.wait, PATIENCE_S)


async def test_questions_side_by_side_come_at_once(store: RunStore) -> None:
    async def both(context: CallContext) -> Any:
        """Asks two questions at once."""
        return await asyncio.gather(context.ask("A?"), context.ask("B?"))

    session = Kitchen().session(store, tools=[both])
    turn = await session.turn(calls(("both", {})))
    first = waiting(turn)
    assert [request.question for request in first] in (["A?"], ["A?", "B?"])
