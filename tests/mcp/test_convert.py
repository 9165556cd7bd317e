"""MCP tool values to tools and back."""

from __future__ import annotations

import sys
from itertools import product
from types import SimpleNamespace
from typing import Any

import mcp_types
import pytest

from toolwire import Session
from toolwire.definition.from_function import from_function
from toolwire.definition.shape import Validated
from toolwire.facade.registry import ToolRegistry
from toolwire.facade.tools.tool_spec import ToolSpec
from toolwire.mcp.convert import from_mcp, to_mcp
from toolwire.permission.policy import Rule
from toolwire.protocols.attp.render import success_document
from toolwire.vocabulary.errors import ConfigurationError, DefinitionError

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
OUTPUT = {"type": "object", "properties": {"rows": {"type": "array"}}}


def new_spelling() -> Any:
    return mcp_types.Tool(
        name="search",
        title="Search",
        description="Searches.",
        input_schema=SCHEMA,
        output_schema=OUTPUT,
        annotations=mcp_types.ToolAnnotations(read_only_hint=True),
    )


def old_spelling() -> Any:
    return SimpleNamespace(
        name="search",
        title="Search",
        description="Searches.",
        inputSchema=SCHEMA,
        outputSchema=OUTPUT,
        annotations={"readOnlyHint": True},
    )


@pytest.mark.requirement("spec.from-mcp.spellings")
@pytest.mark.parametrize(
    "value",
    [new_spelling(), old_spelling(), vars(old_spelling()), new_spelling().model_dump(by_alias=True)],
    ids=["snake case", "camel case", "received", "dumped"],
)
def test_both_spellings_and_plain_objects_are_read(value: Any) -> None:
    tool = from_mcp(value)
    assert (tool.name, tool.title, tool.description) == ("search", "Search", "Searches.")
    assert (tool.input_schema, tool.output_schema) == (SCHEMA, OUTPUT)
    assert tool.annotations["readOnlyHint"] is True
    assert tool.function is None


def test_a_tool_from_a_value_goes_back_to_an_equal_value() -> None:
    assert to_mcp(from_mcp(new_spelling())) == new_spelling()


def test_the_function_given_is_called() -> None:
    tool = from_mcp(new_spelling(), function=lambda query: query.upper())
    validated = tool.validate({"query": "x"})
    assert isinstance(validated, Validated)
    assert tool.invoke(validated) == "X"


@pytest.mark.requirement("spec.export.bound-form")
def test_a_function_becomes_a_value_without_its_bound_parameters() -> None:
    def add(a: int, b: int, user: str) -> int:
        """Adds."""
        return a + b

    tool = from_function(add)
    tool.bindings.bind("user", default="me")
    assert to_mcp(tool) == mcp_types.Tool(
        name="add",
        description="Adds.",
        input_schema={
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        output_schema={"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]},
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"inputSchema": SCHEMA}, f"{ ({'inputSchema': SCHEMA})!r} is not an MCP tool: it has no name"),
        ({"name": "s"}, "MCP tool 's' has no input schema: give it as inputSchema"),
    ],
)
def test_a_value_that_is_not_a_tool_is_refused(value: Any, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        from_mcp(value)
    assert str(refused.value) == message


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(ConfigurationError) as failed:
        to_mcp(from_mcp(old_spelling()))
    assert str(failed.value) == "to_mcp needs the package 'mcp_types', which is not here: pip install 'toolwire[mcp]'"


def test_parameters_of_a_server_that_look_alike_are_numbered_and_each_gets_its_own_value() -> None:
    seen: list[dict[str, Any]] = []

    def find(**given: Any) -> int:
        seen.append(given)
        return len(seen)

    schema = {"type": "object", "properties": {"a-b": {"type": "integer"}, "a_b": {"type": "string"}}}
    tool = ToolSpec.from_mcp({"name": "find", "inputSchema": schema}, find, permission="auto")
    session = Session([tool], protocol="attp")
    assert "def find(a_b_2: int = ..., a_b: str = ...)" in session.system_prompt
    turn = session.run_turn(success_document(thought="t", target="g", code="__result__ = find(a_b_2=1, a_b='x')"))
    assert (seen, turn.results[0].text) == ([{"a-b": 1, "a_b": "x"}], "1")


HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@pytest.mark.parametrize("values", list(product([None, True, False], repeat=len(HINTS))))
def test_no_hint_of_a_server_changes_whether_a_person_is_asked(values: tuple[bool | None, ...]) -> None:
    hints = {name: value for name, value in zip(HINTS, values, strict=True) if value is not None}
    tool = from_mcp({"name": "t", "inputSchema": {"type": "object"}, "annotations": hints})
    plain = from_mcp({"name": "t", "inputSchema": {"type": "object"}})
    assert (tool.permission, tool.effects, tool.is_outside) == (plain.permission, plain.effects, plain.is_outside)
    assert (tool.permission, tool.effects.kinds, tool.effects.labels) == ("confirm", set(), {"untrusted"})


@pytest.mark.parametrize(
    ("options", "registered", "rules", "ends"),
    [
        ({}, {}, [], "approval_required"),
        ({"permission": "auto"}, {}, [], "ran"),
        ({}, {"permission": "auto"}, [], "ran"),
        ({}, {}, [Rule(effect="auto", tool="t")], "ran"),
        ({"permission": "deny"}, {}, [Rule(effect="auto", tool="*")], "denied"),
    ],
)
def test_a_tool_from_outside_runs_unasked_only_when_somebody_here_speaks_for_it(
    options: dict[str, Any], registered: dict[str, Any], rules: list[Rule], ends: str
) -> None:
    registry = ToolRegistry(rules=rules)
    value = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    registry.register(ToolSpec.from_mcp(value, lambda: "ran", **options), **registered)
    result = registry.invoke("t")
    assert (result.data if result.failure is None else result.failure.kind) == ends
