"""Middleware as an owner puts it around calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolwire import ConfigurationError, RegistrationError, Session, Toolkit, ToolRegistry, ToolResult, ToolSpec
from toolwire.middleware import CallNext, PreparedCall, Retry, colourless

PROGRAM = "__result__ = add(1, 2)"


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


class Layer:
    """A middleware that tells when a call passes it."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name = name
        self.told = told

    async def __call__(self, call: PreparedCall, call_next: CallNext) -> ToolResult:
        self.told.append(f"{self.name} {call.tool}")
        return await call_next(call)


class Waiting(Layer):
    """One that needs an event loop."""

    async def __call__(self, call: PreparedCall, call_next: CallNext) -> ToolResult:
        await asyncio.sleep(0)
        return await super().__call__(call, call_next)


async def test_the_registrys_is_outermost_then_the_toolkits_then_the_tools_own() -> None:
    told: list[str] = []
    registry = ToolRegistry(middleware=[Layer("first", told), Layer("second", told)])
    registry.register(add, middleware=[Layer("own", told)])
    toolkit = registry.create_agent_toolkit("scout", ["add"])
    registry.configure(middleware=[Layer("third", told)])
    assert (await toolkit.execute_tool("add", {"a": 1, "b": 2})).data == 3
    assert told == ["first add", "second add", "third add", "own add"]
    own = Toolkit("alone", middleware=[Layer("toolkit", told)])
    own.draw(registry._call_scope.catalogue, "add")
    told.clear()
    assert (await own.execute_tool("add", {"a": 1, "b": 2})).data == 3
    assert told == ["toolkit add", "own add"]


async def test_a_toolkit_of_a_registry_has_both() -> None:
    told: list[str] = []
    registry = ToolRegistry(middleware=[Layer("registry", told)])
    registry.register(add, middleware=[Layer("own", told)])
    toolkit = Toolkit("scout", scope=lambda: registry._call_scope, middleware=[Layer("toolkit", told)])
    toolkit.draw(registry._call_scope.catalogue, "add")
    await toolkit.execute_tool("add", {"a": 1, "b": 2})
    assert told == ["registry add", "toolkit add", "own add"]


async def test_a_sessions_calls_pass_it() -> None:
    told: list[str] = []
    registry = ToolRegistry(middleware=[Layer("a", told)])
    registry.register(add)
    session = Session(registry, protocol="json")
    turn = await session.turn('{"name": "add", "arguments": {"a": 1, "b": 2}}')
    assert ([result.data for result in turn.results], told) == ([3], ["a add"])


@pytest.mark.parametrize("where", ["registry", "tool"])
@pytest.mark.parametrize("kind", [Layer, Waiting])
def test_calls_of_a_program_pass_one_that_needs_a_loop_from_blocking_code(where: str, kind: Any) -> None:
    told: list[str] = []
    layer = kind("a", told)
    registry = ToolRegistry(middleware=[layer] if where == "registry" else [])
    registry.register(add, middleware=[layer] if where == "tool" else [])
    registry.enable_code_execution()
    assert registry.run_program(PROGRAM).value == 3
    assert told == ["a add"]
    assert registry.invoke("code_execution", {"code": PROGRAM}).text == "3"
    assert told[1:] == (["a code_execution", "a add"] if where == "registry" else ["a add"])


@pytest.mark.parametrize("where", ["registry", "tool"])
async def test_and_from_an_event_loop(where: str) -> None:
    told: list[str] = []
    layer = Waiting("a", told)
    registry = ToolRegistry(middleware=[layer] if where == "registry" else [])
    registry.register(add, middleware=[layer] if where == "tool" else [])
    registry.enable_code_execution()
    assert (await registry.ainvoke("code_execution", {"code": PROGRAM})).text == "3"
    assert told[-1] == "a add"


def test_a_colourless_one_needs_no_loop() -> None:
    loops: list[bool] = []

    @colourless
    async def look(call: PreparedCall, call_next: CallNext) -> ToolResult:
        try:
            asyncio.get_running_loop()
            loops.append(True)
        except RuntimeError:
            loops.append(False)
        return await call_next(call)

    registry = ToolRegistry(middleware=[look])
    registry.register(add)
    assert registry.invoke("add", {"a": 1, "b": 2}).data == 3
    assert registry.run_program(PROGRAM).value == 3
    assert loops == [False, False]


def test_an_owners_own_call_of_a_spec_passes_none() -> None:
    told: list[str] = []
    registry, spec = ToolRegistry(middleware=[Layer("a", told)]), ToolSpec.from_function(add)
    registry.register(spec, middleware=[Layer("own", told)])
    assert (spec(a=1, b=2), told) == (3, [])


@pytest.mark.parametrize(
    "place",
    [
        lambda layer: ToolRegistry(middleware=[layer]),
        lambda layer: ToolRegistry().configure(middleware=[layer]),
        lambda layer: ToolRegistry().register(add, middleware=[layer]),
        lambda layer: Toolkit(middleware=[layer]),
    ],
    ids=["registry", "configure", "register", "toolkit"],
)
def test_a_value_that_is_not_middleware_is_refused_at_once(place: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        place(Retry)
    assert str(caught.value) == "middleware Retry is a class: give one of it, Retry(...)"
    with pytest.raises(ConfigurationError) as caught:
        place(3)
    assert str(caught.value) == "middleware 3: give a function `async def middleware(call, call_next)`"


def test_the_same_tool_with_other_middleware_is_refused() -> None:
    registry = ToolRegistry()
    registry.register(add)
    with pytest.raises(RegistrationError) as caught:
        registry.register(add, middleware=[Retry()])
    assert str(caught.value) == "'add' is registered already with other options; replace=True takes the new ones"


@pytest.mark.requirement("toolkit.boundary.retry")
@pytest.mark.parametrize(("middleware", "requests"), [((), 1), ((Retry(first_wait_s=0.0001),), 3)])
async def test_a_toolkit_calls_a_tool_once_unless_its_owner_puts_retry_around(middleware: Any, requests: int) -> None:
    seen: list[dict[str, Any]] = []

    def fetch(**headers: Any) -> None:
        """Fetches."""
        seen.append(headers)
        raise ConnectionRefusedError

    toolkit = Toolkit("scout", middleware=middleware)
    toolkit.add_tool(ToolSpec.from_function(fetch, idempotent="natural"))
    assert not (await toolkit.execute_tool("fetch")).success
    assert seen == [{}] * requests
