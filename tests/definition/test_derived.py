"""Values made from a tool are kept with it: shared by all readers, changed by none, made again after a change."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from toolwire import BaseTool, Session, ToolParameter, ToolRegistry, ToolSpec
from toolwire.definition.derived import input_schema_of, output_schema_of, schema_with_root_fields
from toolwire.definition.tool import Tool
from toolwire.protocols import get, names, strict_problems
from toolwire.vocabulary.calls import ToolCall

PROTOCOLS = names()


def find(query: str, where: list[str] | None = None, options: dict[str, int] | None = None) -> dict[str, list[int]]:
    """Finds things.

    Args:
        query: The words.
    """
    return {query: [len(where or ()), len(options or {})]}


def lend(book: dict[str, Any], days: int = 1, tags: list[str] | None = None) -> list[str]:
    """Lends a book."""
    return [str(book), str(days), str(tags)]


class Note(BaseTool):
    """A tool whose description and parameters its owner changes."""

    def __init__(self, *parameters: ToolParameter) -> None:
        super().__init__("note", "Takes a note.")
        self.parameters = list(parameters)

    def get_parameters(self) -> list[ToolParameter]:
        return self.parameters

    async def execute(self, **params: Any) -> Any:
        return params


def specs() -> list[ToolSpec]:
    """New tools, one with a root that combines schemas."""
    union = {
        "type": "object",
        "anyOf": [{"properties": {"a": {"type": "array", "items": {"type": "string"}}}}, {"properties": {"b": {}}}],
    }
    return [
        ToolSpec.from_function(find),
        ToolSpec.from_function(lend),
        ToolSpec.from_jsonschema(name="union", description="Either.", input_schema=union, function=lambda **_: 1),
    ]


def read_all(known: list[ToolSpec]) -> None:
    """Uses the tools in all ways that read their schemas."""
    for name in PROTOCOLS:
        protocol = get(name)
        protocol.describe(known)
        calls = [ToolCall("find", {"query": "x", "where": ["a"], "options": None}), ToolCall("union", {"a": ["b"]})]
        protocol.parse(protocol.render(calls), known)
        if not protocol.is_native:
            protocol.tools_text(known)
            protocol.grammar(known)
            protocol.parse("find(query='x') and <union><a>1</a></union>", known)
    for spec in known:
        strict_problems(spec)
        spec.run({"query": 3})


def given_away(known: list[ToolSpec]) -> Iterator[Any]:
    """Yields the containers that users receive."""
    for spec in known:
        yield from (spec.input_schema, spec.output_schema, spec.params, spec.to_jsonschema())
        yield from (spec.binded.input_schema, spec.binded.output_schema)
        yield from ([parameter.schema for parameter in spec.binded.parameters],)
        yield from (spec.to_mcp().input_schema, spec.to_mcp().output_schema)
    registry = ToolRegistry()
    for spec in known:
        registry.register(spec)
    yield registry.create_agent_toolkit("agent", [spec.name for spec in known]).get_json_schemas()
    for name in PROTOCOLS:
        if get(name).is_native:
            yield get(name).describe(known)
            yield Session(registry, protocol=name).request_tools
    yield [tool.input_schema for tool in Session(registry, protocol="xml").tools]


def spoil(value: Any) -> None:
    """Changes every container in the value."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        for inner in members.values():
            spoil(inner)
        members.clear()
        members["spoilt"] = True
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            spoil(inner)
        cast("list[Any]", value).append("spoilt")


def shared(known: list[ToolSpec]) -> list[Any]:
    """The values that all readers share."""
    tools = [spec.__tool__() for spec in known]
    return [(input_schema_of(tool), output_schema_of(tool), schema_with_root_fields(tool)) for tool in tools]


def test_no_reader_changes_what_all_share() -> None:
    known = specs()
    before = copy.deepcopy(shared(known))
    read_all(known)
    derived = copy.deepcopy([_plain(spec.__tool__()) for spec in known])
    read_all(known)
    assert shared(known) == before
    assert [_plain(spec.__tool__()) for spec in known] == derived


def _plain(tool: Tool) -> list[tuple[str, Any]]:
    return [(str(key), value) for key, value in tool.value_cache.items()]


def test_a_user_who_changes_what_he_is_given_changes_nothing_for_others() -> None:
    known = specs()
    read_all(known)
    before = copy.deepcopy(list(given_away(known)))
    for value in given_away(known):
        spoil(value)
    assert list(given_away(known)) == before
    assert list(given_away(specs())) == before


CHANGES: dict[str, Callable[[ToolSpec], ToolSpec]] = {
    "bind": lambda spec: spec.bind("where", default=["a"]),
    "unbind": lambda spec: spec.bind("where").unbind("where"),
    "clone": lambda spec: spec.clone().bind("options"),
    "clone of bound": lambda spec: spec.bind("options").clone(),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_tool_is_described_as_a_new_one_with_the_same_change(protocol: str, change: str) -> None:
    spec = ToolSpec.from_function(find)
    get(protocol).describe([spec])
    changed, fresh = CHANGES[change](spec), CHANGES[change](ToolSpec.from_function(find))
    assert get(protocol).describe([changed]) == get(protocol).describe([fresh])
    assert input_schema_of(changed.__tool__()) == fresh.input_schema


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_clone_that_is_bound_leaves_the_first_as_it_was(protocol: str) -> None:
    spec = ToolSpec.from_function(find)
    before = get(protocol).describe([spec])
    get(protocol).describe([spec.clone().bind("where")])
    assert get(protocol).describe([spec]) == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_tool_that_its_owner_changes_is_described_anew(protocol: str) -> None:
    note = Note(ToolParameter("text", "string", "The text.", True))
    described = [get(protocol).describe([note])]
    note.description = "Takes a long note."
    described.append(get(protocol).describe([note]))
    note.parameters.append(ToolParameter("place", "string", "The place.", False))
    described.append(get(protocol).describe([note]))
    note.description = "Takes a note."
    note.parameters.pop()
    described.append(get(protocol).describe([note]))
    assert ["long" in str(one) for one in described] == [False, True, True, False]
    assert ["place" in str(one) for one in described] == [False, False, True, False]
    assert described[0] == described[3]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_tool_under_several_names_is_described_under_each(protocol: str) -> None:
    spec = ToolSpec.from_function(find)
    assert "find" in str(get(protocol).describe([spec]))
    registry = ToolRegistry()
    for name in ("find", "seek", "look"):
        registry.register(spec, name=name)
    for _ in range(2):
        text = str(Session(registry, protocol=protocol).instructions)
        assert [name in text for name in ("find", "seek", "look")] == [True] * 3
    spec.bind("where")
    assert "where" not in str(Session(registry, protocol=protocol).instructions)


def test_a_tool_that_is_dropped_takes_its_texts_with_it() -> None:
    tools = described_tools()
    gc.collect()
    assert [tool() for tool in tools] == [None] * 3


def described_tools() -> list[weakref.ref[Tool]]:
    """Tools that all protocols have described and read, and that nobody holds any more."""
    known = specs()
    read_all(known)
    registry = ToolRegistry()
    for spec in known:
        registry.register(spec, name=f"other_{spec.name}")
    for name in PROTOCOLS:
        assert Session(registry, protocol=name).instructions
    assert all(len(spec.__tool__().value_cache) > len(PROTOCOLS) for spec in known)
    return [weakref.ref(spec.__tool__()) for spec in known]
