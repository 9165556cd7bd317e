"""`BaseTool`: permission, description and parameters count as the object has them at that moment."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.session.till import calls
from toolwire import ApprovalRequest, BaseTool, Decision, Session, Toolkit, ToolParameter, ToolRegistry, ToolResult
from toolwire.seeds import ToolPermission

AUTO, CONFIRM, DENY = ToolPermission.AUTO, ToolPermission.CONFIRM, ToolPermission.DENY


class Eraser(BaseTool):
    """Erases a file; keeps the arguments of each call."""

    def __init__(self, permission: ToolPermission = AUTO) -> None:
        super().__init__("erase", "Erases a file.", permission)
        self.parameters = [ToolParameter("path", "string", "Which file")]
        self.erased: list[Any] = []

    def get_parameters(self) -> list[ToolParameter]:
        return self.parameters

    def validate_params(self, params: dict[str, Any]) -> str | None:
        return None if params["path"] else "path must not be empty"

    async def execute(self, **params: Any) -> ToolResult:
        self.erased.append(params)
        return ToolResult(success=True, data="erased")


ARGUMENTS = {"path": "a.txt"}


def kind_of(result: ToolResult) -> str:
    return "success" if result.failure is None else result.failure.kind


def in_registry(tool: BaseTool) -> Callable[[], str]:
    registry = ToolRegistry()
    registry.register(tool)
    return lambda: kind_of(registry.invoke("erase", ARGUMENTS))


def awaited(tool: BaseTool) -> Callable[[], str]:
    registry = ToolRegistry()
    registry.register(tool)
    return lambda: kind_of(asyncio.run(registry.ainvoke("erase", ARGUMENTS)))


def in_agent_toolkit(tool: BaseTool) -> Callable[[], str]:
    registry = ToolRegistry()
    registry.register(tool)
    toolkit = registry.create_agent_toolkit("agent", ["erase"])
    return lambda: kind_of(asyncio.run(toolkit.execute_tool("erase", ARGUMENTS)))


def in_toolkit_with_a_preset(tool: BaseTool) -> Callable[[], str]:
    toolkit = Toolkit("agent")
    toolkit.register_tool_function(tool, preset_kwargs={"user": "me"}, func_description="Another description.")
    return lambda: kind_of(asyncio.run(toolkit.execute_tool("erase", ARGUMENTS)))


def in_session(tool: BaseTool) -> Callable[[], str]:
    session = Session([tool], protocol="openai")
    return lambda: kind_of(asyncio.run(session.turn(calls(("erase", ARGUMENTS)))).results[0])


def in_program(tool: BaseTool) -> Callable[[], str]:
    registry = ToolRegistry()
    registry.register(tool)
    registry.enable_logging()

    def call() -> str:
        registry.run_program("erase(path='a.txt')")
        log = registry.get_execution_log()
        assert log is not None
        return log.get_entries()[0].status

    return call


def waited(registry: ToolRegistry, id: str) -> ToolResult:
    result = registry.background.wait(id)
    assert result is not None
    return result


def in_background(tool: BaseTool) -> Callable[[], str]:
    registry = ToolRegistry()
    registry.register(tool)
    return lambda: kind_of(waited(registry, registry.background.start("erase", ARGUMENTS).id))


WAYS = [
    in_registry,
    awaited,
    in_agent_toolkit,
    in_toolkit_with_a_preset,
    in_session,
    in_program,
    in_background,
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_called", [False, True])
def test_a_permission_that_is_set_after_registration_counts(way: Any, has_called: bool) -> None:
    tool = Eraser()
    if has_called:
        assert tool.run(ARGUMENTS).success
    call = way(tool)
    assert call() == "success"
    before = len(tool.erased)
    tool.permission = DENY
    assert (call(), len(tool.erased)) == ("denied", before)
    tool.permission = CONFIRM
    assert (call(), len(tool.erased)) == ("approval_required", before)
    tool.permission = AUTO
    assert (call(), len(tool.erased)) == ("success", before + 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_permission_that_is_set_after_the_owners_first_call_counts(way: Any) -> None:
    tool = Eraser()
    assert tool.run(ARGUMENTS).success
    tool.permission = DENY
    assert (way(tool)(), len(tool.erased)) == ("denied", 1)


def test_a_denied_tool_is_hidden_from_then_on() -> None:
    tool = Eraser()
    session = Session([tool], protocol="openai")
    assert [one.name for one in session.tools] == ["erase"]
    tool.permission = DENY
    assert session.tools == []


def test_a_permission_may_be_the_plain_word() -> None:
    tool = Eraser()
    call = in_registry(tool)
    tool.permission = "deny"  # pyright: ignore[reportAttributeAccessIssue]
    assert call() == "denied"
    tool.permission = "auto"  # pyright: ignore[reportAttributeAccessIssue]
    assert call() == "success"


def test_a_permission_that_is_none_runs_nothing_and_the_owner_is_told() -> None:
    tool = Eraser()
    registry = ToolRegistry()
    registry.register(tool)
    tool.permission = "never"  # pyright: ignore[reportAttributeAccessIssue]
    result = registry.invoke("erase", ARGUMENTS)
    assert (kind_of(result), tool.erased) == ("unavailable", [])
    assert result.error == (
        "'erase' cannot run: tool 'erase': permission='never' is unknown: write 'auto', 'confirm' or 'deny'"
    )


def test_a_subclass_may_compute_its_permission() -> None:
    class Nightly(Eraser):
        is_open = True

        @property
        def permission(self) -> ToolPermission:
            return AUTO if self.is_open else DENY

        @permission.setter
        def permission(self, value: ToolPermission) -> None: ...

    tool = Nightly()
    call = in_registry(tool)
    assert call() == "success"
    tool.is_open = False
    assert call() == "denied"


def test_a_registered_permission_still_stands_in_for_the_tools_own() -> None:
    tool = Eraser(CONFIRM)
    registry = ToolRegistry()
    registry.register(tool, permission="auto")
    assert kind_of(registry.invoke("erase", ARGUMENTS)) == "success"


def test_a_copy_has_a_permission_of_its_own() -> None:
    tool = Eraser()
    assert tool.run(ARGUMENTS).success
    strict = copy.copy(tool)
    strict.permission = DENY
    assert (in_registry(strict)(), in_registry(tool)()) == ("denied", "success")


def test_a_tool_renamed_before_registration_has_its_new_name() -> None:
    tool = Eraser()
    assert tool.run(ARGUMENTS).success
    tool.name = "wipe"
    registry = ToolRegistry()
    registry.register(tool)
    assert registry.list_toolspecs() == ["wipe"]


def told_by(session: Session) -> dict[str, Any]:
    (function,) = json.loads(json.dumps(session.instructions))
    return function["function"]


def test_the_model_is_told_of_the_tool_as_it_is_and_calls_are_checked_by_what_it_was_told() -> None:
    tool = Eraser()
    session = Session([tool], protocol="openai")
    assert told_by(session)["description"] == "Erases a file."
    tool.description = "Erases a folder."
    tool.parameters[0].description = "Which folder"
    tool.parameters.append(ToolParameter("depth", "integer", "How deep"))
    told = told_by(session)
    assert told["description"] == "Erases a folder."
    assert told["parameters"]["properties"] == {
        "path": {"type": "string", "description": "Which folder"},
        "depth": {"type": "integer", "description": "How deep"},
    }
    turn = asyncio.run(session.turn(calls(("erase", ARGUMENTS), ("erase", {**ARGUMENTS, "depth": 2}))))
    assert [kind_of(result) for result in turn.results] == ["invalid_arguments", "success"]
    assert tool.erased == [{"path": "a.txt", "depth": 2}]
    del tool.parameters[1]
    assert in_session(tool)() == "success"


@pytest.mark.parametrize("way", [in_registry, in_agent_toolkit, in_toolkit_with_a_preset, in_session, in_program])
def test_parameters_that_change_are_checked_at_the_next_call(way: Any) -> None:
    tool = Eraser()
    call = way(tool)
    assert call() == "success"
    tool.parameters = [ToolParameter("path", "integer", "Which file, by number")]
    assert (call(), len(tool.erased)) == ("invalid_arguments", 1)
    tool.parameters = [ToolParameter("path", "string", "Which file")]
    assert (call(), len(tool.erased)) == ("success", 2)


def test_a_default_that_is_changed_in_place_is_the_default_of_the_next_call() -> None:
    tool = Eraser()
    tags = ["old"]
    tool.parameters.append(ToolParameter("tags", "array", "", required=False, default=tags))
    call = in_registry(tool)
    assert call() == "success"
    tags.append("new")
    assert call() == "success"
    assert [one["tags"] for one in tool.erased] == [["old"], ["old", "new"]]


def test_nothing_is_compiled_again_while_nothing_changes() -> None:
    tool = Eraser()
    live = tool.__tool__()
    first = live.revision
    for _ in range(5):
        assert tool.run(ARGUMENTS).success
    assert (tool.__tool__() is live, live.revision is first) == (True, True)
    tool.parameters[0].description = "Another"
    assert live.revision is not first


def test_parameters_that_cannot_be_described_any_more_stop_the_calls_and_say_so() -> None:
    tool = Eraser()
    registry = ToolRegistry()
    registry.register(tool)
    tool.parameters = [ToolParameter("path", "text", "")]
    result = registry.invoke("erase", ARGUMENTS)
    assert (kind_of(result), tool.erased) == ("unavailable", [])
    assert result.error == (
        "'erase' cannot run: tool 'erase': parameter 'path' has the unknown type 'text': "
        "write string, integer, number, boolean, array, object"
    )


def test_a_bound_parameter_that_is_gone_stops_the_calls_and_is_named() -> None:
    class Narrow(Eraser):
        async def execute(self, path: str, user: str = "") -> ToolResult:
            return ToolResult(success=True, data=f"{user} erased {path}")

    tool = Narrow()
    tool.parameters.append(ToolParameter("user", "string", "Who", required=False))
    registry = ToolRegistry()
    registry.register(tool)
    spec = registry.to_toolspecs()["erase"].bind("user")
    spec.state = {"user": "me"}
    assert registry.invoke("erase", ARGUMENTS).data == "me erased a.txt"
    tool.parameters[1].name = "path2"
    result = registry.invoke("erase", ARGUMENTS)
    assert kind_of(result) == "unavailable"
    del tool.parameters[1]
    spec.unbind("user")
    assert registry.invoke("erase", ARGUMENTS).data == " erased a.txt"


def test_a_tool_is_found_by_its_description_of_this_moment() -> None:
    tool, registry = Eraser(), ToolRegistry()
    registry.register(tool)
    registry.configure(tool_search=True)

    def found() -> list[str]:
        return registry.invoke("search_tools", {"query": "zeppelin"}).metadata["found"]

    assert found() == []
    tool.description = "Steers a zeppelin."
    assert found() == ["erase"]


class Asked:
    """Approves, after the tool has been changed meanwhile."""

    def __init__(self, change: Callable[[], None]) -> None:
        self.change = change

    def __call__(self, request: ApprovalRequest) -> Decision:
        self.change()
        return Decision(verdict="approve")


@pytest.mark.parametrize(
    ("permission", "description", "kind"),
    [
        (CONFIRM, "Erases a file.", "success"),
        (AUTO, "Erases a file.", "success"),
        (DENY, "Erases a file.", "denied"),
        (CONFIRM, "Erases everything.", "approval_mismatch"),
    ],
)
def test_changes_during_an_approval_count(permission: ToolPermission, description: str, kind: str) -> None:
    tool = Eraser(CONFIRM)

    def change() -> None:
        tool.permission, tool.description = permission, description

    registry = ToolRegistry(approver=Asked(change))
    registry.register(tool)
    assert kind_of(registry.invoke("erase", ARGUMENTS)) == kind
    assert len(tool.erased) == (kind == "success")


# -- a check of the tool's own ------------------------------------------------------------------------------------


class Transfer(BaseTool):
    """Sends money, never to its sender."""

    def __init__(self, says: Any = "Nobody can send money to themselves: name another account.") -> None:
        super().__init__("transfer", "Sends money.")
        self.says = says

    def get_parameters(self) -> list[ToolParameter]:
        return [ToolParameter("source", "string", "From"), ToolParameter("target", "string", "To")]

    def validate_params(self, params: dict[str, Any]) -> str | None:
        return self.says if params["source"] == params["target"] else None

    async def execute(self, **params: Any) -> ToolResult:
        return ToolResult(success=True, data=f"to {params['target']}")


SAME = {"source": "a", "target": "a"}


def results_of(tool: BaseTool, arguments: dict[str, Any]) -> list[ToolResult]:
    """The results through a registry, a toolkit, a session and the owner's own call."""
    registry = ToolRegistry()
    registry.register(tool)
    toolkit = registry.create_agent_toolkit("agent", ["transfer"])
    turn = asyncio.run(Session([tool], protocol="openai").turn(calls(("transfer", arguments))))
    return [
        registry.invoke("transfer", arguments),
        asyncio.run(toolkit.execute_tool("transfer", arguments)),
        *turn.results,
        tool.run(arguments),
        asyncio.run(tool(**arguments)),
    ]


def test_the_text_of_an_overridden_check_is_the_error_itself() -> None:
    for result in results_of(Transfer(), SAME):
        assert (kind_of(result), result.error) == (
            "invalid_arguments",
            "Nobody can send money to themselves: name another account.",
        )
        assert result.text == (
            "Nobody can send money to themselves: name another account.\n"
            "Correct them and call 'transfer' again. It takes: source (required), target (required)."
        )
    assert [result.data for result in results_of(Transfer(), {**SAME, "target": "b"})] == ["to b"] * 5


def test_the_control_what_the_schema_refuses_is_still_told_as_a_list() -> None:
    for result in results_of(Transfer(), {"source": "a"}):
        assert result.error == "The arguments of 'transfer' are wrong:\n- 'target' is missing: give a string."


@pytest.mark.parametrize("says", ["", "  ", True, False, 3])
def test_a_check_that_returns_neither_none_nor_a_text_is_the_owners_to_mend(says: Any) -> None:
    told = (
        f"'transfer' cannot run: tool 'transfer': validate_params returned {says!r}: "
        "return None, or the text that the model reads"
    )
    for result in results_of(Transfer(says), SAME):
        assert (kind_of(result), result.error) == ("unavailable", told)
