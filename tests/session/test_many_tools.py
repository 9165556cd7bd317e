"""A turn looks up the tools that its reply names, as they are at that moment."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire import Session, Store, ToolRegistry
from toolwire.catalogue.catalogue import Catalogue
from toolwire.protocols import get
from toolwire.vocabulary.calls import ToolCall


def price(item: str) -> int:
    """Tells the price of an item."""
    return len(item)


def pay(amount: int, to: str = "shop") -> str:
    """Pays."""
    return f"{amount} to {to}"


class Asked:
    """A predicate that notes the tools that it is asked about."""

    def __init__(self, *hidden: str) -> None:
        self.hidden = set(hidden)
        self.names: list[str] = []

    def __call__(self, name: str, _caller: object) -> bool:
        self.names.append(name)
        return name not in self.hidden


def call(name: str, **arguments: Any) -> str:
    text = get("xml").render([ToolCall(name, arguments)])
    assert isinstance(text, str)
    return text


async def test_a_predicate_is_not_asked_about_tools_that_a_reply_does_not_name() -> None:
    asked = Asked()
    session = Session([price, pay], protocol="xml", visible=asked)
    asked.names.clear()
    turn = await session.turn(f"I look at it first.\n{call('price', item='tea')}")
    assert turn.results[0].data == 3
    assert set(asked.names) == {"price"}


async def test_the_record_of_a_turn_looks_up_the_called_tools_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open("memory:") as store:
        session = Session([price, pay], protocol="xml", store=store)
        with monkeypatch.context() as watched:
            watched.setattr(Catalogue, "__iter__", None)
            turn = await session.turn(call("price", item="tea"))
        assert turn.results[0].data == 3
        assert [run.tools for run in store.runs(tool="price")] == [("price",)]


async def test_prose_that_names_a_hidden_tool_is_an_answer() -> None:
    asked = Asked()
    session = Session([price, pay], protocol="xml", visible=asked)
    text = 'pay({"amount": 3})'
    assert (await session.turn(text)).reply.text == ""
    asked.hidden.add("pay")
    assert (await session.turn(text)).reply.text == text


async def test_each_turn_reads_a_call_by_the_parameters_of_its_moment() -> None:
    registry = ToolRegistry()
    registry.register(price)
    session = Session(registry, protocol="xml")
    assert (await session.turn(call("pay", amount="3"))).results[0].failure is not None
    registry.register(pay)
    assert (await session.turn(call("pay", amount="3"))).results[0].data == "3 to shop"

    def pay_text(amount: str) -> str:
        return amount

    registry.register(pay_text, name="pay", replace=True)
    assert (await session.turn(call("pay", amount="3"))).results[0].data == "3"
    registry.disable("pay", "closed")
    failure = (await session.turn(call("pay", amount="3"))).results[0].failure
    assert failure is not None
    assert failure.kind == "unavailable"


async def test_a_tool_that_goes_while_a_reply_arrives_is_read_and_then_refused() -> None:
    registry = ToolRegistry()
    registry.register(price)
    session = Session(registry, protocol="xml")
    stream = session.stream()
    text = call("price", item="tea")
    half = text.index("tea")
    stream.feed(text[:half])
    registry.unregister("price")
    stream.feed(text[half:])
    turn = await session.turn(stream.reply())
    assert [result.failure.kind for result in turn.results if result.failure] == ["unknown_tool"]
