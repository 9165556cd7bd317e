"""Each class that a public signature names can be imported from a public module."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import toolwire.types
from tests.architecture.source import PACKAGE
from tests.documents.pages import text_of

MODULES = [
    "toolwire",
    "toolwire.approvals",
    "toolwire.doctor",
    "toolwire.log",
    "toolwire.middleware",
    "toolwire.models",
    "toolwire.protocols",
    "toolwire.seeds",
    "toolwire.testing",
    "toolwire.tools",
    "toolwire.types",
]
MADE_BY_TOOLWIRE = {
    "BackgroundCall",
    "BackgroundCalls",
    "CodeExecutionTool",
    "Follow",
    "MCPClient",
    "McpServers",
    "MemoryLedger",
    "Observation",
    "PreparedCall",
    "RegisteredToolFunction",
    "RunLedger",
    "Store",
    "Tool",
    "ToolStream",
}
"""Classes whose objects users receive: the arguments of their constructors are toolwire's own."""
SPOKEN = ("__init__", "__call__", "__iter__", "__aiter__", "__anext__", "__await__", "__enter__", "__aenter__")
"""Methods with two underscores that users reach by writing something else."""
OWN = {
    "BackgroundCall.go",
    "ClientProfiles.limits_of",
    "Disk.__init__.calls",
    "MCPClient.offers",
    "MCPClientBase.offers",
    "McpServers.limits_of",
    "Policy.index",
    "PreparedCall.pass_gate",
    "RunLedger.pages",
    "Sandbox.__init__.zygotes",
    "Sandbox.zygotes",
    "StoreQueue.waiting_calls",
    "Tool.docs",
    "Tool.find_problems",
    "Tool.invoke",
    "Tool.parameters",
    "Tool.with_shape",
    "Tool.validate",
    "Tool.visible_parameters",
    "Toolkit.__init__.scope",
    "Toolkit.draw",
}
"""Members that only other layers of toolwire use."""


def public() -> list[object]:
    modules = [import_module(name) for name in MODULES]
    return [getattr(module, name) for module in modules for name in module.__all__]


@functools.cache
def names_for_checkers(module: str) -> dict[str, Any]:
    """The names that a module imports for type checkers alone."""
    found: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec("\n".join(ast.unparse(line) for line in node.body), found)
    return found


def hints(thing: Any) -> dict[str, Any]:
    more = names_for_checkers(thing.__module__)
    if inspect.isclass(thing):
        return typing.get_type_hints(thing, localns=more)
    return typing.get_type_hints(thing, {**vars(sys.modules[thing.__module__]), **more})


def classes_in(hint: Any) -> Iterator[type]:
    """The classes that an annotation names, at any depth."""
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return
    for kind in (hint, origin):
        if isinstance(kind, type) and not (kind is hint and origin is not None):
            yield kind
    for argument in typing.get_args(hint):
        for one in argument if isinstance(argument, list) else [argument]:
            yield from classes_in(one)


def function_of(member: object) -> Callable[..., Any] | None:
    match member:
        case classmethod() | staticmethod():
            return member.__func__
        case property():
            return member.fget
        case functools.cached_property():
            return member.func
        case _:
            return member if inspect.isfunction(member) else None


def annotated(thing: object) -> Iterator[tuple[str, Any]]:
    """A public object's annotated places with their names: a function, or a class's fields and public methods."""
    if inspect.isfunction(thing):
        yield thing.__name__, thing
    elif inspect.isclass(thing):
        for base in (base for base in thing.__mro__ if base.__module__.startswith("toolwire")):
            yield base.__name__, base
            for name, member in vars(base).items():
                function = function_of(member)
                is_written = function is not None and function.__code__.co_filename.startswith(str(PACKAGE))
                if is_written and (not name.startswith("_") or name in SPOKEN):
                    yield f"{base.__name__}.{name}", function


def unreachable() -> dict[str, set[str]]:
    """The places in public signatures that name a class without a public home, each with these classes."""
    things = public()
    known = {id(thing) for thing in things}
    found: dict[str, set[str]] = {}
    for thing in things:
        for place, where in annotated(thing):
            for name, hint in hints(where).items():
                lost = {kind for kind in classes_in(hint) if kind.__module__.startswith("toolwire.")}
                lost = {kind for kind in lost if id(kind) not in known}
                is_class = inspect.isclass(where) or not place.endswith("__init__")
                if lost and name != "self" and not name.startswith("_"):
                    found.setdefault(place if is_class else f"{place}.{name}", set()).update(
                        kind.__qualname__ for kind in lost
                    )
    return found


def test_every_class_in_a_public_signature_has_a_public_home() -> None:
    found = unreachable()
    constructors = {place for place in found if place.partition(".__init__.")[0] in MADE_BY_TOOLWIRE}
    assert {place: found[place] for place in found.keys() - constructors - OWN} == {}
    assert found.keys() >= OWN
    assert {place.partition(".")[0] for place in constructors} == MADE_BY_TOOLWIRE


def test_the_walk_finds_a_class_without_a_public_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolwire.types, "__all__", [name for name in toolwire.types.__all__ if name != "RunInfo"])
    found = unreachable()
    assert {place for place, kinds in found.items() if "RunInfo" in kinds} == {
        *(f"StoreReading.{name}" for name in ("run", "runs", "arun", "aruns")),
        *("StoreQueue.ready", "StoreQueue.aready"),
    }


def test_the_page_on_types_names_each_of_them() -> None:
    page = text_of("docs/types.md")
    assert [name for name in toolwire.types.__all__ if f"`{name}`" not in page] == []
