"""Values that cannot work are refused where they are given, and values that people print are short."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp.tools import Tool as FastmcpTool

import toolwire
from toolwire import ConfigurationError, DefinitionError, ToolRegistry, ToolResult, ToolSpec
from toolwire.tools import ArtifactManager


def find(query: str, limit: int = 3) -> str:
    """Finds."""
    return query * limit


def test_from_mcp_names_the_importer_of_a_tool_of_fastmcp() -> None:
    with pytest.raises(DefinitionError) as caught:
        ToolSpec.from_mcp(FastmcpTool.from_function(find))
    assert str(caught.value) == "'find' is a tool of FastMCP: use ToolSpec.from_fastmcp(tool)"


@pytest.mark.parametrize("store", ["sqlite:///a.db", Path("a.db"), None])
def test_an_artifact_manager_takes_an_open_store_alone(store: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ArtifactManager(store, namespace="c")
    kind = type(store).__name__
    assert str(caught.value) == f"ArtifactManager: store is a {kind} and not an open store: give Store.open(url)"


def test_a_signature_has_all_required_arguments() -> None:
    spec = ToolSpec.from_function(find)
    assert spec.signature(query="a") == "find(query='a')"
    with pytest.raises(DefinitionError) as caught:
        spec.signature(limit=2)
    assert str(caught.value) == "tool 'find' needs query: write signature(limit=..., query=...)"


def test_a_printed_program_result_is_what_its_model_reads() -> None:
    result = ToolRegistry().run_program("1 + 2")
    assert (str(result), f"{result}") == ("3", "3")


def test_a_plain_function_that_needs_a_loop_is_told_to_be_async() -> None:
    def start() -> str:
        """Starts."""
        return str(asyncio.get_running_loop())

    registry = ToolRegistry()
    registry.register(start)
    failure = registry.invoke("start", {}).failure
    assert failure is not None
    assert (failure.kind, failure.hint) == ("tool_error", "Other arguments will not help.")
    assert failure.data["for_owner"] == (
        "write the tool with async def: a plain function runs in a thread without an event loop."
    )


@dataclass(frozen=True)
class Priced(ToolResult):
    cost: float = 0.0


def test_a_result_may_have_more_fields() -> None:
    result = Priced(True, "x", cost=1.5)
    assert (result.text, replace(result, cost=2.0).cost) == ("x", 2.0)
    failed = Priced(False, cost=1.0)
    assert failed.failure is not None
    assert (failed.failure.kind, failed.error) == ("tool_error", "the tool failed without saying why")


def test_the_fields_of_a_subclass_are_in_the_metadata() -> None:
    def buy() -> ToolResult:
        """Buys."""
        return Priced(True, "bought", metadata={"by": "card"}, cost=1.5)

    registry = ToolRegistry()
    registry.register(buy)
    result = registry.invoke("buy", {})
    assert (result.data, result.metadata) == ("bought", {"by": "card", "cost": 1.5})


@pytest.mark.parametrize("name", ["read_text_file", "write_file", "edit_file", "delete_file", "list_directory"])
def test_the_file_tools_are_importable_and_registered_with_their_service(name: str, tmp_path: Path) -> None:
    system = toolwire.DiskFileSystem(tmp_path)
    ops = {"list", "file", "read_file", "read_binary", "write", "delete"}
    service = toolwire.FileDomainService(system.create_handle([{"prefix": "/workspace/", "ops": ops}]))
    toolkit = toolwire.Toolkit()
    toolkit.register_tool_function(getattr(toolwire, name), preset_kwargs={"service": service})
    [schema] = toolkit.get_json_schemas()
    assert schema["function"]["name"] == name
    assert "service" not in schema["function"]["parameters"]["properties"]
