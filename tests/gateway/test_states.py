"""The state that a client sends back: single use, bound to its call and its principal, and good in another process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateBoundary
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.gateway.conftest import Served
from tests.gateway.served_tools import nap, new_registry, note
from tests.gateway.test_asking_clients import effects, told
from tests.patience import until
from toolwire import CallContext, InputRequired, Question, ToolRegistry, ToolServer
from toolwire.gateway import served_calls

YES = {"decision": "once"}
INVALID = (types.INVALID_PARAMS, "Invalid or expired requestState")


async def never(context: Any, params: Any) -> types.ErrorData:
    """Lets the client promise forms. These tests answer them by hand."""
    raise AssertionError


@dataclass
class Waiting:
    """A call that waits for a person, as its client knows it."""

    client: Client
    arguments: dict[str, Any]
    asked: types.InputRequiredResult

    @property
    def state(self) -> str:
        assert self.asked.request_state is not None
        return self.asked.request_state

    async def send(
        self,
        content: dict[str, Any] | None = None,
        *,
        client: Client | None = None,
        name: str = "pay",
        state: str | None = None,
        **changed: Any,
    ) -> Any:
        """Sends the call with its state. `content` is the filled form."""
        said = {
            one: types.ElicitResult(action="accept", content=YES if content is None else content)  # type: ignore[arg-type]
            for one in self.asked.input_requests or {}
        }
        return await (client or self.client).session.call_tool(
            name,
            {**self.arguments, **changed},
            input_responses=said,
            request_state=self.state if state is None else state,
            allow_input_required=True,
        )

    async def refused(self, **given: Any) -> tuple[int, str]:
        with pytest.raises(MCPError) as error:
            await self.send(**given)
        return error.value.code, error.value.message


async def waiting(client: Client, record: Path, amount: int = 5) -> Waiting:
    arguments = {"amount": amount, "record": str(record)}
    asked = await client.session.call_tool("pay", arguments, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    return Waiting(client, arguments, asked)


@asynccontextmanager
async def connected(folder: Path, name: str = "tests", **options: Any) -> AsyncGenerator[Client]:
    server = ToolServer(new_registry(), name, store=f"sqlite:///{folder}/runs.db", **options)
    async with Client(server.in_memory(), elicitation_callback=never) as client:
        yield client


def said(result: Any) -> str:
    assert not result.is_error, result
    return result.content[0].text


async def test_the_same_state_gives_the_recorded_result_and_no_second_effect(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected(tmp_path) as client:
        call = await waiting(client, record)
        assert [said(await call.send()) for _ in range(3)] == ["paid 5"] * 3
        # The first choice counts.
        assert said(await call.send({"decision": "no"})) == "paid 5"
    assert effects(record) == ["5"]


@pytest.mark.timeout(3_600)
async def test_the_same_state_ten_times_side_by_side_has_one_effect(tmp_path: Path, whole: bool) -> None:
    record, calls = tmp_path / "record", 100 if whole else 5
    async with connected(tmp_path) as client:
        for amount in range(calls):
            call = await waiting(client, record, amount)
            results = await asyncio.gather(*(call.send() for _ in range(10)))
            assert [said(result) for result in results] == [f"paid {amount}"] * 10
    assert effects(record) == [str(amount) for amount in range(calls)]


@pytest.mark.parametrize(("busy_s", "outcome"), [(0.1, "unavailable"), (600.0, "success")])
async def test_a_state_waits_for_its_running_call_as_long_as_the_limit_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy_s: float, outcome: str
) -> None:
    monkeypatch.setattr(served_calls, "STATE_BUSY_S", busy_s)
    mark = str(tmp_path / "mark")
    registry = ToolRegistry()
    registry.register(nap, permission="confirm")
    server = ToolServer(registry, "tests", store=f"sqlite:///{tmp_path}/runs.db")
    async with Client(server.in_memory(), elicitation_callback=never) as client, anyio.create_task_group() as tasks:
        asked = await client.session.call_tool("nap", {"mark": mark}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        call = Waiting(client, {"mark": mark}, asked)

        async def first() -> None:
            assert said(await call.send(name="nap")) == "rested"

        tasks.start_soon(first)
        await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
        if outcome == "success":
            tasks.start_soon(asyncio.to_thread, note, f"{mark}.go", "")
        result = await call.send(name="nap")
        assert told(result)[0] == outcome
        note(f"{mark}.go", "")


async def test_two_processes_that_get_the_same_state_at_once_have_one_effect(
    tmp_path: Path, served: Callable[..., Served]
) -> None:
    record = tmp_path / "record"
    first, second = served(), served()
    async with (
        Client(first.url, elicitation_callback=never) as one,
        Client(second.url, elicitation_callback=never) as other,
    ):
        call = await waiting(one, record)
        results = await asyncio.gather(*(call.send(client=client) for client in [one, other] * 5))
    assert [said(result) for result in results] == ["paid 5"] * 10
    assert effects(record) == ["5"]


@pytest.mark.timeout(3_600)
async def test_a_server_killed_between_question_and_answer_goes_on_in_a_new_process(
    tmp_path: Path, served: Callable[..., Served], whole: bool
) -> None:
    record, kills = tmp_path / "record", 100 if whole else 1
    old = served()
    for amount in range(kills):
        async with Client(old.url, elicitation_callback=never) as client:
            call = await waiting(client, record, amount)
        old.kill()
        old = served()
        async with Client(old.url, elicitation_callback=never) as client:
            results = await asyncio.gather(*(call.send(client=client) for _ in range(10)))
        assert [said(result) for result in results] == [f"paid {amount}"] * 10
    assert effects(record) == [str(amount) for amount in range(kills)]


async def test_a_state_is_refused_with_other_arguments_or_for_another_tool(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected(tmp_path) as client:
        call = await waiting(client, record)
        assert await call.refused(amount=500) == INVALID
        assert await call.refused(name="add") == INVALID
        assert effects(record) == []
        # The control: the call itself goes on.
        assert said(await call.send()) == "paid 5"


async def test_an_edited_or_invented_state_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected(tmp_path) as client:
        call = await waiting(client, record)
        middle = len(call.state) // 2
        other = "A" if call.state[middle] != "A" else "B"
        edited = call.state[:middle] + other + call.state[middle + 1 :]
        run = json.dumps({"run": "r_anything"})
        for state in (edited, call.state[:-1], call.state + "A", run, "", "v1.", "v1.AAAA"):
            assert await call.refused(state=state) == INVALID, state
    assert effects(record) == []


async def test_an_expired_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = tmp_path / "record"
    now = time.time
    week = 7 * 86_400
    async with connected(tmp_path) as client:
        call = await waiting(client, record)
        monkeypatch.setattr(time, "time", lambda: now() + week + 1)
        assert await call.refused() == INVALID
        monkeypatch.setattr(time, "time", lambda: now() + week - 60)
        assert said(await call.send()) == "paid 5"
    assert effects(record) == ["5"]


async def test_a_state_of_another_server_or_store_is_refused(tmp_path: Path) -> None:
    record = tmp_path / "record"
    there = tmp_path / "there"
    there.mkdir()
    async with connected(tmp_path) as client, connected(tmp_path, "another") as renamed, connected(there) as foreign:
        call = await waiting(client, record)
        assert await call.refused(client=renamed) == INVALID
        assert await call.refused(client=foreign) == INVALID
    assert effects(record) == []


async def test_without_the_seal_an_invented_state_would_reach_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with the protection taken away, the attack gets past -32602 of the seal and runs the call."""

    async def open_door(_: RequestStateBoundary, context: Any, call_next: Any) -> Any:
        return await call_next(context)

    record = tmp_path / "record"
    monkeypatch.setattr(RequestStateBoundary, "__call__", open_door)
    async with connected(tmp_path) as client:
        call = await waiting(client, record)
        run = json.loads(call.state)["run"]
        assert said(await call.send(amount=500, state=json.dumps({"run": run}))) == "paid 5"


async def test_a_state_of_another_key_is_refused_although_it_has_the_right_form(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected(tmp_path) as client:
        call = await waiting(client, record)
        forged = AESGCMRequestStateCodec([b"k" * 32]).seal(b'{"v": 1, "iat": 0, "exp": 9e9, "s": "{}"}')
        assert await call.refused(state=forged) == INVALID


def ask_name(context: CallContext) -> Any:
    """Asks for a name."""
    if "user_name" not in context.answers:
        return InputRequired({"user_name": Question("Who?", {"type": "string"}), "x" * 129: Question("And why?")})
    return f"hello {context.answers['user_name']}"


async def test_a_form_has_the_name_that_its_tool_gave_and_may_be_filled_in_before_it_is_asked(tmp_path: Path) -> None:
    registry = new_registry()
    registry.register(ask_name)
    record = tmp_path / "record"
    server = ToolServer(registry, "tests", store=f"sqlite:///{tmp_path}/runs.db")
    async with Client(server.in_memory(), elicitation_callback=never) as client:

        async def sent(name: str, arguments: dict[str, Any], responses: Any, state: str | None = None) -> Any:
            return await client.session.call_tool(
                name, arguments, input_responses=responses, request_state=state, allow_input_required=True
            )

        ann, why = (types.ElicitResult(action="accept", content={"answer": said}) for said in ("Ann", "so"))
        asked = await sent("ask_name", {}, {"user_name": ann, "unknown": ann})
        # One question was answered at once. The other has its id as the key, because its name is too long.
        [key] = asked.input_requests
        assert (key != "user_name", len(key) < 128) == (True, True)
        assert said(await sent("ask_name", {}, {key: why}, asked.request_state)) == "hello Ann"
        # The control: no approval can be given before it is asked for.
        yes = types.ElicitResult(action="accept", content=YES)  # type: ignore[arg-type]
        asked = await sent("pay", {"amount": 1, "record": str(record)}, {"decision": yes, "": yes, "pay": yes})
        assert isinstance(asked, types.InputRequiredResult)
    assert effects(record) == []
