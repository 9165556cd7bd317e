"""`configure` of a registry and a toolkit: what is replaced, what is added, and that an error changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolwire import ConfigurationError, Decision, RegistrationError, Toolkit, ToolRegistry, ToolwireError


def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


def approve(_: object) -> Decision:
    return Decision(verdict="approve")


class Layer:
    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    async def __call__(self, call: Any, call_next: Any) -> Any:
        self.seen.append(self.name)
        return await call_next(call)


def registry(**settings: Any) -> ToolRegistry:
    made = ToolRegistry(**settings)
    made.register(add)
    made.register(pay)
    return made


def permissions(made: ToolRegistry) -> list[str]:
    return [made.permission_of(name) for name in ("add", "pay")]


def test_a_policy_replaces_the_rules_and_rules_are_added_to_them() -> None:
    made = registry(rules=[{"effect": "deny", "tool": "add"}])
    made.configure(policy=[{"effect": "deny", "tool": "pay"}])
    assert permissions(made) == ["auto", "deny"]
    made.configure(rules=[{"effect": "confirm", "tool": "add"}])
    assert permissions(made) == ["confirm", "deny"]
    made.configure(policy=[], rules=[{"effect": "deny", "tool": "add"}])
    assert permissions(made) == ["deny", "auto"]
    made.configure()
    assert permissions(made) == ["deny", "auto"]


def test_layers_and_predicates_are_added_to_those_that_are_there() -> None:
    seen: list[str] = []
    made = registry(middleware=[Layer("first", seen)], visible=lambda name, _: name != "pay")
    toolkit = made.create_agent_toolkit("clerk", ["add", "pay"])
    made.configure(middleware=[Layer("second", seen)], visible=lambda name, _: name != "none")
    assert made.invoke("add", {"a": 1, "b": 2}).data == 3
    assert seen == ["first", "second"]
    assert [tool["function"]["name"] for tool in toolkit.get_json_schemas()] == ["add"]


def test_a_registry_takes_one_approver() -> None:
    made = registry(rules=[{"effect": "confirm", "tool": "pay"}])
    made.configure(approver=approve)
    assert made.invoke("pay", {"amount": 5}).data == "paid 5"
    with pytest.raises(ToolwireError, match=r"^configure\(approver=...\): this registry has an approver already"):
        made.configure(approver=approve)


def test_a_rule_may_name_a_tool_that_the_same_call_adds() -> None:
    made = registry()
    made.configure(user_questions=True, rules=[{"effect": "deny", "tool": "ask_user"}])
    assert made.permission_of("ask_user") == "deny"


def test_a_switch_leaves_a_tool_of_the_host_that_took_its_name() -> None:
    made = registry()
    made.configure(user_questions=True)
    made.unregister("ask_user")
    made.register(pay, name="ask_user")
    made.configure(user_questions=False)
    with pytest.raises(RegistrationError, match="a tool named 'ask_user' is registered already"):
        made.configure(user_questions=True)
    assert made.get_tool("ask_user") is pay


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "rule": ({"rules": [{"effect": "deny", "tool": "ad"}]}, "did you mean 'add'"),
    "approver": ({"approver": 5}, "approver"),
    "predicate": ({"visible": "add"}, "visible"),
    "layer": ({"middleware": [5]}, "middleware"),
    "search": ({"tool_search": "add"}, r"^tool_search='add' is one string: write tool_search=\['add'\]$"),
    "name": ({"user_questions": True}, "a tool named 'ask_user' is registered already"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_after_an_error_all_settings_are_as_before(wrong: str) -> None:
    made, seen = registry(), list[str]()

    @made.register
    def ask_user(text: str) -> str:
        """Is the host's own."""
        return text

    settings, message = WRONG[wrong]
    right = {"policy": [{"effect": "deny", "tool": "add"}], "middleware": [Layer("one", seen)], "result_pages": True}
    with pytest.raises(ToolwireError, match=message):
        made.configure(**{**right, **settings})
    assert {*made} == {"add", "pay", "ask_user"}
    assert (made.invoke("add", {"a": 1, "b": 2}).data, seen) == (3, [])
    assert made.invoke("ask_user", {"text": "x"}).data == "x"


def test_a_toolkit_adds_layers_and_predicates_of_its_own() -> None:
    seen: list[str] = []
    made = registry(middleware=[Layer("registry", seen)])
    toolkit, other = (made.create_agent_toolkit(name, ["add", "pay"]) for name in ("clerk", "other"))
    with pytest.raises(ToolwireError, match="middleware"):
        toolkit.configure(visible=lambda name, _: name != "add", middleware=[5])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    toolkit.configure(visible=lambda name, _: name != "pay")
    toolkit.configure(visible=lambda name, _: name != "none", middleware=[Layer("toolkit", seen)])
    assert [
        [tool["function"]["name"] for tool in kit.get_json_schemas()] for kit in (toolkit, other, Toolkit("empty"))
    ] == [["add"], ["add", "pay"], []]
    assert made.invoke("add", {"a": 1, "b": 2}).data == 3
    assert asyncio.run(toolkit.execute_tool("add", {"a": 1, "b": 2})).data == 3
    assert seen == ["registry", "registry", "toolkit"]


@pytest.mark.parametrize("option", ["policy", "rules"])
def test_a_policy_of_another_type_is_refused_with_the_forms_to_give(option: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ToolRegistry().configure(**{option: 3})  # type: ignore[arg-type]
    assert str(caught.value) == "3 has no rules: give a Policy, the path of a policy file, or a list of rules"
