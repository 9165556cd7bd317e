"""A protocol, an importer, an observer, an approver and a built-in tool, added without a private name."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tests.recipes.line_protocol
from tests.recipes.line_protocol import LineProtocol
from toolwire import (
    ApprovalRequest,
    CallContext,
    ConfigurationError,
    Decision,
    Session,
    ToolEvent,
    ToolRegistry,
    ToolSpec,
)
from toolwire.approvals import Decider, render_request
from toolwire.testing import Said, check_approver, check_protocol
from toolwire.types import ToolCompleted

REPLY = 'I look it up.\n>> twice {"number": 21}'


def twice(number: int) -> int:
    """Doubles a number."""
    return 2 * number


def test_a_protocol_of_your_own_passes_the_kit_and_serves_a_session() -> None:
    check_protocol(LineProtocol())
    session = Session([twice], protocol=LineProtocol())
    assert "twice: Doubles a number." in session.system_prompt
    turn = session.run_turn(REPLY)
    assert (turn.reply.text, turn.text) == ("I look it up.", "twice: 42")
    stream = session.protocol.stream()
    for character in REPLY:
        stream.feed(character)
    assert session.run_turn(stream.reply()).text == "twice: 42"


def test_a_protocol_of_your_own_refuses_what_it_cannot_read() -> None:
    turn = Session([twice], protocol=LineProtocol()).run_turn('>> twice {"number": 21')
    assert turn.results == ()
    assert turn.text.startswith("Line 1: Expecting")


class Formula:
    """A value of somebody's library: a name and a formula of one variable."""

    def __init__(self, name: str, body: Callable[[float], float]) -> None:
        self.name, self.body = name, body


def tool_of(formula: Any) -> ToolSpec:
    """The importer: from their value to a tool."""
    if not isinstance(formula, Formula):
        raise ConfigurationError(f"{formula!r:.80} is not a Formula: write Formula(name, body)")
    return ToolSpec.from_jsonschema(
        name=formula.name,
        description="Computes a formula.",
        input_schema={"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        function=lambda x: formula.body(x),
    )


def test_an_importer_of_your_own_makes_tools_that_are_checked_like_others() -> None:
    registry = ToolRegistry()
    registry.register(tool_of(Formula("half", lambda x: x / 2)))
    assert registry.invoke("half", {"x": 5}).data == 2.5
    refused = registry.invoke("half", {"x": "five"})
    assert refused.failure is not None
    assert refused.failure.kind == "invalid_arguments"
    with pytest.raises(ConfigurationError, match=r"is not a Formula: write Formula\(name, body\)$"):
        tool_of("half")


def test_an_observer_of_your_own_hears_each_call_and_can_leave() -> None:
    heard: list[ToolEvent] = []
    registry = ToolRegistry()
    registry.register(twice)
    handle = registry.observe(heard.append)
    registry.invoke("twice", {"number": 1})
    handle.stop()
    registry.invoke("twice", {"number": 2})
    assert [event.tool for event in heard if isinstance(event, ToolCompleted)] == ["twice"]


Person = Callable[[str], Said]


def approver_of(person: Person) -> Callable[[ApprovalRequest], Decision | None]:
    """An approver that shows the request to a person and signs the answer."""

    def mine(request: ApprovalRequest) -> Decision | None:
        assert request.id in render_request(request)
        said = person(request.id)
        if said.verdict == "nothing" or said.request_id not in ("", request.id):
            return None
        return Decision(
            verdict=said.verdict,
            arguments=said.arguments,
            reason=said.reason,
            request_id=request.id,
            seen_arguments_digest=request.arguments_digest,
            by=Decider(principal="ann", channel="intercom"),
        )

    return mine


def test_an_approver_of_your_own_passes_the_kit_and_decides() -> None:
    check_approver(approver_of)
    registry = ToolRegistry(approver=approver_of(lambda _: Said(verdict="approve")))
    registry.register(ToolSpec.from_function(twice, permission="confirm"))
    assert registry.invoke("twice", {"number": 4}).data == 8


async def twice_each(numbers: list[int], context: CallContext) -> list[int]:
    """Doubles each number by the tool for one.

    Args:
        numbers: The numbers
    """
    return [(await context.call("twice", number=number)).data for number in numbers]


def test_a_tool_that_calls_tools_is_a_function_with_a_context() -> None:
    registry = ToolRegistry()
    registry.register(twice)
    registry.register(twice_each)
    assert registry.invoke("twice_each", {"numbers": [1, 2]}).data == [2, 4]
    assert list(ToolSpec.from_function(twice_each).input_schema["properties"]) == ["numbers"]


PUBLIC: dict[str, list[str]] = {
    name: import_module(name).__all__
    for name in (
        "toolwire",
        "toolwire.approvals",
        "toolwire.protocols",
        "toolwire.seeds",
        "toolwire.testing",
        "toolwire.tools",
        "toolwire.types",
    )
}


@pytest.mark.parametrize("module", [sys.modules[__name__], tests.recipes.line_protocol], ids=["recipes", "protocol"])
def test_the_recipes_use_no_private_name(module: ModuleType) -> None:
    tree = ast.parse(Path(inspect.getfile(module)).read_text("utf-8"))
    imported = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("toolwire")
        for alias in node.names
    }
    assert imported
    assert {(home, name) for home, name in imported if name not in PUBLIC.get(home or "", [])} == set()
