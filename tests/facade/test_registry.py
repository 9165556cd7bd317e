"""`ToolRegistry`: a library, a base class, and the one way to call."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from toolwire import (
    ApprovalRequest,
    BaseTool,
    Decision,
    DefinitionError,
    RegistrationError,
    Rule,
    ToolParameter,
    ToolRegistry,
    ToolResult,
    ToolSpec,
    reg_toolspec,
)
from toolwire.seeds import ToolPermission


def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


async def add_later(a: int, b: int = 2) -> int:
    """Adds, later."""
    await asyncio.sleep(0)
    return a + b


class Echo(BaseTool):
    def __init__(self) -> None:
        super().__init__(name="echo", description="Gives back", permission=ToolPermission.AUTO, loud=True)

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter(name="text", type="string", description="What")]

    async def execute(self, **params: object) -> ToolResult:
        return ToolResult(success=True, data=params["text"])

    def validate_params(self, params: dict[str, object]) -> str | None:
        return "text must not be empty" if params["text"] == "" else None


class Calculator:
    def __init__(self) -> None:
        self.total = 0

    @reg_toolspec
    def plus(self, n: int) -> int:
        """Adds to the total."""
        self.total += n
        return self.total

    def reset(self) -> None:
        """Forgets the total."""
        self.total = 0

    def _private(self) -> None:
        """Not for models."""

    @property
    def danger(self) -> int:
        """Must not be read just to register."""
        raise AssertionError


def registry_of(*things: object) -> ToolRegistry:
    registry = ToolRegistry()
    for thing in things:
        registry.register_tool_to_library(thing)
    return registry


def kind_of(result: ToolResult) -> str:
    return "success" if result.failure is None else result.failure.kind


def test_get_tool_gives_back_the_very_object() -> None:
    spec, echo = ToolSpec.from_function(add, name="plus"), Echo()
    registry = registry_of(add, spec, echo)
    assert (registry.get_tool("add"), registry.get_tool("plus"), registry.get_tool("echo")) == (add, spec, echo)
    assert registry.get_tool("minus") is None
    assert registry.list_tools() == [add, spec, echo]
    assert dict(registry.tool_library) == {"add": add, "plus": spec, "echo": echo}


def test_register_is_a_decorator_with_and_without_options() -> None:
    registry = ToolRegistry()

    @registry.register
    def one() -> int:
        """One."""
        return 1

    @registry.register(name="two")
    def other() -> int:
        """Two."""
        return 2

    assert (one(), other(), registry.invoke("one").data, registry.invoke("two").data) == (1, 2, 1, 2)


@pytest.mark.requirement("spec.core.tool")
def test_a_later_binding_counts_in_the_registry() -> None:
    spec = ToolSpec.from_function(add)
    registry = registry_of(spec)
    spec.bind("b", default=40)
    assert registry.invoke("add", {"a": 2}).data == 42
    assert kind_of(registry.invoke("add", {"a": 2, "b": 1})) == "invalid_arguments"


@pytest.mark.requirement("base.registry.duplicate")
def test_a_taken_name_is_refused_unless_it_is_the_same_object_or_replaced() -> None:
    registry = registry_of(add)
    registry.register(add)
    with pytest.raises(RegistrationError, match="a tool named 'add' is registered already"):
        registry.register(add_later, name="add")
    registry.register(add_later, name="add", replace=True)
    assert registry.get_tool("add") is add_later


def test_an_instance_gives_its_marked_methods() -> None:
    registry = registry_of(Calculator())
    assert registry.list_toolspecs() == ["plus"]
    registry.invoke("plus", {"n": 2})
    assert registry.invoke("plus", {"n": 3}).data == 5


def test_a_value_that_cannot_be_a_tool_names_alternatives() -> None:
    with pytest.raises(DefinitionError, match="register a function, a ToolSpec, a BaseTool"):
        registry_of(42)
    with pytest.raises(
        DefinitionError, match=r"Calculator is a class: register an instance of it, Calculator\(\.\.\.\)"
    ):
        registry_of(Calculator)


@pytest.mark.requirement("base.extend.new-tool")
def test_a_base_tool_and_its_class_can_be_registered() -> None:
    assert registry_of(Echo).invoke("echo", {"text": "hi"}).data == "hi"
    assert registry_of(Echo()).invoke("echo", {"text": "hi"}).data == "hi"


def test_a_base_tools_own_check_runs_after_the_schema() -> None:
    registry = registry_of(Echo())
    assert kind_of(registry.invoke("echo", {"text": ""})) == "invalid_arguments"
    assert "text must not be empty" in registry.invoke("echo", {"text": ""}).text
    assert kind_of(registry.invoke("echo", {"text": 5})) == "invalid_arguments"


def test_invoke_never_raises() -> None:
    registry = registry_of(add)
    outcomes = [registry.invoke("ad"), registry.invoke("add"), registry.invoke("add", {"a": "x"}), registry.invoke("")]
    assert [kind_of(result) for result in outcomes] == [
        "unknown_tool",
        "invalid_arguments",
        "invalid_arguments",
        "unknown_tool",
    ]


async def test_blocking_and_awaited_calls_work_inside_a_running_loop() -> None:
    registry = registry_of(add, add_later)
    assert registry.invoke("add_later", {"a": 1}).data == 3
    assert (await registry.ainvoke("add", {"a": 1})).data == 3
    assert (await registry.ainvoke("add_later", {"a": 1})).data == 3


def test_one_registry_serves_several_threads_and_loops() -> None:
    registry = registry_of(add, add_later)
    found: list[int] = []

    def work() -> None:
        async def both() -> None:
            found.append((await registry.ainvoke("add", {"a": 1})).data)
            found.append((await registry.ainvoke("add_later", {"a": 2})).data)

        asyncio.run(both())
        found.append(registry.invoke("add_later", {"a": 3}).data)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted([3, 4, 5] * 4)


def test_permissions_are_honoured() -> None:
    registry = ToolRegistry(rules=[Rule(effect="deny", tool="drop_*", note="no")])
    registry.register(add, name="drop_all")
    registry.register(add, name="pay", permission="confirm")
    registry.register(add, name="never", permission="deny")
    assert registry.invoke("drop_all", {"a": 1}).error == "'drop_all' may not be run: rule deny 'drop_*': no."
    assert kind_of(registry.invoke("pay", {"a": 1})) == "approval_required"
    assert kind_of(registry.invoke("never", {"a": 1})) == "denied"


def test_an_approver_is_asked_with_what_will_run() -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Decision:
        asked.append(request)
        return Decision(verdict="approve")

    registry = ToolRegistry(approver=approve)
    registry.register(add, permission="confirm")
    assert registry.invoke("add", {"a": "1"}).data == 3
    assert [(request.tool, request.arguments) for request in asked] == [("add", {"a": 1, "b": 2})]


class Shop(ToolRegistry):
    def __init__(self) -> None:
        self.stock = {"book": 2}

    @reg_toolspec(parse_docstring=True, permission="auto")
    def count(self, item: str) -> int:
        """Counts what is in stock."""
        return self.stock[item]

    @reg_toolspec
    def items(self) -> list[str]:
        """Lists what is sold."""
        return list(self.stock)


class Market(Shop):
    def items(self) -> list[str]:
        return ["stall", *self.stock]


def test_marked_methods_are_the_tools_of_an_instance_without_super_init() -> None:
    shop = Shop()
    assert shop.list_toolspecs() == ["count", "items"]
    assert shop.to_toolspecs()["count"](item="book") == 2
    assert shop.invoke("count", {"item": "book"}).data == 2
    assert list(shop.to_toolspecs()["count"].params) == ["item"]


def test_each_instance_has_its_own_state() -> None:
    one, two = Shop(), Shop()
    one.stock["book"] = 9
    assert (one.invoke("count", {"item": "book"}).data, two.invoke("count", {"item": "book"}).data) == (9, 2)


@pytest.mark.requirement("spec.registry.inherited")
def test_an_override_keeps_the_mark_and_runs_itself() -> None:
    market = Market()
    assert market.list_toolspecs() == ["count", "items"]
    assert market.invoke("count", {"item": "book"}).data == 2
    assert market.invoke("items").data == ["stall", "book"]


def test_a_tool_method_that_hides_a_registry_method_is_told_at_class_definition() -> None:
    with pytest.raises(DefinitionError, match=r"the tool method Bad\.invoke hides ToolRegistry\.invoke"):

        class Bad(ToolRegistry):
            @reg_toolspec
            def invoke(self) -> int:
                """Hides."""
                return 1


def test_a_toolkit_leaves_out_unknown_names_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    registry = registry_of(add, Echo())
    with caplog.at_level(logging.WARNING, "toolwire"):
        toolkit = registry.create_agent_toolkit("lead", ["add", "ecko"])
    assert toolkit.list_tools() == [add]
    assert registry.get_agent_toolkit("lead") is toolkit
    assert registry.get_agent_toolkit("other") is None
    assert dict(registry.agent_toolkits) == {"lead": toolkit}
    assert [record.getMessage() for record in caplog.records] == [
        "the toolkit of 'lead' goes without 'ecko': no such tool is registered; did you mean 'echo'?"
    ]


async def test_a_toolkit_runs_only_its_own_tools_under_the_registrys_rules() -> None:
    registry = ToolRegistry(rules=[Rule(effect="deny", tool="echo")])
    registry.register(add)
    registry.register(Echo())
    log = registry.enable_logging()
    toolkit = registry.create_agent_toolkit("lead", ["add", "echo"])
    assert (await toolkit.execute_tool("add", {"a": 1})).data == 3
    assert kind_of(await toolkit.execute_tool("echo", {"text": "x"})) == "denied"
    missing = await toolkit.execute_tool("addd", {})
    assert (missing.error, kind_of(missing)) == ("Tool 'addd' not available in lead's toolkit", "unknown_tool")
    assert [entry.tool_name for entry in log.get_entries()] == ["echo", "add"]


def test_the_log_is_there_once_it_is_enabled() -> None:
    registry = registry_of(add)
    assert registry.get_execution_log() is None
    log = registry.enable_logging()
    assert registry.enable_logging() is log
    registry.invoke("add", {"a": 1})
    registry.invoke("add", {"a": "x"})
    entries = log.get_entries()
    assert [(entry.tool_name, entry.status, entry.arguments, entry.result) for entry in entries] == [
        ("add", "invalid_arguments", {"a": "x"}, None),
        ("add", "success", {"a": 1}, 3),
    ]


@pytest.mark.requirement("spec.registry.option-others")
def test_the_decorators_other_options_work_and_an_unknown_one_is_told_with_the_method() -> None:
    class Named(ToolRegistry):
        @reg_toolspec(name="count_all", title="Count", tags=["numbers"])
        def count(self) -> int:
            """Counts."""
            return 1

    spec = Named().to_toolspecs()["count_all"]
    assert (spec.title, spec.tags, spec()) == ("Count", frozenset({"numbers"}), 1)
    with pytest.raises(TypeError, match="count': unknown option 'nam' \\(did you mean 'name'\\?\\)"):

        class Misspelt(ToolRegistry):
            @reg_toolspec(nam="x")
            def count(self) -> int:
                """Counts."""
                return 1
