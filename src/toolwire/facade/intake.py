"""From whatever a user registers to entries: a function, a spec, a `BaseTool`, an instance with several methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, cast

from toolwire.catalogue.entry import Entry, Middleware
from toolwire.definition.from_function import from_function, tool_of
from toolwire.definition.tool import Permission, Tool
from toolwire.facade.base_tool import BaseTool
from toolwire.facade.code_execution import CodeExecutionTool
from toolwire.facade.finding import ToolFinder
from toolwire.facade.reserved import check_reserved
from toolwire.vocabulary.errors import DefinitionError
from toolwire.vocabulary.gate import Gate


def entries_of(
    thing: object,
    *,
    name: str | None = None,
    permission: Permission | None = None,
    timeout_s: float | None = None,
    parallel: bool = True,
    alone: str | None = None,
    gate: Gate | None = None,
    middleware: Iterable[Middleware] = (),
    replace: bool = False,
) -> list[Entry]:
    """One entry for each tool that `thing` is or has. `gate` is that of the resource `alone`.

    Raises:
        DefinitionError: it is nothing that can be a tool; the message says what to write instead.
        RegistrationError: the name is reserved, and it is an outside tool or `replace` is not set.
    """
    handles = _handles(thing, name)
    for handle, tool in handles:
        tool.verify()
        if not isinstance(handle, CodeExecutionTool | ToolFinder):
            check_reserved(tool.name if name is None else name, tool, replace=replace)
    if name is not None and len(handles) != 1:
        raise DefinitionError(f"name={name!r} for {len(handles)} tools: register them one by one to name them")
    layers = tuple(middleware)
    return [
        Entry(
            name=tool.name if name is None else name,
            tool=tool,
            handle=handle,
            permission=permission,
            timeout_s=timeout_s,
            gate=gate if parallel or gate is not None else Gate(),
            alone=alone,
            middleware=layers,
        )
        for handle, tool in handles
    ]


def _handles(thing: object, name: str | None) -> list[tuple[object, Tool]]:
    if isinstance(thing, type):
        return [_made(thing)]
    if hasattr(thing, "__tool__"):
        return [(thing, tool_of(thing))]
    if callable(thing):
        return [(thing, from_function(cast("Callable[..., Any]", thing), name=name))]
    methods = _documented_methods(thing)
    if not methods:
        raise DefinitionError(
            f"{thing!r} cannot be a tool: register a function, a ToolSpec, a BaseTool, "
            "or an instance that has public methods with a docstring"
        )
    return [(method, from_function(method)) for method in methods]


def _made(kind: type) -> tuple[object, Tool]:
    if not issubclass(kind, BaseTool):
        raise DefinitionError(f"{kind.__name__} is a class: register an instance of it, {kind.__name__}(...)")
    try:
        instance = cast("Callable[[], BaseTool]", kind)()
    except TypeError as error:
        raise DefinitionError(
            f"{kind.__name__} cannot be made without arguments ({error}): register an instance of it"
        ) from error
    return instance, tool_of(instance)


def _documented_methods(thing: object) -> list[Callable[..., Any]]:
    """Public methods that say what they do, in the order of their definition, inherited ones first."""
    names: dict[str, None] = {}
    for base in reversed(type(thing).__mro__[:-1]):
        names.update(dict.fromkeys(vars(base)))
    methods = [getattr(thing, name) for name in names if not name.startswith("_") and _is_method(thing, name)]
    return [method for method in methods if inspect.getdoc(method)]


def _is_method(thing: object, name: str) -> bool:
    """Asks the class, so that no property is run just to look at it; methods written in C are nobody's tools."""
    return isinstance(inspect.getattr_static(type(thing), name), FunctionType | classmethod | staticmethod)
