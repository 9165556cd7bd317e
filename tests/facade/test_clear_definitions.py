"""Values that cannot work are refused where they are given, and values that people print are short."""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

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


class Shop:
    @functools.cached_property
    def stock(self) -> int:
        return 1

    @property
    def name(self) -> str:
        return "a"

    @classmethod
    def sell(cls) -> None: ...

    half = functools.partialmethod(sell)


async def ask() -> None: ...


async def tell() -> AsyncIterator[int]:
    yield 1


CALLED = "cannot be a tool. It was made by a call: register the function itself, without calling it"
A_VALUE = "cannot be a tool. It has a value and takes no call: register a function that returns it"
IN_A_BODY = "cannot be a tool. It stands in the body of a class: register the method of the class or of an instance"
SEVERAL = "cannot be a tool. It holds several values: register each of them"
NOT_TAKEN = "its functools.partial gives arguments that the function does not take: give those that it has"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: (find(word) for word in "ab"), f"a generator '<genexpr>' {CALLED}"),
        (tell, f"an async_generator 'tell' {CALLED}"),
        (lambda: Shop.stock, f"a cached_property {A_VALUE}"),
        (lambda: Shop.name, f"a property {A_VALUE}"),
        (lambda: vars(Shop)["sell"], f"a classmethod 'sell' {IN_A_BODY}"),
        (lambda: vars(Shop)["half"], f"a partialmethod {IN_A_BODY}"),
        (lambda: math, f"a module 'math' {SEVERAL}"),
        (lambda: [find], f"a list {SEVERAL}"),
        (lambda: functools.partial(cast("Any", find), size=3), f"tool 'find': {NOT_TAKEN}"),
        (lambda: functools.partial(cast("Any", find), "a", 1, 2), f"tool 'find': {NOT_TAKEN}"),
        (
            lambda: str.upper,
            (
                "tool 'upper' is a method of the class str and has no object to work on: wrap it in a function with "
                "annotated parameters"
            ),
        ),
    ],
)
def test_a_value_near_a_function_is_refused_with_what_to_write(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        ToolRegistry().register(make())
    assert str(caught.value) == message


def test_a_coroutine_is_refused_with_what_to_write() -> None:
    coroutine = ask()
    with pytest.raises(DefinitionError) as caught:
        ToolRegistry().register(cast("Any", coroutine))
    coroutine.close()
    assert str(caught.value) == f"a coroutine 'ask' {CALLED}"


class Remote:
    """A client that answers to every name, such as that of a remote server."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def __getattr__(self, name: str) -> Remote:
        self.asked.append(name)
        return Remote(self.asked)

    def __call__(self, query: str) -> str:
        """Searches."""
        raise AssertionError("it was called")


def test_a_client_that_answers_to_every_name_is_not_called_at_its_definition() -> None:
    with pytest.raises(DefinitionError) as caught:
        ToolRegistry().register(Remote([]))
    assert str(caught.value) == (
        "tool 'Remote' has no signature that Python can read: wrap it in a function with annotated parameters"
    )


def test_a_server_whose_name_is_no_text_is_told_so() -> None:
    with pytest.raises(ConfigurationError) as caught:
        toolwire.ToolServer(cast("Any", "shop"), cast("Any", ToolRegistry()))
    assert str(caught.value) == "ToolServer: name is a ToolRegistry and not a text: write ToolServer(tools, 'name')"
