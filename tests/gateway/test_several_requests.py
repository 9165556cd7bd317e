"""A form, a sample and roots that a server wants in one answer reach a client of 2026-07-28 in one answer too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.gateway.test_client_features import RULES, Gateway, Person, text_of
from tests.patience import PATIENCE_S
from toolwire import Decision, Store, ToolResult, ToolServer
from toolwire.gateway import held_calls
from toolwire.gateway.held_calls import HeldCall, HeldCalls
from toolwire.mcp.client_limits import QUESTIONS
from toolwire.mcp.values.task_values import TASKS_EXTENSION
from toolwire.vocabulary.calls import ToolCall

NAMES = ["form", "sample", "roots"]
FORM, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
GIVEN: dict[str, Any] = {
    FORM: types.ElicitResult(action="accept", content={"who": "mine"}),
    SAMPLE: types.CreateMessageResult(role="assistant", model="ada", content=types.TextContent(text="four")),
    ROOTS: types.ListRootsResult(roots=[types.Root(uri=cast("Any", "file:///home/ada"))]),
}
DONE = "ada: four | file:///home/ada"
MADE = [("w/sampling:create", "success"), ("w/roots:list", "success"), ("w/want", "success")]


async def fill(context: Any, params: Any) -> types.ElicitResult:
    return GIVEN[FORM]


class Front:
    """Gateways in front of one such server, each as a process with the same store would be."""

    def __init__(self, folder: Path, rules: Any = None) -> None:
        self.gateway = Gateway("auto", ["sampling", "roots"], rules)
        self.person = Person()
        self.url = f"sqlite:///{folder}/runs.db"

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncGenerator[Client]:
        """A client of a new gateway."""
        server = ToolServer(self.gateway.registry, "gateway", store=self.url).in_memory()
        async with Client(server, elicitation_callback=fill, **self.person.callbacks, **options) as client:
            yield client

    def decide(self, content: dict[str, Any]) -> None:
        """Answers the form that waits in the store, as another process does."""
        with Store.open(self.url) as store:
            (request,) = store.pending()
            store.decide(request.id, Decision(verdict="answer", answer=content))


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    made = Front(tmp_path)
    yield made
    made.gateway.registry.close()


async def call(client: Client, asked: Any = None, given: Any = None, names: Any = None) -> Any:
    """Calls, or goes on with the answers to what was asked."""
    state = None if asked is None else asked.request_state
    more: dict[str, Any] = {"input_responses": given, "request_state": state, "allow_input_required": True}
    return await client.session.call_tool("w_want", {"names": names or NAMES}, **more)


def methods(asked: Any) -> list[str]:
    return sorted(request.method for request in asked.input_requests.values())


def answers(asked: Any, *which: str) -> dict[str, Any]:
    """The right answers to the requests with these methods; to all without one."""
    wanted = asked.input_requests.items()
    return {key: GIVEN[one.method] for key, one in wanted if not which or one.method in which}


async def test_the_three_go_out_in_one_answer_and_are_answered_by_one_request(front: Front) -> None:
    async with front.client() as client:
        asked = await call(client)
        assert methods(asked) == [FORM, ROOTS, SAMPLE]
        assert text_of(await call(client, asked, answers(asked))) == DONE
    assert front.gateway.asked == [",".join(NAMES)] * 2
    assert sorted(front.gateway.calls()) == sorted(MADE)


async def test_the_sdks_client_answers_the_three_by_itself(front: Front) -> None:
    async with front.client() as client:
        assert text_of(await client.call_tool("w_want", {"names": NAMES})) == DONE
    assert (len(front.person.prompts), len(front.gateway.asked)) == (1, 2)


async def test_two_equal_requests_have_an_answer_each(front: Front) -> None:
    names = ["sample1", "form", "sample2"]
    async with front.client() as client:
        asked = await call(client, names=names)
        given = answers(asked)
        first, second = (key for key, one in asked.input_requests.items() if one.method == SAMPLE)
        given[second] = given[first].model_copy(update={"model": "bob"})
        result = await call(client, asked, given, names)
    # Which of the two is which makes no difference.
    assert sorted(text_of(result).split(" | ")) == ["ada: four", "bob: four"]


@pytest.mark.parametrize("one", [FORM, SAMPLE, ROOTS])
async def test_what_got_no_answer_is_asked_again_and_nothing_else(front: Front, one: str) -> None:
    async with front.client() as client:
        asked = await call(client)
        again = await call(client, asked, answers(asked, one))
        assert methods(again) == sorted({FORM, SAMPLE, ROOTS} - {one})
        # An answer is also kept if a further request brings none.
        again = await call(client, again)
        assert methods(again) == sorted({FORM, SAMPLE, ROOTS} - {one})
        assert text_of(await call(client, again, answers(again))) == DONE
    assert sorted(front.gateway.calls()) == sorted(MADE)


async def test_without_a_form_what_got_no_answer_is_asked_again(front: Front) -> None:
    names = ["sample", "roots"]
    async with front.client() as client:
        asked = await call(client, names=names)
        assert methods(asked) == [ROOTS, SAMPLE]
        again = await call(client, asked, answers(asked, ROOTS), names)
        assert methods(again) == [SAMPLE]
        assert text_of(await call(client, again, answers(again), names)) == DONE


@pytest.mark.parametrize("by", ["the client", "another process"])
async def test_a_form_among_three_outlives_the_process(front: Front, tmp_path: Path, by: str) -> None:
    async with front.client() as client:
        asked = await call(client)
    later, given = Front(tmp_path), answers(asked)
    if by == "another process":
        front.decide({"who": "mine"})
        given = answers(asked, SAMPLE, ROOTS)
    async with later.client() as client:
        # The form has its answer. What waited in memory is asked again.
        again = await call(client, asked, given)
        assert methods(again) == [ROOTS, SAMPLE]
        assert text_of(await call(client, again, answers(again))) == DONE
    assert len(later.gateway.asked) == 1
    later.gateway.registry.close()


async def test_after_ten_minutes_the_form_still_waits_and_the_others_are_asked_again(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_calls, "HELD_S", 0.5)
    async with front.client() as client:
        asked = await call(client)
        with anyio.fail_after(PATIENCE_S):
            while len(front.gateway.calls()) < 2:  # noqa: ASYNC110 - a timer of the server ends both
                await anyio.sleep(0.01)
        monkeypatch.undo()
        again = await call(client, asked, answers(asked))
        assert methods(again) == [ROOTS, SAMPLE]
        assert text_of(await call(client, again, answers(again))) == DONE


@pytest.mark.parametrize(("calls", "is_kept"), [(1, True), (2, False)])
async def test_so_many_calls_wait_along_with_their_forms(
    front: Front, monkeypatch: pytest.MonkeyPatch, calls: int, is_kept: bool
) -> None:
    monkeypatch.setattr(held_calls, "IDLE_CALLS", 1)
    names = ["form", "roots"]
    async with front.client() as client:
        first, *_ = [await call(client, names=names) for _ in range(calls)]
        again = await call(client, first, answers(first, ROOTS), names)
        last = await call(client, again, answers(again, FORM), names)
        assert isinstance(last, types.CallToolResult) == is_kept
        # One more only costs a further request.
        assert is_kept or text_of(await call(client, last, answers(last), names)) == "file:///home/ada"


@pytest.mark.parametrize(("settle_s", "asked"), [(PATIENCE_S, 2), (0.01, 1)])
async def test_a_request_waits_a_moment_for_one_that_is_still_judged(
    monkeypatch: pytest.MonkeyPatch, settle_s: float, asked: int
) -> None:
    monkeypatch.setattr(held_calls, "SETTLE_S", settle_s)
    held, is_judged = HeldCall(), asyncio.Event()

    async def make(wanted: ToolCall) -> ToolResult:
        if wanted.name == "slow":
            await is_judged.wait()
        return ToolResult(True, await held.ask(types.ListRootsRequest()))

    async def work() -> ToolResult:
        assert await held.begin([ToolCall("fast"), ToolCall("slow")], make) == [None, None]
        await held.pass_on(ToolCall("fast"), make)
        return await held.pass_on(ToolCall("slow"), make)

    asyncio.get_running_loop().call_later(0.1, is_judged.set)
    held.start(work(), lambda _: None)
    first = await held.next_answer()
    assert isinstance(first, types.InputRequiredResult)
    assert len(first.input_requests or {}) == asked
    held.give(answers(first))
    if asked == 1:
        second = await held.next_answer()
        assert isinstance(second, types.InputRequiredResult)
        held.give(answers(second))
    assert await held.next_answer() == ToolResult(True, GIVEN[ROOTS])


async def test_questions_of_a_tool_that_asks_several_at_once_are_one_answer() -> None:
    held = HeldCall()

    async def work() -> ToolResult:
        said = await asyncio.gather(*(held.ask(types.ListRootsRequest()) for _ in range(3)))
        return ToolResult(True, len(said))

    held.start(work(), lambda _: None)
    asked = await held.next_answer()
    assert methods(asked) == [ROOTS] * 3
    one, *others = answers(asked)
    held.give({one: GIVEN[ROOTS]})
    again: Any = await held.next_answer()
    assert list(again.input_requests) == others
    held.give(answers(again))
    assert await held.next_answer() == ToolResult(True, 3)


@pytest.mark.parametrize("more", [0, 1])
async def test_ten_requests_are_one_answer_and_eleven_are_none(front: Front, more: int) -> None:
    names = ["form", *(f"sample{n}" for n in range(QUESTIONS - 1 + more))]
    async with front.client() as client:
        asked = await call(client, names=names)
        if not more:
            assert methods(asked) == [FORM, *[SAMPLE] * (QUESTIONS - 1)]
            asked = await call(client, asked, answers(asked), names)
    said = "the server needs sampling/createMessage: the server asked 10 times in this call already"
    assert text_of(asked) == (said if more else " | ".join(["ada: four"] * (QUESTIONS - 1)))


async def test_a_rule_denies_one_before_the_client_is_asked_for_any(tmp_path: Path) -> None:
    front = Front(tmp_path, [{"tool": "w/sampling:create", "effect": "deny", "optional": True}, *RULES])
    async with front.client() as client:
        result = await call(client)
    assert text_of(result).startswith("the server needs sampling/createMessage: 'w/sampling:create' ")
    assert (result.is_error, len(front.gateway.asked)) == (True, 1)
    with Store.open(front.url) as store:
        assert store.pending() == []
    front.gateway.registry.close()


async def test_an_older_client_is_asked_one_after_another_up_to_a_refusal(tmp_path: Path) -> None:
    front = Front(tmp_path, [{"tool": "w/roots:list", "effect": "deny", "optional": True}, *RULES])
    async with front.client(mode="legacy") as client:
        result = await client.call_tool("w_want", {"names": ["sample1", "roots", "sample2", "form"]})
    assert (result.is_error, len(front.gateway.asked), len(front.person.prompts)) == (True, 1, 1)
    assert front.gateway.calls()[:2] == [("w/sampling:create", "success"), ("w/roots:list", "denied")]
    front.gateway.registry.close()


async def test_a_client_that_takes_tasks_answers_the_three_in_the_call(front: Front) -> None:
    async with front.client(extensions=[advertise(TASKS_EXTENSION)]) as client:
        asked = await call(client)
        again = await call(client, asked, answers(asked, ROOTS))
        assert methods(again) == [FORM, SAMPLE]
        assert text_of(await call(client, again, answers(again))) == DONE


# -- a client that answers wrongly; `answers(asked)`, the right ones, is the control ----------------------------------


async def test_answers_to_what_was_never_asked_are_ignored(front: Front) -> None:
    async with front.client() as client:
        asked = await call(client)
        made_up = {f"{key}0": answer for key, answer in answers(asked).items()}
        again = await call(client, asked, {**made_up, "question 1": GIVEN[SAMPLE]})
        assert (methods(again), len(front.gateway.asked)) == (methods(asked), 1)
        assert text_of(await call(client, again, answers(again))) == DONE


@pytest.mark.parametrize(("to", "given"), [(SAMPLE, ROOTS), (SAMPLE, FORM), (ROOTS, SAMPLE)])
async def test_a_wrong_answer_to_a_request_that_waits_in_memory_ends_the_call(
    front: Front, to: str, given: str
) -> None:
    async with front.client() as client:
        asked = await call(client)
        wrong = dict.fromkeys(answers(asked, to), GIVEN[given])
        result = await call(client, asked, {**answers(asked), **wrong})
    assert text_of(result) == f"the server needs {to}: the client's answer does not fit the protocol"
    assert (result.is_error, len(front.gateway.asked)) == (True, 1)


async def test_a_wrong_answer_to_the_form_decides_nothing(front: Front) -> None:
    async with front.client() as client:
        asked = await call(client)
        again = await call(client, asked, {**answers(asked), "form": GIVEN[SAMPLE]})
        assert (methods(again), len(front.gateway.asked)) == ([FORM], 1)
        assert text_of(await call(client, again, answers(again))) == DONE


async def test_the_first_answer_to_a_request_stands(front: Front) -> None:
    async with front.client() as client:
        asked = await call(client)
        await call(client, asked, answers(asked, SAMPLE))
        (key,) = answers(asked, SAMPLE)
        other = {key: GIVEN[SAMPLE].model_copy(update={"model": "bob"})}
        assert text_of(await call(client, asked, {**answers(asked), **other})) == DONE


async def test_all_answers_sent_twice_reach_the_server_once(front: Front) -> None:
    async with front.client() as client:
        asked = await call(client)
        results = list[str]()

        async def send() -> None:
            results.append(text_of(await call(client, asked, answers(asked))))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            tasks.start_soon(send)
        await send()
    assert (results, len(front.gateway.asked)) == ([DONE] * 3, 2)


async def test_a_call_that_goes_on_with_its_answers_is_found_by_the_same_state() -> None:
    calls, held, goes_on = HeldCalls(), HeldCall(), asyncio.Event()

    async def work() -> ToolResult:
        await goes_on.wait()
        return ToolResult(True, 1)

    calls.start(held, work())
    state = json.dumps({"run": "r_1", "along": held.id})
    assert (calls.find(state), calls.find(json.dumps({"run": "r_1"}))) == (held, None)
    goes_on.set()
    assert await calls.go_on(calls.find(state), None) == ToolResult(True, 1)
    assert calls.find(state) is None


async def test_a_state_of_another_call_brings_it_nothing(front: Front) -> None:
    async with front.client() as client:
        asked = await call(client)
        with pytest.raises(MCPError) as refused:
            await call(client, asked, answers(asked), names=["form", "sample"])
        assert refused.value.code == types.INVALID_PARAMS
        assert text_of(await call(client, asked, answers(asked))) == DONE
