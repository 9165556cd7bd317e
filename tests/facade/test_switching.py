"""Tools that are removed, disabled, enabled and replaced while toolkits, sessions and programs use them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from tests.patience import PATIENCE_S
from tests.session.till import program
from toolwire import (
    ConfigurationError,
    Decision,
    RegistrationError,
    Rule,
    Session,
    Toolkit,
    ToolRegistry,
    ToolResult,
    ToolSpec,
)

REASON = "the bank is closed until Monday"
REFUSED = f"'pay' is disabled: {REASON}.\nIt did not run. Do without it, or tell the user."


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def price(thing: str) -> int:
    """The price of a thing."""
    return len(thing)


def shop(**options: Any) -> ToolRegistry:
    registry = ToolRegistry(**options)
    registry.register(pay)
    registry.register(price)
    return registry


def kinds(*results: ToolResult) -> list[str]:
    return ["success" if result.failure is None else result.failure.kind for result in results]


def names(tools: Toolkit) -> list[str]:
    return [schema["function"]["name"] for schema in tools.get_json_schemas()]


def pay_now(tools: ToolRegistry | Toolkit) -> ToolResult:
    if isinstance(tools, ToolRegistry):
        return tools.invoke("pay", {"amount": 5})
    return asyncio.run(tools.execute_tool("pay", {"amount": 5}))


def registry_alone() -> tuple[ToolRegistry, ToolRegistry]:
    registry = shop()
    return registry, registry


def toolkit_alone() -> tuple[Toolkit, Toolkit]:
    toolkit = Toolkit("clerk")
    toolkit.add_tools([pay, price])
    return toolkit, toolkit


def toolkit_of_registry() -> tuple[ToolRegistry, Toolkit]:
    registry = shop()
    return registry, registry.create_agent_toolkit("clerk", ["pay", "price"])


def toolkit_over_registry() -> tuple[Toolkit, Toolkit]:
    _, toolkit = toolkit_of_registry()
    return toolkit, toolkit


PLACES = [registry_alone, toolkit_alone, toolkit_of_registry, toolkit_over_registry]
"""The place in which a tool is switched, and the place in which it is called."""


# -- disabled tools ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_a_call_of_a_disabled_tool_is_refused_with_its_reason_until_it_is_enabled(
    place: Callable[[], tuple[Any, Any]],
) -> None:
    owner, caller = place()
    before = pay_now(caller)
    owner.disable("pay", REASON)
    refused = pay_now(caller)
    owner.enable("pay")
    assert (before.data, pay_now(caller).data) == ("paid 5", "paid 5")
    assert refused.failure is not None
    assert (refused.text, refused.failure.kind, refused.failure.data["is_started"]) == (REFUSED, "unavailable", False)


@pytest.mark.parametrize("place", PLACES)
def test_an_owner_sees_what_is_disabled_and_a_second_reason_counts(place: Callable[[], tuple[Any, Any]]) -> None:
    owner, caller = place()
    owner.disable("pay", "a reason")
    owner.disable("pay", REASON)
    assert (dict(owner.disabled_tools), dict(caller.disabled_tools)) == ({"pay": REASON}, {"pay": REASON})
    assert caller.get_tool("pay") is pay
    owner.enable("pay")
    owner.enable("pay")
    assert (dict(owner.disabled_tools), dict(caller.disabled_tools)) == ({}, {})


def test_a_tool_disabled_in_a_toolkit_still_runs_elsewhere() -> None:
    registry = shop()
    one, other = (registry.create_agent_toolkit(name, ["pay"]) for name in ("one", "other"))
    one.disable("pay", REASON)
    assert kinds(pay_now(one), pay_now(other), pay_now(registry)) == ["unavailable", "success", "success"]


def test_a_toolkit_cannot_enable_what_its_registry_has_disabled() -> None:
    registry, toolkit = toolkit_of_registry()
    registry.disable("pay", REASON)
    with pytest.raises(RegistrationError) as raised:
        toolkit.enable("pay")
    assert str(raised.value) == "the registry has disabled 'pay': write registry.enable('pay')"
    toolkit.disable("pay", "not for clerks")
    registry.enable("pay")
    assert pay_now(toolkit).error == "'pay' is disabled: not for clerks."
    toolkit.enable("pay")
    assert pay_now(toolkit).data == "paid 5"


def test_a_disabled_tool_is_offered_nowhere_and_an_enabled_one_everywhere() -> None:
    registry, toolkit = toolkit_of_registry()
    registry.configure(tool_search=["*"])
    registry.enable_code_execution()
    session, native = Session(registry), Session(registry, protocol="openai")

    def offers() -> list[bool]:
        found = [tool.name for tool in registry.get_tool("search_tools").find("pay", 5)]
        described = registry.get_tool("code_execution").__tool__().description
        return [
            "pay" in names(toolkit),
            "pay(" in str(session.instructions),
            "'pay'" in str(native.instructions),
            "pay" in found,
            "pay(" in described,
        ]

    before = offers()
    registry.disable("pay", REASON)
    after = offers()
    registry.enable("pay")
    assert (before, after, offers()) == ([True] * 5, [False] * 5, [True] * 5)


def test_no_answer_names_a_disabled_tool_as_one_to_call() -> None:
    registry = shop()
    registry.disable("pay", REASON)
    unknown, near = registry.invoke("xyz"), registry.invoke("pya", {"amount": 5})
    assert [unknown.text, near.text] == [
        "There is no tool named 'xyz'.\nThe tools are: price.",
        "There is no tool named 'pya'.\nThe tools are: price.",
    ]
    registry.enable("pay")
    assert registry.invoke("pya").text == "There is no tool named 'pya'.\nDid you mean 'pay'?"


@pytest.mark.parametrize("protocol", ["xml", "json"])
async def test_a_model_that_calls_a_disabled_tool_reads_the_reason(protocol: str) -> None:
    registry = shop()
    session = Session(registry, protocol=protocol)
    reply = {
        "xml": "<tool_call><name>pay</name><params><amount>5</amount></params></tool_call>",
        "json": '{"name": "pay", "arguments": {"amount": 5}}',
    }[protocol]
    registry.disable("pay", REASON)
    turn = await session.turn(reply)
    assert [result.text for result in turn.results] == [REFUSED]
    registry.enable("pay")
    assert [result.data for result in (await session.turn(reply)).results] == ["paid 5"]


def test_a_disabled_tool_of_an_inactive_group_tells_its_reason_at_once() -> None:
    toolkit = Toolkit("clerk")
    toolkit.create_tool_group("money", "Money")
    toolkit.register_tool_function(pay, "money")
    toolkit.allow_group_switching()
    assert kinds(pay_now(toolkit)) == ["inactive_tool"]
    toolkit.disable("pay", REASON)
    assert pay_now(toolkit).text == REFUSED
    activated = asyncio.run(toolkit.execute_tool("activate_tool_groups", {"groups": ["money"]}))
    assert activated.text == "Active groups: money."


def test_a_hidden_tool_tells_no_reason() -> None:
    registry = shop(visible=lambda name, caller: name != "pay")
    registry.disable("pay", REASON)
    assert registry.invoke("pay", {"amount": 5}).error == "There is no tool named 'pay'."


def test_a_disabled_search_hides_no_tool() -> None:
    registry = shop()
    registry.configure(tool_search=True)
    session = Session(registry, always=["price"])
    before = [tool.name for tool in session.tools]
    registry.disable("search_tools", REASON)
    after = [tool.name for tool in session.tools]
    registry.configure(tool_search=True)
    assert [before, after] == [["price", "search_tools"], ["pay", "price"]]
    assert [tool.name for tool in session.tools] == before


async def test_a_built_in_tool_is_disabled_for_toolkits_and_sessions_and_keeps_what_it_holds() -> None:
    registry = ToolRegistry(result_limit_bytes=1_000)

    @registry.register
    def long() -> str:
        """Gives much."""
        return "x" * 3_000

    registry.configure(result_pages=True)
    toolkit = registry.create_agent_toolkit("reader", ["long", "read_result"])
    first = await toolkit.execute_tool("long")
    registry.disable("read_result", REASON)
    cut = await toolkit.execute_tool("long")
    assert ("read_result" in first.text, "read_result" in cut.text) == (True, False)
    page = {"id": first.metadata["result_id"], "offset": 1_000}
    assert kinds(await toolkit.execute_tool("read_result", page)) == ["unavailable"]
    registry.enable("read_result")
    assert kinds(await toolkit.execute_tool("read_result", page)) == ["success"]


async def test_disabled_programs_do_not_run_in_any_session_though_it_has_its_own() -> None:
    registry = shop()
    registry.enable_code_execution()
    registry.disable("code_execution", REASON)
    session = Session(registry)
    refused = await session.turn(program("print(1)"))
    assert "'code_execution' is disabled" in str(refused.text)
    registry.enable("code_execution")
    assert (await session.turn(program("print(1)"))).text == "1\n"
    registry.disable("code_execution", REASON)
    registry.enable_code_execution()
    assert (await session.turn(program("print(1)"))).text == "1\n"


@pytest.mark.parametrize("reason", ["", "  ", None, 3])
def test_a_tool_is_not_disabled_without_a_reason_to_read(reason: Any) -> None:
    registry = shop()
    with pytest.raises(ConfigurationError, match="write a reason for the model to read"):
        registry.disable("pay", reason)
    assert pay_now(registry).data == "paid 5"


@pytest.mark.parametrize("owner", [shop(), registry_alone()[0], toolkit_alone()[0], toolkit_over_registry()[0]])
def test_a_name_that_is_not_there_is_an_error_that_names_the_nearest(owner: Any) -> None:
    for switch in (owner.unregister, owner.enable, lambda name: owner.disable(name, REASON)):
        with pytest.raises(RegistrationError) as raised:
            switch("prize")
        assert str(raised.value) == "no tool is named 'prize'; did you mean 'price'?"


# -- programs ---------------------------------------------------------------------------------------------------

CATCHES = """
try:
    print(pay(amount=5))
except ToolUnavailable as error:
    print(error)
print(price("tea"))
"""


def test_a_program_that_calls_a_disabled_tool_can_catch_the_refusal() -> None:
    registry = shop()
    registry.disable("pay", REASON)
    result = registry.run_program(CATCHES)
    assert (result.status, result.stdout) == ("finished", f"{REFUSED}\n3\n")
    registry.enable("pay")
    assert registry.run_program(CATCHES).stdout == "paid 5\n3\n"


@pytest.mark.parametrize(
    ("switch", "told"),
    [
        (lambda registry: registry.disable("pay", REASON), REFUSED),
        (lambda registry: registry.unregister("pay"), "There is no tool named 'pay'.\nThe tools are: close."),
    ],
)
def test_a_program_that_runs_meets_the_change_at_its_next_call(
    switch: Callable[[ToolRegistry], None], told: str
) -> None:
    registry = ToolRegistry()
    registry.register(pay)
    registry.register(lambda: switch(registry), name="close")
    result = registry.run_program(
        "print(pay(1))\nclose()\ntry:\n    pay(2)\nexcept ToolUnavailable as error:\n    print(error)"
    )
    assert (result.status, result.stdout) == ("finished", f"paid 1\n{told}\n")


# -- removed tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_a_removed_tool_is_unknown_and_its_name_is_free(place: Callable[[], tuple[Any, Any]]) -> None:
    owner, caller = place()
    owner.unregister("pay")
    assert (kinds(pay_now(caller)), caller.get_tool("pay"), len(caller.list_tools())) == (["unknown_tool"], None, 1)

    def other(amount: int) -> str:
        """Pays otherwise."""
        return f"{amount} in shells"

    spec = ToolSpec.from_function(other, name="pay")
    owner.register(spec) if isinstance(owner, ToolRegistry) else owner.add_tool(spec)
    assert pay_now(owner).data == "5 in shells"


def test_a_new_tool_of_a_removed_ones_name_does_not_get_into_its_toolkits() -> None:
    registry, toolkit = toolkit_of_registry()
    registry.unregister("pay")
    registry.register(price, name="pay")
    assert (names(toolkit), kinds(pay_now(toolkit))) == (["price"], ["unknown_tool"])
    toolkit.add_tool(ToolSpec.from_function(pay))
    assert pay_now(toolkit).data == "paid 5"


def test_a_toolkit_may_take_a_name_that_programs_write_like_a_removed_one() -> None:
    registry = ToolRegistry()
    registry.register(pay, name="pay-now")
    toolkit = registry.create_agent_toolkit("clerk", ["pay-now"])
    spec = ToolSpec.from_function(pay, name="pay_now")
    with pytest.raises(RegistrationError, match="programs would write"):
        toolkit.add_tool(spec)
    registry.unregister("pay-now")
    toolkit.add_tool(spec)
    assert names(toolkit) == ["pay_now"]


def test_a_tool_removed_from_a_toolkit_stays_in_its_registry() -> None:
    registry, toolkit = toolkit_of_registry()
    toolkit.unregister("pay")
    assert (names(toolkit), pay_now(registry).data) == (["price"], "paid 5")
    toolkit.draw(registry._call_scope.catalogue, "pay")
    assert pay_now(toolkit).data == "paid 5"


def test_a_session_can_be_made_though_a_rule_is_about_a_tool_that_was_removed() -> None:
    registry = shop(rules=[Rule(effect="confirm", tool="pay")])
    Session(registry)
    registry.unregister("pay")
    assert [tool.name for tool in Session(registry).tools] == ["price"]


def test_a_rule_about_a_tool_that_never_was_is_still_a_mistake() -> None:
    registry = shop(rules=[Rule(effect="confirm", tool="pya")])
    with pytest.raises(ConfigurationError, match="did you mean 'pay'"):
        Session(registry)


# -- replaced tools ---------------------------------------------------------------------------------------------


def pay_twice(amount: int) -> str:
    """Pays twice."""
    return f"paid {amount} twice"


def test_a_replaced_tool_reaches_the_toolkits_that_were_made_before() -> None:
    registry, toolkit = toolkit_of_registry()
    session = Session(toolkit)
    registry.register(pay_twice, name="pay", replace=True)
    assert (pay_now(toolkit).data, names(toolkit)) == ("paid 5 twice", ["pay", "price"])
    assert [tool.description for tool in session.tools] == ["Pays twice.", "The price of a thing."]


class Twins:
    """Two tools, of which the second cannot be registered beside `price`."""

    def pay(self, amount: int) -> str:
        """Pays otherwise."""
        return f"{amount} in shells"

    def pri_ce(self, thing: str) -> int:
        """The price."""
        return len(thing)


def test_a_replacement_that_fails_half_way_leaves_toolkits_as_they_were() -> None:
    registry, toolkit = toolkit_of_registry()
    registry.register(price, name="pri ce")
    with pytest.raises(RegistrationError, match="programs would write"):
        registry.register(Twins(), methods=["pay", "pri_ce"], replace=True)
    assert (pay_now(registry).data, pay_now(toolkit).data) == ("paid 5", "paid 5")


def test_a_replaced_tool_stays_disabled_and_takes_its_new_options() -> None:
    registry, toolkit = toolkit_of_registry()
    registry.disable("pay", REASON)
    registry.register(pay_twice, name="pay", permission="deny", replace=True)
    assert pay_now(toolkit).text == REFUSED
    registry.enable("pay")
    assert kinds(pay_now(toolkit)) == ["denied"]


def test_a_coroutine_function_in_its_place_is_awaited_for_toolkits_as_well() -> None:
    registry, toolkit = toolkit_of_registry()

    async def later(amount: int) -> str:
        """Pays later."""
        await asyncio.sleep(0)
        return f"paid {amount} later"

    registry.register(later, name="pay", replace=True)
    assert (pay_now(registry).data, pay_now(toolkit).data) == ("paid 5 later", "paid 5 later")
    toolkit_programs = Session(toolkit)
    assert asyncio.run(toolkit_programs.turn(program("print(pay(5))"))).text == "paid 5 later\n"


class Receipt(BaseModel):
    """What a payment is for."""

    purpose: str


def test_the_fields_that_a_toolkit_gave_a_tool_are_given_to_the_one_in_its_place() -> None:
    registry, toolkit = toolkit_of_registry()
    toolkit.set_extended_model("pay", Receipt)
    registry.register(pay_twice, name="pay", replace=True)
    result = asyncio.run(toolkit.execute_tool("pay", {"amount": 5, "purpose": "tea"}))
    assert (result.data, result.metadata["structured"]) == ("paid 5 twice", Receipt(purpose="tea"))
    assert kinds(pay_now(toolkit), pay_now(registry)) == ["invalid_arguments", "success"]


def test_a_tool_that_cannot_take_these_fields_is_disabled_with_a_word(caplog: pytest.LogCaptureFixture) -> None:
    registry, toolkit = toolkit_of_registry()
    toolkit.set_extended_model("pay", Receipt)

    def pay_for(amount: int, purpose: str) -> str:
        """Pays for it."""
        return f"paid {amount} for {purpose}"

    registry.register(ToolSpec.from_function(pay_for).bind("purpose", default="tea"), name="pay", replace=True)
    assert pay_now(toolkit).error == "'pay' is disabled: a newer version of it does not fit here."
    assert "the field 'purpose' of Receipt is a parameter that the host gives" in caplog.text
    toolkit.set_extended_model("pay", None)
    assert pay_now(toolkit).data == "paid 5 for tea"


# -- beside running calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", ["unregister", "disable", "replace"])
def test_a_call_that_runs_goes_on_to_its_end(switch: str) -> None:
    registry, entered, go = ToolRegistry(), threading.Event(), threading.Event()

    @registry.register
    def slow() -> str:
        """Waits."""
        entered.set()
        assert go.wait(PATIENCE_S)
        return "done"

    log = registry.enable_logging()
    results: list[ToolResult] = []
    thread = threading.Thread(target=lambda: results.append(registry.invoke("slow")))
    thread.start()
    assert entered.wait(PATIENCE_S)
    if switch == "unregister":
        registry.unregister("slow")
    elif switch == "disable":
        registry.disable("slow", REASON)
    else:
        registry.register(lambda: "new", name="slow", replace=True)
    after = registry.invoke("slow")
    go.set()
    thread.join(PATIENCE_S)
    assert [result.data for result in results] == ["done"]
    expected = {"unregister": "unknown_tool", "disable": "unavailable", "replace": "success"}[switch]
    assert kinds(after) == [expected]
    assert [entry.status for entry in log.get_entries()] == ["success", expected]


def test_switching_beside_calls_of_many_threads_loses_no_call_and_tells_no_nonsense() -> None:
    registry, toolkit = toolkit_of_registry()
    stop, seen, broken = threading.Event(), set[str](), list[BaseException]()

    def call(caller: Any) -> None:
        try:
            while not stop.is_set():
                seen.add(str(pay_now(caller).error))
        except BaseException as error:
            broken.append(error)

    threads = [threading.Thread(target=call, args=(caller,)) for caller in (registry, registry, toolkit)]
    for thread in threads:
        thread.start()
    for _ in range(150):
        registry.disable("pay", REASON)
        registry.register(pay_twice, name="pay", replace=True)
        registry.enable("pay")
        registry.unregister("pay")
        registry.register(pay)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert broken == []
    assert seen <= {
        "None",
        f"'pay' is disabled: {REASON}.",
        "There is no tool named 'pay'.",
        "Tool 'pay' not available in clerk's toolkit",
    }
    assert (pay_now(registry).data, kinds(pay_now(toolkit))) == ("paid 5", ["unknown_tool"])


@pytest.mark.parametrize(
    ("switch", "kind"),
    [
        (lambda registry: registry.disable("pay", REASON), "unavailable"),
        (lambda registry: registry.unregister("pay"), "unknown_tool"),
        (lambda registry: None, "success"),
    ],
)
def test_a_call_that_a_person_approves_after_the_change_does_not_run(
    switch: Callable[[ToolRegistry], None], kind: str
) -> None:
    def approve(_: object) -> Decision:
        switch(registry)
        return Decision(verdict="approve")

    registry, paid = ToolRegistry(approver=approve), list[int]()
    registry.register(lambda amount: paid.append(amount), name="pay", permission="confirm")
    result = registry.invoke("pay", {"amount": 5})
    assert (kinds(result), paid) == ([kind], [5] if kind == "success" else [])
    assert result.metadata["approval"]["verdict"] == "approve"
