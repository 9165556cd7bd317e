"""Collects the tools of modules into one registry."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TypeGuard, cast

from toolwire import BaseTool, ToolRegistry, ToolSpec, ToolwireError
from toolwire.cli.loading import load, unusable

_WHAT_COUNTS = (
    "These count as tools: public functions with a docstring that the module defines itself, ToolSpecs, instances of "
    "BaseTool and its own classes of that kind, or one ToolRegistry. With __all__, only the names in it."
)


def registry_of(sources: Iterable[str]) -> ToolRegistry:
    """Returns a registry with the tools of all sources, or the registry that a source defines, with its rules.

    Raises:
        Stop: A source cannot be loaded, has no tools or an invalid tool, or two tools have the same name.
    """
    loaded = [(source, load(source)) for source in dict.fromkeys(sources)]
    return _brought(loaded) or _new_registry(loaded)


def _brought(loaded: list[tuple[str, ModuleType]]) -> ToolRegistry | None:
    """Returns the registry that one of the modules defines. None if no module defines one."""
    found = {id(registry): (source, registry) for source, module in loaded for registry in _registries(module)}
    if not found:
        return None
    source, registry = next(iter(found.values()))
    if len(found) > 1:
        raise unusable(
            f"there are {len(found)} registries, and each brings rules of its own: "
            f"{', '.join(dict.fromkeys(source for source, _ in found.values()))}",
            hint="Give one of them alone, or name it in __all__.",
        )
    if len(loaded) > 1:
        raise unusable(
            f"{source} has a ToolRegistry, which is used alone, with its rules",
            hint="Give it without other --tools, or register the other tools in it.",
        )
    if not registry.list_toolspecs():
        raise unusable(f"the ToolRegistry of {source} is empty", hint="Register tools in it.")
    return registry


def _new_registry(loaded: list[tuple[str, ModuleType]]) -> ToolRegistry:
    registry = ToolRegistry()
    for source, module in loaded:
        tools = _tools(module)
        if not tools:
            raise unusable(f"{source} has no tools", hint=f"{_near_misses(module)}{_WHAT_COUNTS}")
        for tool in tools:
            try:
                registry.register_tool_to_library(tool)
            except ToolwireError as error:
                raise unusable(f"{source}: {error}") from error
            except Exception as error:
                # A tool class is instantiated and asked for its parameters here. Both run its author's code.
                raise unusable(f"{source}: {type(error).__name__}: {error}") from error
    return registry


def _registries(module: ModuleType) -> list[ToolRegistry]:
    return [value for _, value in _public(module) if isinstance(value, ToolRegistry)]


def _tools(module: ModuleType) -> list[object]:
    """Returns the tools of a module in the order of their definition, each once.

    A function or class from which another tool was made is left out. `add = ...; spec = ToolSpec.from_function(add)` is
    one tool.
    """
    found = [value for _, value in _public(module) if _is_tool(value, module)]
    made = {getattr(value, "name", None) for value in found if isinstance(value, ToolSpec | BaseTool)}
    classes = {type(value) for value in found}
    unique = {
        id(value): value
        for value in found
        if not (inspect.isfunction(value) and value.__name__ in made)
        and not (inspect.isclass(value) and value in classes)
    }
    return list(unique.values())


def _public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yields the names in `__all__`, or else those without a leading underscore."""
    names = cast("Iterable[str] | None", getattr(module, "__all__", None))
    if names is None:
        yield from ((name, value) for name, value in vars(module).items() if not name.startswith("_"))
        return
    for name in names:
        if not hasattr(module, name):
            raise unusable(f"{module.__name__}.__all__ names {name!r}, which is not there")
        yield name, getattr(module, name)


def _is_tool(value: object, module: ModuleType) -> bool:
    if isinstance(value, ToolSpec | BaseTool):
        return True
    if inspect.isfunction(value):
        return _belongs(value, module) and bool(inspect.getdoc(value))
    return _is_tool_class(value) and _belongs(value, module)


def _is_tool_class(value: object) -> TypeGuard[type[BaseTool]]:
    return inspect.isclass(value) and issubclass(value, BaseTool) and not inspect.isabstract(value)


def _belongs(value: object, module: ModuleType) -> bool:
    """True if the module defines the value, or names it in `__all__`."""
    return hasattr(module, "__all__") or getattr(value, "__module__", None) == module.__name__


def _near_misses(module: ModuleType) -> str:
    """Names the functions that lack only a docstring. Empty if there are none."""
    names = [
        name
        for name, value in _public(module)
        if inspect.isfunction(value) and _belongs(value, module) and not inspect.getdoc(value)
    ]
    return f"Without a docstring: {', '.join(names)}. " if names else ""
