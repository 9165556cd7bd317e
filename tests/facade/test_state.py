"""Bound values of one session, toolkit or call: no other one reads them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from toolwire import (
    ApprovalRequest,
    BaseTool,
    CallContext,
    ConfigurationError,
    Decision,
    Session,
    Toolkit,
    ToolParameter,
    ToolRegistry,
    ToolResult,
    ToolSpec,
)
from toolwire.middleware import Cache, CallNext, PreparedCall, colourless

PEOPLE = ("ann", "bob")
CALL = '{"name": "whoami", "arguments": {}}'
PROGRAM = "print(whoami())"
REPLY = f"thought = \"Go.\"\n\n[tool_call]\nstatus = \"success\"\ntarget = \"go\"\ncode = '''\n{PROGRAM}\n'''\n"


def whoami(token: str | None) -> str:
    """Says whose token it got."""
    return f"token of {token}"


async def whoami_later(token: str) -> str:
    """Says whose token it got."""
    await asyncio.sleep(0)
    return f"token of {token}"


def spec_of(
    function: Callable[..., Any] = whoami, *, default: Any = None, key: str = "token", **options: Any
) -> ToolSpec:
    spec = ToolSpec.from_function(function, name="whoami", **options)
    return spec.bind("token", key) if default is None else spec.bind("token", key, default)


def registry_of(*tools: object, **options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    for tool in tools:
        registry.register_tool_to_library(tool)
    return registry


def token_of(person: str) -> dict[str, Any]:
    return {"token": person}


# -- two requests at once -----------------------------------------------------------------------------------------


class Meeting:
    """A tool in which two calls meet: neither goes on before the other one has arrived."""

    def __init__(self) -> None:
        self.threads = threading.Barrier(2, timeout=PATIENCE_S)
        self.tasks = asyncio.Barrier(2)

    def meet(self, person: str, token: str) -> list[str]:
        """Meets the other call."""
        self.threads.wait()
        return [person, token]

    async def meet_later(self, person: str, token: str) -> list[str]:
        """Meets the other call."""
        await asyncio.wait_for(self.tasks.wait(), PATIENCE_S)
        return [person, token]

    def registry(self, *, is_async: bool) -> tuple[ToolRegistry, ToolSpec]:
        function = self.meet_later if is_async else self.meet
        spec = ToolSpec.from_function(function, name="meet").bind("token")
        return registry_of(spec), spec


def in_threads(request: Callable[[str], ToolResult]) -> list[Any]:
    """The results of the two people's requests, each made in a thread of its own."""
    results: dict[str, Any] = {}
    threads = [threading.Thread(target=_put, args=(results, person, request)) for person in PEOPLE]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    return [results[person] for person in PEOPLE]


def _put(results: dict[str, Any], person: str, request: Callable[[str], ToolResult]) -> None:
    results[person] = request(person).data


OWN = [[person, person] for person in PEOPLE]


@pytest.mark.parametrize("is_async", [False, True])
def test_two_concurrent_blocking_calls_use_their_own_tokens(is_async: bool) -> None:
    registry, _ = Meeting().registry(is_async=is_async)
    assert in_threads(lambda who: registry.invoke("meet", {"person": who}, state=token_of(who))) == OWN


@pytest.mark.parametrize("is_async", [False, True])
async def test_two_concurrent_awaited_calls_use_their_own_tokens(is_async: bool) -> None:
    registry, _ = Meeting().registry(is_async=is_async)
    calls = [registry.ainvoke("meet", {"person": who}, state=token_of(who)) for who in PEOPLE]
    assert [result.data for result in await asyncio.gather(*calls)] == OWN


@pytest.mark.parametrize("is_async", [False, True])
async def test_two_concurrent_sessions_use_their_own_tokens(is_async: bool) -> None:
    registry, _ = Meeting().registry(is_async=is_async)
    sessions = [Session(registry, protocol="json", state=token_of(who)) for who in PEOPLE]
    turns = await asyncio.gather(
        *(
            session.turn(f'{{"name": "meet", "arguments": {{"person": "{who}"}}}}')
            for session, who in zip(sessions, PEOPLE, strict=True)
        )
    )
    assert [turn.results[0].data for turn in turns] == OWN


@pytest.mark.parametrize("is_async", [False, True])
def test_the_control_two_blocking_calls_that_share_the_specs_state_get_one_token(is_async: bool) -> None:
    registry, spec = Meeting().registry(is_async=is_async)
    both_are_set = threading.Barrier(2, timeout=PATIENCE_S)

    def request(who: str) -> ToolResult:
        spec.state["token"] = who
        both_are_set.wait()
        return registry.invoke("meet", {"person": who})

    found = in_threads(request)
    assert [person for person, _ in found] == list(PEOPLE)
    assert len({token for _, token in found}) == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_control_two_awaited_calls_that_share_the_specs_state_get_one_token(is_async: bool) -> None:
    registry, spec = Meeting().registry(is_async=is_async)

    async def request(who: str) -> ToolResult:
        spec.state["token"] = who
        await asyncio.sleep(0)
        return await registry.ainvoke("meet", {"person": who})

    found = [result.data for result in await asyncio.gather(*map(request, PEOPLE))]
    assert found == [["ann", "bob"], ["bob", "bob"]]


# -- the order of the states --------------------------------------------------------------------------------------

PLACES = ("call", "session", "toolkit", "spec", "default")


@pytest.mark.parametrize("given", [PLACES[start:] for start in range(len(PLACES))], ids=lambda given: given[0])
async def test_the_nearest_state_counts(given: tuple[str, ...]) -> None:
    states = {place: token_of(place) if place in given else None for place in PLACES}
    spec = spec_of(default="default")
    spec.state = states["spec"] or {}
    toolkit = Toolkit(state=states["toolkit"])
    toolkit.add_tool(spec)
    session = Session(toolkit, protocol="json", state=states["session"])
    if given[0] == "call":
        result = await toolkit.execute_tool("whoami", state=states["call"])
    else:
        result = (await session.turn(CALL)).results[0]
    assert result.data == f"token of {given[0]}"


@pytest.mark.parametrize(
    ("near", "far", "found"),
    [
        ({"config": {"mail": {"key": "near"}}}, {"config": {"mail": {"key": "far"}}}, "near"),
        ({"config": {"mail": {}}}, {"config": {"mail": {"key": "far"}}}, "far"),
        ({"config": {"mail": {"user": "me"}}}, {"config": {"mail": {"key": "far"}}}, "far"),
        ({"config": "text"}, {"config": {"mail": {"key": "far"}}}, "far"),
        ({"config.mail.key": "near"}, {"config": {"mail": {"key": "far"}}}, "far"),
        ({"config": {"mail": {"key": None}}}, {"config": {"mail": {"key": "far"}}}, None),
        ({}, {}, "default"),
    ],
)
def test_the_first_state_that_has_the_whole_key_counts(near: Any, far: Any, found: Any) -> None:
    spec = spec_of(key="config.mail.key", default="default")
    spec.state = far
    assert registry_of(spec).invoke("whoami", state=near).data == f"token of {found}"


def test_a_call_with_no_value_anywhere_names_the_key() -> None:
    result = registry_of(spec_of(key="config.mail.key")).invoke("whoami", state={"config": {}})
    assert result.failure is not None
    assert result.failure.kind == "unavailable"
    assert result.error == "'whoami' cannot run: 'token' is set by the host, but its state has no 'config.mail.key'."


async def test_a_state_is_read_at_each_call_and_never_copied() -> None:
    token = object()
    seen: list[object] = []

    def keep(token: object) -> None:
        """Keeps what it got."""
        seen.append(token)

    state: dict[str, Any] = {}
    session = Session([spec_of(keep)], protocol="json", state=state)
    first = await session.turn(CALL)
    state["token"] = token
    second = await session.turn(CALL)
    assert [turn.results[0].success for turn in (first, second)] == [False, True]
    assert (len(seen), seen[0] is token, state) == (1, True, {"token": token})


@pytest.mark.parametrize("view", ["preset", "described", "extended"])
async def test_views_of_a_tool_read_it_too(view: str) -> None:
    from pydantic import BaseModel

    class Mood(BaseModel):
        mood: str

    def greet(token: str, greeting: str = "hello") -> str:
        """Greets."""
        return f"{greeting} {token}"

    spec = ToolSpec.from_function(greet).bind("token")
    spec.state = token_of("everybody")
    toolkit = Toolkit(state=token_of("ann"))
    options: dict[str, Any] = {
        "preset": {"preset_kwargs": {"greeting": "hi"}},
        "described": {"func_description": "Says hello."},
        "extended": {},
    }
    toolkit.register_tool_function(spec, **options[view])
    if view == "extended":
        toolkit.set_extended_model("greet", Mood)
    result = await toolkit.execute_tool("greet", {"mood": "good"} if view == "extended" else {})
    assert result.data == ("hi ann" if view == "preset" else "hello ann")


def test_a_tool_written_as_a_class_reads_it() -> None:
    class Keeper(BaseTool):
        def __init__(self) -> None:
            super().__init__("keeper", "Keeps.")

        def get_parameters(self) -> list[ToolParameter]:
            return [ToolParameter("token", "string", "Whose it is")]

        async def execute(self, **params: Any) -> ToolResult:
            return ToolResult(success=True, data=f"token of {params['token']}")

    spec = registry_of(Keeper()).to_toolspecs()["keeper"].bind("token", default="nobody")
    registry = registry_of(spec)
    found = [registry.invoke("keeper", state=state).data for state in (token_of("ann"), None)]
    assert found == ["token of ann", "token of nobody"]


def test_a_preset_is_not_state() -> None:
    toolkit = Toolkit(state=token_of("state"))
    toolkit.register_tool_function(whoami, preset_kwargs={"token": "preset"})
    assert asyncio.run(toolkit.execute_tool("whoami", state=token_of("call"))).data == "token of preset"


def test_an_owners_own_call_of_the_spec_reads_the_specs_state() -> None:
    spec = spec_of()
    spec.state = token_of("owner")
    assert registry_of(spec).invoke("whoami", state=token_of("ann")).data == "token of ann"
    assert spec() == "token of owner"


# -- inner calls --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [whoami, whoami_later])
def test_the_calls_of_a_program_read_it(function: Callable[..., Any]) -> None:
    spec = spec_of(function, default="nobody")
    registry = registry_of(spec)
    registry.enable_code_execution(timeout=PATIENCE_S)
    code = f"{PROGRAM}\nimport asyncio\nprint(*await asyncio.gather(whoami(), whoami()))"
    expected = "token of ann\ntoken of ann token of ann\n"
    assert registry.run_program(code, state=token_of("ann")).stdout == expected
    assert registry.invoke("code_execution", {"code": code}, state=token_of("ann")).text == expected
    assert registry.run_program(PROGRAM).stdout == "token of nobody\n"


async def test_the_programs_of_a_session_read_it_and_so_do_its_owners_own() -> None:
    spec = spec_of(default="nobody")
    session = Session([spec], state=token_of("ann"))
    assert (await session.turn(REPLY)).text == "token of ann\n"
    programs: Any = session._scope.catalogue.find("code_execution")
    assert (await asyncio.to_thread(programs.handle.run, {"code": PROGRAM})).text == "token of ann\n"
    assert (await Session([spec]).turn(REPLY)).text == "token of nobody\n"


@pytest.mark.parametrize("function", [whoami, whoami_later])
async def test_the_calls_that_a_tool_makes_read_it(function: Callable[..., Any]) -> None:
    async def ask_around(context: CallContext) -> Any:
        """Asks the other tool."""
        return (await context.call("whoami")).data

    registry = registry_of(spec_of(function, default="nobody"), ask_around)
    assert (await registry.ainvoke("ask_around", state=token_of("ann"))).data == "token of ann"
    assert (await registry.ainvoke("ask_around")).data == "token of nobody"


async def test_a_stream_reads_it() -> None:
    def parts(token: str) -> Any:
        """Speaks in parts."""
        yield "token of "
        yield token

    toolkit = Toolkit(state=token_of("toolkit"))
    toolkit.add_tool(ToolSpec.from_function(parts).bind("token"))
    use = {"name": "parts", "input": {}}
    streams = [
        toolkit.call_tool_function(use, state=token_of("ann")),
        toolkit.call_tool_function(use),
        toolkit.tools["parts"].call(arguments={}),
    ]
    said = [[chunk.content[0].get("text") async for chunk in stream][-1] for stream in streams]
    assert said == ["token of ann", "token of toolkit", "token of toolkit"]


@pytest.mark.parametrize("function", [whoami, whoami_later])
async def test_a_call_in_the_background_reads_it(function: Callable[..., Any]) -> None:
    registry = registry_of(spec_of(function, default="nobody"))
    registry.configure(background_calls=True)
    try:
        background = registry.background
        started = [
            await asyncio.to_thread(background.start, "whoami", state=token_of("ann")),
            await background.astart("whoami", state=token_of("bob")),
            await background.astart("whoami"),
        ]
        found = [(await background.await_result(call.id)).data for call in started]
        assert found == ["token of ann", "token of bob", "token of nobody"]

        meanwhile = await registry.ainvoke("start_call", {"tool": "whoami"}, state=token_of("ann"))
        session = Session(registry, protocol="json", state=token_of("cleo"))
        turn = await session.turn('{"name": "start_call", "arguments": {"tool": "whoami"}}')
        told = [await _background_text(registry, result) for result in (meanwhile, turn.results[0])]
        assert told == ["token of ann", "token of cleo"]
    finally:
        registry.close()


async def _background_text(registry: ToolRegistry, started: ToolResult) -> Any:
    id_ = started.metadata.get("background_id")
    return started.data if id_ is None else (await registry.background.await_result(id_)).data


# -- second validations -------------------------------------------------------------------------------------------


def greet(token: str, greeting: str) -> str:
    """Greets."""
    return f"{greeting} {token}"


def test_a_call_that_a_person_edits_reads_it() -> None:
    spec = ToolSpec.from_function(greet, permission="confirm").bind("token")

    def approver(request: ApprovalRequest) -> Decision:
        assert dict(request.arguments) == {"greeting": "hello"}
        return Decision(verdict="edit", arguments={"greeting": "hi"})

    registry = registry_of(spec, approver=approver)
    assert registry.invoke("greet", {"greeting": "hello"}, state=token_of("ann")).data == "hi ann"


def test_a_call_that_a_middleware_rewrites_reads_it() -> None:
    @colourless
    async def rewrite(call: PreparedCall, call_next: CallNext) -> ToolResult:
        return await call_next(call.with_arguments({"greeting": "hi"}))

    registry = registry_of(ToolSpec.from_function(greet).bind("token"), middleware=[rewrite])
    assert registry.invoke("greet", {"greeting": "hello"}, state=token_of("ann")).data == "hi ann"


async def test_a_call_with_large_arguments_reads_it() -> None:
    # These are validated in a thread, so that they do not block the event loop.
    letter = "x" * 1_000_000
    registry = registry_of(ToolSpec.from_function(greet).bind("token"))
    result = await registry.ainvoke("greet", {"greeting": letter}, state=token_of("ann"))
    assert result.data == f"{letter} ann"


def test_an_explanation_reads_it() -> None:
    registry = registry_of(spec_of())
    assert registry.explain_call("whoami", state=token_of("ann")).verdict.effect == "auto"
    with pytest.raises(ConfigurationError, match="its state has no 'token'"):
        registry.explain_call("whoami")


# -- separation ---------------------------------------------------------------------------------------------------


async def test_a_cached_result_of_one_state_is_never_given_to_another() -> None:
    calls: list[str] = []

    def read(token: str) -> str:
        """Reads."""
        calls.append(token)
        return f"letters of {token}"

    spec = ToolSpec.from_function(read, name="whoami", effects=["read"], idempotent="natural").bind("token")
    cache = Cache()
    registry = registry_of(spec, middleware=[cache])
    people = ("ann", "bob", "ann")
    by_call = [registry.invoke("whoami", state=token_of(who)).data for who in people]
    sessions = [Session(registry, protocol="json", state=token_of(who)) for who in people]
    by_session = [(await session.turn(CALL)).results[0].data for session in sessions]
    assert by_call == by_session == ["letters of ann", "letters of bob", "letters of ann"]
    assert (calls, len(cache)) == ([*people, *people], 0)


def test_the_control_a_result_without_bound_values_is_cached() -> None:
    def read() -> str:
        """Reads."""
        return "the news"

    cache = Cache()
    spec = ToolSpec.from_function(read, effects=["read"], idempotent="natural")
    registry = registry_of(spec, middleware=[cache])
    results = [registry.invoke("read", state=token_of(who)) for who in PEOPLE]
    assert [result.metadata.get("is_cached", False) for result in results] == [False, True]


async def test_no_text_and_no_log_holds_a_value() -> None:
    secret = "k-5c1e7"

    def hold(token: str) -> bool:
        """Holds the token."""
        return bool(token)

    registry = registry_of(spec_of(hold))
    log = registry.enable_logging()
    toolkit = Toolkit(state=token_of(secret))
    session = Session(registry, state=token_of(secret))
    turn = await session.turn(REPLY)
    called = registry.invoke("whoami", state=token_of(secret))
    refused = registry.invoke("whoami", {"token": "mine"}, state=token_of(secret))
    texts = [
        session.instructions,
        turn.text,
        repr((turn, session, toolkit, session._scope)),
        repr(toolkit._call_scope),
        repr((called, refused)),
        repr(log.get_entries()),
    ]
    assert (turn.text, called.data, refused.success, len(log.get_entries())) == ("True\n", True, False, 4)
    assert [secret in str(text) for text in texts] == [False] * len(texts)


# -- refusals -----------------------------------------------------------------------------------------------------


def _background_start(state: Any) -> object:
    registry = registry_of(spec_of())
    try:
        return registry.background.start("whoami", state=state)
    finally:
        registry.close()


WAYS: dict[str, Callable[[Any], object]] = {
    "session": lambda state: Session([whoami], state=state),
    "toolkit": lambda state: Toolkit(state=state),
    "invoke": lambda state: registry_of(spec_of()).invoke("whoami", state=state),
    "ainvoke": lambda state: asyncio.run(registry_of(spec_of()).ainvoke("whoami", state=state)),
    "run_program": lambda state: registry_of().run_program("1", state=state),
    "explain_call": lambda state: registry_of(spec_of()).explain_call("whoami", state=state),
    "execute_tool": lambda state: asyncio.run(Toolkit().execute_tool("whoami", state=state)),
    "call_tool_function": lambda state: Toolkit().call_tool_function({"name": "whoami", "input": {}}, state=state),
    "background": _background_start,
}


class Tokens(Mapping[str, Any]):
    """A mapping that is not a dict."""

    def __getitem__(self, key: str) -> str:
        return f"any {key}"

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, key: object) -> bool:
        return True


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("state", "kind"), [("k-secret", "str"), ([("token", "k-secret")], "list"), (0, "int")])
def test_a_state_that_is_not_a_mapping_is_refused_when_it_is_given(way: str, state: Any, kind: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        WAYS[way](state)
    assert str(refused.value) == (
        f"state must be a mapping of state keys to values, not {kind}: write state={{'token': token}}"
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", [None, {}, Tokens()])
def test_any_mapping_or_none_is_taken(way: str, state: Any) -> None:
    if way == "explain_call" and not isinstance(state, Tokens):
        state = token_of("ann")
    found = WAYS[way](state)
    assert found is not None
    if isinstance(found, ToolResult) and way != "execute_tool":
        assert found.success is isinstance(state, Tokens), (
            "the tool is called with the state, or told that it lacks a key"
        )


def test_a_mapping_of_the_owners_own_is_asked_at_the_call() -> None:
    assert registry_of(spec_of()).invoke("whoami", state=Tokens()).data == "token of any token"


def test_a_mapping_that_raises_fails_the_call_alone() -> None:
    class Broken(Tokens):
        def __getitem__(self, key: str) -> str:
            raise RuntimeError("the vault is closed")

    result = registry_of(spec_of()).invoke("whoami", state=Broken())
    assert (result.success, "the vault is closed" in str(result.error)) == (False, True)
