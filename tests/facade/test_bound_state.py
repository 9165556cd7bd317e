"""A value in a state that does not fit its parameter: the call that uses it raises to the host, on every road."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from tests.session.till import calls
from toolwire import CallContext, Session, Store, Toolkit, ToolRegistry, ToolSpec
from toolwire.middleware import Retry
from toolwire.vocabulary.errors import BindingError, BoundValueError

RAN: list[str] = []
SECRET = "s3cret"


def count(limit: int) -> str:
    """Counts."""
    RAN.append("count")
    return f"counted to {limit}"


async def count_later(limit: int) -> str:
    """Counts."""
    return count(limit)


def pay() -> str:
    """Pays."""
    RAN.append("pay")
    return "paid"


def registry_of(function: Any = count, **options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    registry.register(ToolSpec.from_function(function, name="count").bind("limit", "config.limit"))
    registry.register(pay)
    return registry


def invoked(state: Any, function: Any) -> Any:
    return registry_of(function).invoke("count", state=state).data


def awaited(state: Any, function: Any) -> Any:
    return asyncio.run(registry_of(function).ainvoke("count", state=state)).data


def with_middleware(state: Any, function: Any) -> Any:
    return registry_of(function, middleware=[Retry()]).invoke("count", state=state).data


def logged(state: Any, function: Any) -> Any:
    registry = registry_of(function)
    registry.enable_logging()
    registry.enable_tracing()
    return registry.invoke("count", state=state).data


def owned(state: Any, function: Any) -> Any:
    spec = ToolSpec.from_function(function, name="count").bind("limit", "config.limit")
    spec.state = state
    return spec()


def by_toolkit(state: Any, function: Any) -> Any:
    toolkit = Toolkit("agent", state=state)
    toolkit.add_tool(ToolSpec.from_function(function, name="count").bind("limit", "config.limit"))
    return asyncio.run(toolkit.execute_tool("count")).data


def streamed(state: Any, function: Any) -> Any:
    toolkit = Toolkit("agent", state=state)
    toolkit.add_tool(ToolSpec.from_function(function, name="count").bind("limit", "config.limit"))

    async def read() -> Any:
        return [chunk async for chunk in toolkit.call_tool_function({"name": "count", "input": {}})]

    return asyncio.run(read())[-1].content[0]["text"]


def by_session(state: Any, function: Any) -> Any:
    session = Session(registry_of(function), protocol="openai", state=state)
    return asyncio.run(session.turn(calls(("count", {})))).results[0].data


def by_session_with_a_store(state: Any, function: Any) -> Any:
    # Closed before its file goes: what renews its leases would log an error in a later test.
    with tempfile.TemporaryDirectory() as folder, Store.open(f"sqlite:///{folder}/runs.db") as store:
        session = Session(registry_of(function), protocol="openai", state=state, store=store)
        return asyncio.run(session.turn(calls(("count", {})))).results[0].data


def in_program(state: Any, function: Any) -> Any:
    return (
        registry_of(function).run_program("try:\n    x = count()\nexcept Exception:\n    x = 0\nx", state=state).value
    )


def in_code_execution(state: Any, function: Any) -> Any:
    registry = registry_of(function)
    registry.enable_code_execution()
    return registry.invoke("code_execution", {"code": "count()"}, state=state).text


def in_awaited_code_execution(state: Any, function: Any) -> Any:
    registry = registry_of(function)
    registry.enable_code_execution()
    return asyncio.run(registry.ainvoke("code_execution", {"code": "count()"}, state=state)).text


def in_background(state: Any, function: Any) -> Any:
    background = registry_of(function).background
    result = background.wait(background.start("count", state=state).id)
    assert result is not None
    return result.data


def inside_another_tool(state: Any, function: Any) -> Any:
    async def outer(context: CallContext) -> Any:
        """Calls the other one."""
        return (await context.call("count")).data

    registry = registry_of(function)
    registry.register(outer)
    return registry.invoke("outer", state=state).data


ROADS = [
    *(invoked, awaited, with_middleware, logged, owned, by_toolkit, streamed, by_session, by_session_with_a_store),
    *(in_program, in_code_execution, in_awaited_code_execution, in_background, inside_another_tool),
]


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("function", [count, count_later])
def test_a_wrong_value_is_raised_and_the_tool_does_not_run(road: Callable[[Any, Any], Any], function: Any) -> None:
    RAN.clear()
    with pytest.raises(BoundValueError) as raised:
        road({"config": {"limit": SECRET}}, function)
    assert str(raised.value) == (
        "tool 'count': the parameter 'limit' is bound to 'config.limit' in the state, and the value there is of type "
        "str and does not fit int: Input should be a valid integer. Put one there that fits."
    )
    assert (isinstance(raised.value, BindingError), RAN) == (True, [])


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("function", [count, count_later])
def test_the_control_a_value_that_fits_is_used(road: Callable[[Any, Any], Any], function: Any) -> None:
    assert road({"config": {"limit": 3}}, function) == "counted to 3"


async def test_none_of_several_calls_runs() -> None:
    RAN.clear()
    session = Session(registry_of(), protocol="openai", state={"config": {"limit": SECRET}})
    with pytest.raises(BoundValueError):
        await session.turn(calls(("pay", {}), ("count", {})))
    assert RAN == []


async def test_the_control_the_other_call_runs_when_the_value_fits() -> None:
    RAN.clear()
    session = Session(registry_of(), protocol="openai", state={"config": {"limit": 3}})
    turn = await session.turn(calls(("pay", {}), ("count", {})))
    assert ([result.data for result in turn.results], sorted(RAN)) == (["paid", "counted to 3"], ["count", "pay"])


def test_a_prompt_can_be_written_while_the_state_is_wrong() -> None:
    registry = registry_of()
    registry.to_toolspecs()["count"].state = {"config": {"limit": SECRET}}
    session = Session(registry, protocol="json")
    assert ("count" in session.instructions, SECRET in session.instructions) == (True, False)


def test_the_program_reads_nothing_of_the_value() -> None:
    registry = registry_of()
    seen: list[str] = []

    @registry.register
    def note(text: str) -> None:
        """Notes."""
        seen.append(text)

    code = "try:\n    count()\nexcept Exception as error:\n    note(f'{type(error).__name__}: {error}')\n"
    with pytest.raises(BoundValueError):
        registry.run_program(code, state={"config": {"limit": SECRET}})
    assert seen == ["ToolUnavailable: It cannot run: a value that the host sets does not fit. The host is told."]


async def test_a_run_on_record_goes_on_when_the_value_has_been_mended() -> None:
    state: dict[str, Any] = {"config": {"limit": SECRET}}
    session = Session(registry_of(), protocol="openai", state=state)
    with pytest.raises(BoundValueError):
        await session.turn(calls(("count", {})))
    state["config"]["limit"] = 4
    turn = await session.turn(calls(("count", {})))
    assert turn.results[0].data == "counted to 4"
