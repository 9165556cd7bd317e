"""A decision on a call is found once, by the same call: in a new session, after a restart, in another process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken

from mcp import Client, StdioServerParameters
from tests.gateway.conftest import Era, Served, serve_command
from tests.gateway.served_tools import new_registry, note, pay
from tests.gateway.serving import serving
from tests.gateway.test_asking_clients import FAILURE, Person, effects, told
from tests.gateway.test_states import YES, never
from tests.gateway.test_waiting_calls import unanswered
from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.patience import PATIENCE_S, until
from toolwire import Caller, ClientProfiles, Decision, DecisionRefused, Rule, Session, Store, ToolServer, ToolSpec
from toolwire.gateway import served_calls
from toolwire.gateway.http.app import OneToken

KEY = "the-token"
APPROVE = Decision(verdict="approve")


@asynccontextmanager
async def connected(at: str, token: str = "", **options: Any) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(at, http_client=http), **options) as client,
    ):
        yield client


async def sent(at: str, arguments: Any, token: str = "", *, name: str = "pay", **options: Any) -> Any:
    """Sends a call in a session of its own."""
    async with connected(at, token, **options) as client:
        return await client.call_tool(name, arguments)


def request_of(result: Any) -> str:
    assert told(result)[0] == "approval_required", result
    return result.meta[FAILURE]["requestId"]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def arguments(record: Path) -> dict[str, Any]:
    return {"amount": 5, "record": str(record)}


@pytest.mark.parametrize(("url", "era"), [("sqlite", "auto"), ("postgresql", "legacy")], indirect=["url"])
async def test_a_decision_is_found_once_after_a_restart_in_another_session(
    url: str, served: Callable[..., Served], arguments: dict[str, Any], record: Path, era: Era
) -> None:
    def start() -> Served:
        return served("--store", url, "--token-env", "KEY", env={"KEY": KEY})

    old = start()
    first = await sent(old.url, arguments, KEY, mode=era)
    # The same call waits on, under the same request.
    assert request_of(await sent(old.url, arguments, KEY, mode=era)) == request_of(first)
    old.kill()
    with Store.open(url) as store:
        store.decide(request_of(first), APPROVE)
    new = start()
    assert told(await sent(new.url, arguments, KEY, mode=era)) == ("success", "paid 5")
    again = request_of(await sent(new.url, arguments, KEY, mode=era))
    assert (again != request_of(first), effects(record)) == (True, ["5"])


async def test_two_processes_that_get_the_same_call_at_once_run_it_once(
    url: str, served: Callable[..., Served], arguments: dict[str, Any], record: Path
) -> None:
    first, second = (served("--store", url, "--token-env", "KEY", env={"KEY": KEY}) for _ in range(2))
    async with connected(first.url, KEY) as one, connected(second.url, KEY) as other:
        asked = request_of(await one.call_tool("pay", arguments))
        with Store.open(url) as store:
            store.decide(asked, APPROVE)
        results = await asyncio.gather(*(client.call_tool("pay", arguments) for client in [one, other] * 3))
        assert sorted(told(result)[0] for result in results) == [*["approval_required"] * 5, "success"]
        assert effects(record) == ["5"]
        # The control: each approval counts.
        with Store.open(url) as store:
            waiting = {request.id for request in store.pending()}
            for request in waiting:
                store.decide(request, APPROVE)
        results = [await client.call_tool("pay", arguments) for client in [one, other] * 3]
    done = [told(result)[0] for result in results].count("success")
    assert (done, effects(record)) == (len(waiting), ["5"] * (1 + len(waiting)))


@pytest.mark.parametrize(("busy_s", "outcome"), [(0.1, "unavailable"), (600.0, "success")])
async def test_a_new_call_waits_while_another_process_goes_on_with_a_run_of_its_client(
    url: str,
    served: Callable[..., Served],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    busy_s: float,
    outcome: str,
) -> None:
    monkeypatch.setattr(served_calls, "STATE_BUSY_S", busy_s)
    (tmp_path / "toolwire.toml").write_text('[[rule]]\ntool = "nap"\neffect = "confirm"\n')
    mark = str(tmp_path / "mark")
    other = served("--store", url, "--token-env", "KEY", "--name", "tests", env={"KEY": KEY})
    registry = new_registry(rules=[Rule(effect="confirm", tool="nap")])
    with Store.open(url) as store:
        gateway = ToolServer(registry, "tests", store=store, token_verifier=OneToken(KEY))
        with serving(gateway.asgi()) as port:
            async with connected(f"http://127.0.0.1:{port}/mcp", KEY) as client, anyio.create_task_group() as tasks:
                store.decide(request_of(await client.call_tool("nap", {"mark": mark})), APPROVE)

                async def go_on() -> None:
                    assert told(await sent(other.url, {"mark": mark}, KEY, name="nap")) == ("success", "rested")

                tasks.start_soon(go_on)
                await asyncio.to_thread(until, Path(f"{mark}.begun").exists)

                async def end() -> None:
                    # The other call most likely waits by then. It passes, too, if it does not.
                    await asyncio.sleep(0.5)
                    note(f"{mark}.go", "")

                if outcome == "success":
                    tasks.start_soon(end)
                kind, text = told(await client.call_tool("add", {"a": 1, "b": 2}))
                note(f"{mark}.go", "")
                assert (kind, "still works on an earlier call" in text) == (outcome, outcome != "success")


@pytest.mark.parametrize("verdict", ["deny", "stop_run"])
async def test_a_denial_is_found_too(tmp_path: Path, arguments: dict[str, Any], record: Path, verdict: Any) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store, serving_for_people(store) as at:
        request = request_of(await sent(at, arguments, "ann"))
        store.decide(request, Decision(verdict=verdict, reason="not today"))
        assert told(await sent(at, arguments, "ann")) == ("denied", "'pay' may not be run: not today.")
        assert request_of(await sent(at, arguments, "ann")) != request
    assert effects(record) == []


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_the_user_of_the_process_finds_a_decision_over_stdio_and_is_named(
    tmp_path: Path, arguments: dict[str, Any], record: Path, era: Any
) -> None:
    async def over_stdio() -> Any:
        command, *options = serve_command()
        process = stdio_client(StdioServerParameters(command=command, args=options, cwd=tmp_path, env=dict(os.environ)))
        async with Client(process, mode=era) as client:
            return await client.call_tool("pay", arguments)

    asked = request_of(await over_stdio())
    me = f"local:{os.geteuid()}"
    with Store.open(f"sqlite:///{tmp_path}/.toolwire/journal.db") as store:
        assert store.request(asked)[0].caller == Caller(principal=me)
        store.decide(asked, APPROVE)
        assert told(await over_stdio()) == ("success", "paid 5")
        assert {row.principal for row in store.log() if row.kind == "call"} == {me}
    assert effects(record) == ["5"]


async def test_a_decision_that_cannot_be_used_is_told_once_and_then_the_call_is_a_new_one(
    tmp_path: Path, arguments: dict[str, Any], record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> Any:
        raise DecisionRefused("divergence", "recorded by another version")

    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store, serving_for_people(store) as at:
        asked = request_of(await sent(at, arguments, "ann"))
        store.decide(asked, APPROVE)
        with monkeypatch.context() as patch:
            patch.setattr(Session, "resume", refuse)
            assert told(await sent(at, arguments, "ann")) == (
                "unavailable",
                "'pay' was not run: an earlier decision on the same call cannot be used any more.",
            )
        assert request_of(await sent(at, arguments, "ann")) != asked
    assert effects(record) == []


async def test_a_call_that_found_no_slot_leaves_its_decision_to_the_next(
    tmp_path: Path, arguments: dict[str, Any], record: Path
) -> None:
    mark = tmp_path / "mark"
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        gateway = ToolServer(new_registry(), "tests", store=store, token_verifier=People(), calls=1)
        with serving(gateway.asgi()) as port:
            at = f"http://127.0.0.1:{port}/mcp"
            store.decide(request_of(await sent(at, arguments, "ann")), APPROVE)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: sent(at, {"mark": str(mark)}, "bob", name="nap"))
                await asyncio.to_thread(until, Path(f"{mark}.begun").exists)
                assert told(await sent(at, arguments, "ann"))[0] == "overloaded"
                await asyncio.to_thread(note, f"{mark}.go", "")
            assert told(await sent(at, arguments, "ann")) == ("success", "paid 5")
    assert effects(record) == ["5"]


# -- whose call it is ---------------------------------------------------------------------------------------------


class People:
    """Knows people by tokens that are `subject`, or `subject@issuer`."""

    async def verify_token(self, token: str) -> AccessToken | None:
        subject, _, issuer = token.partition("@")
        return AccessToken(token=token, client_id="app", subject=subject, scopes=[], claims={"iss": issuer})


@contextmanager
def serving_for_people(store: Store, name: str = "tests", **described: Any) -> Generator[str]:
    """Serves `pay` to people. `described` changes the definition of the tool."""
    registry = new_registry()
    if described:
        changed = ToolSpec.from_function(pay, **described)
        registry.register(changed, "pay", permission="confirm", replace=True)
    with serving(ToolServer(registry, name, store=store, token_verifier=People()).asgi()) as port:
        yield f"http://127.0.0.1:{port}/mcp"


async def test_another_person_tenant_argument_or_definition_finds_no_decision(
    url: str, arguments: dict[str, Any], record: Path
) -> None:
    with Store.open(url) as store:
        with serving_for_people(store) as at:
            mine = request_of(await sent(at, arguments, "ann@here"))
            store.decide(mine, APPROVE)
            asked = [
                request_of(await sent(at, given, token))
                for given, token in [
                    (arguments, "bob@here"),
                    (arguments, "ann@there"),
                    (arguments, "ann"),
                    ({**arguments, "amount": 6}, "ann@here"),
                    ({**arguments, "amount": "5"}, "ann@here"),
                ]
            ]
        for name, described in (("tests", {"description": "Pays anyone."}), ("other", {})):
            with serving_for_people(store, name, **described) as at:
                asked.append(request_of(await sent(at, arguments, "ann@here")))
        assert (len({mine, *asked}), effects(record)) == (8, [])
        # The control: the call itself, of the same person, in yet another server of that name.
        with serving_for_people(store) as at:
            assert told(await sent(at, arguments, "ann@here")) == ("success", "paid 5")
    assert effects(record) == ["5"]


async def test_another_profile_finds_no_decision(
    tmp_path: Path, arguments: dict[str, Any], record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ONE", "OTHER"):
        monkeypatch.setenv(name, f"token-{name}")
    profiles = ClientProfiles({name: {"token": f"${{{name}}}", "tools": ["*"]} for name in ("ONE", "OTHER")})
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        gateway = ToolServer(new_registry(), "tests", store=store, token_verifier=profiles)
        with serving(gateway.asgi()) as port:
            at = f"http://127.0.0.1:{port}/mcp"
            asked = request_of(await sent(at, arguments, "token-ONE"))
            store.decide(asked, APPROVE)
            assert request_of(await sent(at, arguments, "token-OTHER")) != asked
            assert effects(record) == []
            assert told(await sent(at, arguments, "token-ONE")) == ("success", "paid 5")
    assert effects(record) == ["5"]


async def test_a_decision_is_not_found_after_its_week(
    tmp_path: Path, arguments: dict[str, Any], record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store, serving_for_people(store) as at:
        asked = request_of(await sent(at, arguments, "ann"))
        store.decide(asked, APPROVE)
        clock = store._database.clock
        now, week = clock(), 7 * 86_400
        monkeypatch.setattr(store._database, "clock", lambda: now + week + 5)
        assert request_of(await sent(at, arguments, "ann")) != asked
        monkeypatch.setattr(store._database, "clock", lambda: now + week - 60)
        assert told(await sent(at, arguments, "ann")) == ("success", "paid 5")
    assert effects(record) == ["5"]


# -- clients without a token ----------------------------------------------------------------------------------------

IN_VAIN = (
    "'pay' was not run: a person has to decide on it, and without a token nothing tells this client from others that "
    "send the same call."
)


@pytest.fixture
def open_server(tmp_path: Path) -> Generator[tuple[str, Store]]:
    """The URL of a server without tokens, and its store."""
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store:
        # A caller that the host names is not that of clients over HTTP either.
        gateway = ToolServer(new_registry(), "tests", store=store, caller=Caller(principal="host"))
        with serving(gateway.asgi()) as port:
            yield f"http://127.0.0.1:{port}/mcp", store


async def test_without_a_token_a_decision_belongs_to_the_session_that_asked(
    open_server: tuple[str, Store], arguments: dict[str, Any], record: Path
) -> None:
    at, store = open_server
    async with connected(at, mode="legacy") as one, connected(at, mode="legacy") as other:
        asked = request_of(await one.call_tool("pay", arguments))
        store.decide(asked, APPROVE)
        assert request_of(await other.call_tool("pay", arguments)) != asked
        assert told(await sent(at, arguments)) == ("approval_required", IN_VAIN)
        assert effects(record) == []
        assert told(await one.call_tool("pay", arguments)) == ("success", "paid 5")
    assert effects(record) == ["5"]


async def test_a_client_without_a_session_or_a_token_is_told_that_it_needs_one_and_nobody_is_asked(
    open_server: tuple[str, Store], arguments: dict[str, Any], record: Path
) -> None:
    at, store = open_server
    for _ in range(2):
        result = await sent(at, arguments)
        assert told(result) == ("approval_required", IN_VAIN)
        assert "this client needs a token of the server" in result.content[0].text
    assert (store.pending(), effects(record)) == ([], [])
    assert {run.status for run in store.runs()} == {"stopped"}


async def test_what_one_client_asked_for_never_runs_for_another_without_a_token(
    open_server: tuple[str, Store], arguments: dict[str, Any], record: Path
) -> None:
    at, store = open_server
    async with (
        connected(at, elicitation_callback=never) as one,
        connected(at, elicitation_callback=Person(types.ElicitResult(action="cancel"))) as other,
    ):
        asked = await one.session.call_tool("pay", arguments, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        for request in store.pending():
            store.decide(request.id, APPROVE)
        assert told(await other.call_tool("pay", arguments)) == ("approval_required", IN_VAIN)
        assert told(await sent(at, arguments)) == ("approval_required", IN_VAIN)
        assert effects(record) == []
        # The control: the state stands for the call, and whoever has it goes on.
        said: types.InputResponses = {
            key: types.ElicitResult(action="accept", content=dict[str, Any](YES)) for key in asked.input_requests or {}
        }
        state = asked.request_state
        result = await one.session.call_tool("pay", arguments, input_responses=said, request_state=state)
        assert told(result) == ("success", "paid 5")
    assert effects(record) == ["5"]


# -- clients with forms -----------------------------------------------------------------------------------------------


async def test_a_call_whose_client_left_at_the_form_is_found_in_a_new_session(tmp_path: Path, record: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store, serving_for_people(store) as at:
        async with unanswered(at, record, 1, token="ann"):
            [request] = store.pending()
        given = {"amount": 0, "record": str(record)}
        until(lambda: _is_kept(store))
        store.decide(request.id, APPROVE)
        assert told(await sent(at, given, "ann")) == ("success", "paid 0")
    assert effects(record) == ["0"]


def _is_kept(store: Store) -> bool:
    text = "SELECT count(*) FROM waiting_calls WHERE claimed_by = ''"
    return store._database.read(lambda connection: connection.exec_driver_sql(text).scalar_one()) == 1


async def test_equal_calls_that_show_forms_side_by_side_are_two_calls(
    tmp_path: Path, arguments: dict[str, Any], record: Path, era: Era
) -> None:
    both_shown = anyio.Event()
    shown: list[str] = []

    async def person(context: Any, params: Any) -> types.ElicitResult:
        shown.append(params.message)
        if len(shown) == 2:
            both_shown.set()
        await both_shown.wait()
        return types.ElicitResult(action="accept", content=dict[str, Any](YES))

    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store, serving_for_people(store) as at:
        results = await asyncio.gather(
            *(sent(at, arguments, "ann", mode=era, elicitation_callback=person) for _ in range(2))
        )
    assert [told(result) for result in results] == [("success", "paid 5")] * 2
    assert effects(record) == ["5", "5"]


async def test_a_call_whose_client_has_the_state_of_its_forms_is_not_found_by_an_equal_call(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    with Store.open(f"sqlite:///{tmp_path}/runs.db") as store, serving_for_people(store) as at:
        async with connected(at, "ann", elicitation_callback=never) as client:
            for _ in range(2):
                asked = await client.session.call_tool("pay", arguments, allow_input_required=True)
                assert isinstance(asked, types.InputRequiredResult)
        assert len(store.pending()) == 2
        # The control: a call without forms, of the same person, is a third one and is found by the fourth.
        assert request_of(await sent(at, arguments, "ann")) == request_of(await sent(at, arguments, "ann"))
        assert len(store.pending()) == 3
