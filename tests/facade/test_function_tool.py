"""`@tool`: the function stays callable as it was, and is a tool as well."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from toolwire import BindingError, CallContext, CallFailed, Session, Toolkit, ToolRegistry, ToolSpec, tool
from toolwire.types import FunctionTool


@dataclass
class Receipt:
    amount: int
    to: str


@tool
def pay(amount: int, to: str = "Ada") -> Receipt:
    """Pays.

    Args:
        amount: Euros
        to: The payee
    """
    return Receipt(amount, to)


def test_a_call_is_the_functions_own() -> None:
    assert pay(5) == Receipt(5, "Ada")
    assert pay(5, to="Bob") == Receipt(5, "Bob")


def test_a_call_is_not_validated_and_call_is() -> None:
    assert pay("5") == Receipt("5", "Ada")  # type: ignore[arg-type]
    assert pay.call(amount="5") == {"amount": 5, "to": "Ada"}
    with pytest.raises(CallFailed):
        pay.call(amount="five")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'amount'"):
        pay()  # type: ignore[call-arg]


def test_it_is_a_tool_for_every_holder_of_tools() -> None:
    assert isinstance(pay, FunctionTool)
    assert isinstance(pay, ToolSpec)
    registry, toolkit = ToolRegistry(), Toolkit()
    assert registry.register(pay) is pay
    toolkit.add_tool(pay)
    assert registry.invoke("pay", {"amount": 5}).data == Receipt(5, "Ada")
    assert asyncio.run(toolkit.execute_tool("pay", {"amount": 6})).data == Receipt(6, "Ada")
    call = "<tool_call><name>pay</name><params><amount>7</amount></params></tool_call>"
    assert Session([pay], protocol="xml").run_turn(call).results[0].data == Receipt(7, "Ada")
    assert registry.invoke("pay", {"amount": "x"}).failure is not None


def test_it_has_the_name_the_docstring_and_the_signature_of_its_function() -> None:
    assert str(inspect.signature(pay)) == "(amount: 'int', to: 'str' = 'Ada') -> 'Receipt'"
    assert (pay.__name__, pay.__module__) == ("pay", __name__)
    assert (pay.__doc__ or "").startswith("Pays.\n")


def test_async_functions_and_generators_are_called_as_they_are() -> None:
    @tool
    async def fetch(page: int) -> str:
        """Fetches."""
        return f"page {page}"

    @tool
    def count(to: int) -> Iterator[str]:
        """Counts."""
        yield from map(str, range(to))

    @tool(name="tick")
    async def ticks(to: int) -> AsyncIterator[int]:
        """Ticks."""
        for number in range(to):
            yield number

    async def read() -> tuple[str, list[int]]:
        return await fetch(3), [number async for number in ticks(2)]

    assert asyncio.run(read()) == ("page 3", [0, 1])
    assert list(count(2)) == ["0", "1"]
    assert fetch.call(page="3") == "page 3"


@tool(permission="confirm")
def send(text: str, key: str, /, times: int = 1) -> str:
    """Sends."""
    return f"{text} with {key} x {times}"


def test_a_bound_parameter_is_filled_if_the_call_leaves_it_out() -> None:
    bound = send.clone().bind("key", state_key="mail.key")
    assert isinstance(bound, FunctionTool)
    bound.state = {"mail": {"key": "k-1"}}
    assert bound("hi", times=2) == "hi with k-1 x 2"  # type: ignore[call-arg]
    assert bound("hi", "own") == "hi with own x 1"
    bound.state = {"mail": {"key": "k-2"}}
    assert bound("hi") == "hi with k-2 x 1"  # type: ignore[call-arg]
    assert send("hi", "plain") == "hi with plain x 1"


def test_a_bound_parameter_without_a_fitting_value_is_the_hosts_mistake() -> None:
    bound = send.clone().bind("key")
    with pytest.raises(BindingError, match=r"^tool 'send': 'key' is set by the host, but its state has no 'key'.$"):
        bound("hi")  # type: ignore[call-arg]
    bound.state = {"key": 5}
    with pytest.raises(BindingError, match="is of type int and does not fit str"):
        bound("hi")  # type: ignore[call-arg]


def test_a_context_is_given_by_call_alone() -> None:
    @tool
    def log(text: str, context: CallContext) -> str:
        """Logs."""
        return f"{text} in {type(context).__name__}"

    assert log.call(text="a").startswith("a in ")
    with pytest.raises(TypeError, match="'context'"):
        log("a")  # type: ignore[call-arg]
