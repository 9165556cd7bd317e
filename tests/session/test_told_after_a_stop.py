"""After a stop, all who read of a call read the same: begun or not, ended or not, may it be sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.session.till import calls
from toolwire import Decision, Session, ToolRegistry, ToolSpec, Turn
from toolwire.invocation.record import in_doubt
from toolwire.session.runs.resume import RunStore
from toolwire.types import ToolCompleted
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.failures import FAILURE_RULES, REPEATABLE
from toolwire.vocabulary.run_step import InDoubtStep

BEGUN = {"is_started": True, "is_ended": False, "may_repeat": False}
SEND = calls(("send", {"to": "ada"}))


class Post:
    """A tool that hangs in its first call, and the sessions that have it."""

    def __init__(self, idempotent: Any, store: RunStore) -> None:
        self.began = asyncio.Event()
        self.sent: list[str] = []
        self.told: list[ToolCompleted] = []
        self._idempotent, self._store = idempotent, store

    def session(self, permission: Any = "auto", **options: Any) -> Session:
        async def send(to: str) -> str:
            self.sent.append(to)
            self.began.set()
            if len(self.sent) == 1:
                await asyncio.Event().wait()
            return "sent"

        spec = ToolSpec.from_function(send, idempotent=self._idempotent, permission=permission)
        session = Session([spec], protocol="openai", store=self._store, **options)
        session.observe(lambda event: self.told.append(event) if isinstance(event, ToolCompleted) else None)
        return session

    async def cancelled(self) -> str:
        """Cancels a turn in the middle of its call, and returns the run's id."""
        turn = asyncio.create_task(self.session().turn(SEND))
        await self.began.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        return self.told[-1].call_id.rpartition("/")[0]


def only(turn: Turn) -> Any:
    [result] = turn.results
    assert result.failure is not None
    return result


async def test_an_observer_reads_that_a_cancelled_call_was_interrupted(store: RunStore) -> None:
    post = Post("no", store)
    await post.cancelled()
    assert [(event.status, event.error) for event in post.told] == [("interrupted", "'send' was interrupted.")]


async def test_the_person_reads_that_the_call_began_and_nothing_of_a_crash(store: RunStore) -> None:
    post = Post("no", store)
    turn = await post.session().resume(await post.cancelled())
    assert turn.suspended is not None
    [request] = turn.suspended.pending
    assert request.reasons[0].startswith("this may already have run: attempt 1 began ")
    assert ", and its end is not on record (idempotency key " in request.reasons[0]


async def test_the_model_reads_that_the_call_began_if_a_person_stops_the_run(store: RunStore) -> None:
    post = Post("no", store)
    run_id = await post.cancelled()
    turn = await post.session().resume(run_id)
    assert turn.suspended is not None
    [request] = turn.suspended.pending
    decision = Decision(verdict="stop_run", request_id=request.id, reason="enough")
    ended = only(await post.session().resume(run_id, [decision]))
    assert ended.text == (
        "'send' began before, and its end is not on record; it may not be run again: enough.\n"
        "It may have taken effect. Do not call it again; tell the user."
    )
    assert post.sent == ["ada"]


@pytest.mark.parametrize("idempotent", ["natural", "key"])
async def test_the_model_reads_that_a_repeatable_call_began_if_it_may_not_run_again(
    store: RunStore, idempotent: Any
) -> None:
    post = Post(idempotent, store)
    run_id = await post.cancelled()
    turn = await post.session("confirm").resume(run_id)
    assert turn.suspended is not None
    [request] = turn.suspended.pending
    assert ", and its end is not on record" in request.reasons[0]
    assert post.sent == ["ada"]
    done = await post.session("confirm").resume(run_id, [Decision(verdict="approve", request_id=request.id)])
    assert ([result.data for result in done.results], post.sent) == (["sent"], ["ada", "ada"])


async def test_a_repeatable_call_runs_again_by_itself(store: RunStore) -> None:
    post = Post("natural", store)
    turn = await post.session().resume(await post.cancelled())
    assert ([result.data for result in turn.results], post.sent) == (["sent"], ["ada", "ada"])


async def test_a_call_that_did_not_begin_is_told_so(store: RunStore) -> None:
    asked = asyncio.Event()

    async def approve(request: Any) -> Decision | None:
        asked.set()
        await asyncio.Event().wait()
        return None

    post = Post("no", store)
    turn = asyncio.create_task(post.session("confirm", approver=approve).turn(SEND))
    await asked.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert [(event.status, event.error) for event in post.told] == [
        ("interrupted", "'send' was interrupted before it began.")
    ]
    assert post.sent == []


@pytest.mark.parametrize(
    ("idempotent", "hint", "may_repeat"),
    [("no", FAILURE_RULES["timeout"].hint, False), ("natural", REPEATABLE, True)],
)
async def test_a_call_that_was_too_late_has_the_same_facts(
    store: RunStore, idempotent: Any, hint: str, may_repeat: bool
) -> None:
    async def send(to: str) -> None:
        await asyncio.Event().wait()

    registry = ToolRegistry()
    registry.register(ToolSpec.from_function(send, idempotent=idempotent), timeout_s=0.02)
    result = only(await Session(registry, protocol="openai", store=store).turn(SEND))
    assert (result.failure.kind, result.failure.hint) == ("timeout", hint)
    assert result.failure.data == {**BEGUN, "may_repeat": may_repeat}


def test_without_an_answer_the_model_reads_that_a_call_had_begun() -> None:
    hints: dict[Any, str] = {"natural": REPEATABLE, "key": FAILURE_RULES["unknown_outcome"].hint}
    for idempotent, hint in hints.items():
        doubt = InDoubtStep(idempotent=idempotent, is_composite=False, started_at=0.0, attempt=1, idempotency_key="k")
        result = in_doubt(ToolCall("send", {}), "no answer came", doubt)
        assert result.text == (
            f"'send' began before, and its end is not on record; it was not run again: no answer came.\n{hint}"
        )
        assert result.failure is not None
        assert result.failure.data == {**BEGUN, "may_repeat": idempotent == "natural"}
