"""Makes entries of the objects that users register: functions, specs, `BaseTool`s, instances with marked methods."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import AsyncGeneratorType, CoroutineType, FunctionType, GeneratorType, ModuleType
from typing import Any, cast

from toolwire.catalogue.entry import Entry, Middleware
from toolwire.catalogue.similar_names import nearest, suggestion
from toolwire.definition.from_function import from_function, name_of, tool_of
from toolwire.definition.naming import program_name
from toolwire.definition.tool import Permission, Tool
from toolwire.facade.finding import ToolFinder
from toolwire.facade.tools.base_tool import BaseTool
from toolwire.facade.tools.code_execution_tool import CodeExecutionTool
from toolwire.facade.tools.reg_toolspec import find_marked_methods
from toolwire.protocols.tool_names import PROVIDER_NAME_LIMIT
from toolwire.vocabulary.calls import RESERVED_NAMES
from toolwire.vocabulary.errors import DefinitionError, RegistrationError
from toolwire.vocabulary.machine.gate import Gate


def entries_of(
    thing: object,
    *,
    name: str | None = None,
    methods: Iterable[str] | None = None,
    prefix: str | None = None,
    permission: Permission | None = None,
    timeout_s: float | None = None,
    parallel: bool = True,
    alone: str | None = None,
    gate: Gate | None = None,
    middleware: Iterable[Middleware] = (),
    replace: bool = False,
) -> list[Entry]:
    """Returns one entry for each tool that `thing` is or has. `gate` belongs to the resource `alone`.

    An instance gives the tools that its class marks, or the methods that `methods` names. With `prefix`, the prefix and
    `_` come before each name.

    Raises:
        DefinitionError: it cannot be a tool, or the prefix cannot be used; the message says what to write instead.
        RegistrationError: the name is reserved, and it is an outside tool or `replace` is not set.
    """
    if prefix is not None:
        check_prefix(prefix, name, thing if methods is None else None)
    handles = _handles(thing, name, prefix) if methods is None else _tools_of_methods(thing, methods, prefix)
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


def _handles(thing: object, name: str | None, prefix: str | None) -> list[tuple[object, Tool]]:
    if isinstance(thing, type):
        return [_make_instance(thing)]
    # On the class: a client that answers to every name would be asked for its tool.
    if hasattr(type(thing), "__tool__"):
        return [(thing, tool_of(thing))]
    if callable(thing):
        return [(thing, from_function(cast("Callable[..., Any]", thing), name=name))]
    marked = find_marked_methods(type(thing))
    if not marked:
        _refuse_near_function(thing)
        raise DefinitionError(
            f"{thing!r:.80} cannot be a tool: register a function, a ToolSpec, a BaseTool, or an instance whose tools "
            f"are marked, @reg_toolspec in {type(thing).__name__}, or named, register(instance, methods=['...'])"
        )
    return [_of_method(thing, method, options, prefix) for method, options in marked.items()]


_CALLED = "was made by a call: register the function itself, without calling it"
_VALUE = "has a value and takes no call: register a function that returns it"
_RAW = "stands in the body of a class: register the method of the class or of an instance"
_SEVERAL = "holds several values: register each of them"
_NEAR_FUNCTIONS: tuple[tuple[type, str], ...] = (
    *((kind, _CALLED) for kind in (CoroutineType, GeneratorType, AsyncGeneratorType)),
    *((kind, _VALUE) for kind in (property, functools.cached_property)),
    *((kind, _RAW) for kind in (classmethod, functools.partialmethod)),
    *((kind, _SEVERAL) for kind in (ModuleType, list, tuple, dict, set)),
)


def _refuse_near_function(thing: object) -> None:
    """Refuses a value that is often given in place of a function, with what to write instead."""
    for kind, advice in _NEAR_FUNCTIONS:
        if isinstance(thing, kind):
            name = getattr(thing, "__name__", "")
            called = f" {name!r}" if name else ""
            article = "an" if kind is AsyncGeneratorType else "a"
            raise DefinitionError(f"{article} {kind.__name__}{called} cannot be a tool. It {advice}")


def _tools_of_methods(thing: object, methods: Iterable[str], prefix: str | None) -> list[tuple[object, Tool]]:
    names = list(methods)
    if isinstance(methods, str) or not names:
        raise DefinitionError(f"methods={methods!r:.80}: write a list of names, methods=['read', 'write']")
    if isinstance(thing, type) or hasattr(thing, "__tool__") or inspect.isroutine(thing):
        raise DefinitionError(f"methods={names!r:.80} for {thing!r:.80}: only an instance has methods to name")
    marked = find_marked_methods(type(thing))
    for method in names:
        if not _is_method(thing, method):
            there = [one for one in dir(type(thing)) if not one.startswith("_") and _is_method(thing, one)]
            raise DefinitionError(
                f"{type(thing).__name__} has no method {method!r}{suggestion(nearest(method, there))}: "
                "only methods that are written in Python can be tools"
            )
    return [_of_method(thing, method, marked.get(method, {}), prefix) for method in names]


def _of_method(thing: object, method: str, options: Mapping[str, Any], prefix: str | None) -> tuple[object, Tool]:
    bound = getattr(thing, method)
    if prefix is not None:
        options = {**options, "name": add_prefix(prefix, options.get("name") or name_of(bound))}
    return bound, from_function(bound, **options)


def _make_instance(kind: type) -> tuple[object, Tool]:
    if not issubclass(kind, BaseTool):
        raise DefinitionError(f"{kind.__name__} is a class: register an instance of it, {kind.__name__}(...)")
    try:
        instance = cast("Callable[[], BaseTool]", kind)()
    except TypeError as error:
        raise DefinitionError(
            f"{kind.__name__} cannot be made without arguments ({error}): register an instance of it"
        ) from error
    return instance, tool_of(instance)


def _is_method(thing: object, name: str) -> bool:
    """Looks at the class, so that no property runs."""
    found = inspect.getattr_static(type(thing), name, None)
    return isinstance(found, FunctionType | classmethod | staticmethod)


_PREFIX = re.compile(r"[A-Za-z](?:[A-Za-z0-9_]*[A-Za-z0-9])?")
"""Names that programs and all providers accept unchanged, so that no model sees another spelling."""


def check_prefix(prefix: object, name: str | None, thing: object) -> None:
    """Raises if the prefix cannot stand before the tools of an instance.

    Raises:
        DefinitionError: models could not spell it, a name is given too, or `thing` is a single tool.
    """
    if not isinstance(prefix, str) or _PREFIX.fullmatch(prefix) is None:
        raise DefinitionError(
            f"prefix={prefix!r:.80}: write ASCII letters, digits and '_' with a letter first, and no '_' at the end: "
            "prefix='mail' makes mail_send of send"
        )
    if name is not None:
        raise DefinitionError(f"name={name!r} beside prefix={prefix!r:.80}: give one of them")
    if isinstance(thing, type) or hasattr(thing, "__tool__") or callable(thing):
        raise DefinitionError(
            f"prefix={prefix!r:.80} for {thing!r:.80}: only an instance with several tools has a prefix, "
            "give name='...'"
        )


def add_prefix(prefix: str, name: str) -> str:
    """Returns the tool's name with the prefix and `_` before it.

    Raises:
        DefinitionError: the name is too long for providers, which would cut it.
    """
    whole = f"{prefix}_{name}"
    if len(whole) > PROVIDER_NAME_LIMIT:
        raise DefinitionError(
            f"prefix={prefix!r:.80}: the name of its tool {name!r} would have {len(whole)} characters, and models are "
            f"told of {PROVIDER_NAME_LIMIT}: write a shorter prefix"
        )
    return whole


def check_reserved(name: str, tool: Tool, *, replace: bool = False) -> None:
    """Raises if the name is reserved. The owner's own tool may take a reserved name with `replace`.

    Raises:
        RegistrationError: the name is reserved, or programs would write a reserved name for it.
    """
    written = program_name(name)
    if not {name, written} & RESERVED_NAMES and not _is_special(name) and not _is_special(written):
        return
    if tool.is_outside:
        raise RegistrationError(
            f"the name {name!r} is reserved, and no tool from outside may take it: register it under another name="
        )
    if not replace:
        raise RegistrationError(
            f"the name {name!r} is reserved for a tool of toolwire or for Python: give another name=, or register it "
            "with replace=True to put yours in its place"
        )


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
