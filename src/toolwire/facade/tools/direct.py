"""An owner's own call of one tool: validate, bind, run. A call that a model caused never comes this way."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Entry
from toolwire.definition.tool import Tool
from toolwire.facade.given_calls import fit_arguments
from toolwire.invocation.execute import attempt
from toolwire.invocation.invoker import invoke
from toolwire.invocation.ports.blocking import BlockingPorts
from toolwire.invocation.ports.ports import Ports
from toolwire.invocation.postprocess import postprocess
from toolwire.invocation.scope import Scope, require_result
from toolwire.invocation.validate import validate
from toolwire.permission.policy import Policy
from toolwire.runtime.runtime import default_runtime
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


def run_blocking(tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
    """Runs the call in this thread and returns its result; it blocks an event loop of this thread."""
    if not tool.is_async:
        return step(_run_call(tool, arguments, _blocking_scope()))
    return default_runtime().portal.run(lambda: run_async(tool, arguments))


async def run_async(tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
    """Runs the call on the running loop and returns its result; a sync tool runs in a worker thread."""
    return await _run_call(tool, arguments, _asynchronous_scope())


async def _run_call(tool: Tool, arguments: Mapping[str, Any], scope: Scope) -> ToolResult:
    started = time.perf_counter()
    call = ToolCall(tool.name, fit_arguments(arguments, tool))
    entry = Entry(name=tool.name, tool=tool, handle=tool)
    prepared = validate(call, entry, ())
    if isinstance(prepared, ToolResult):
        return prepared
    result = postprocess(call, entry, require_result(await attempt(prepared, scope, invoke)), sys.maxsize)
    return result.with_metadata(duration_ms=(time.perf_counter() - started) * 1000)


@cache
def _blocking_scope() -> Scope:
    return _scope(BlockingPorts(default_runtime()))


@cache
def _asynchronous_scope() -> Scope:
    # Import asyncio here: only callers with a loop need it.
    from toolwire.invocation.ports.asynchronous import AsynchronousPorts

    return _scope(AsynchronousPorts(default_runtime()))


def _scope(ports: Ports) -> Scope:
    """Returns a scope without tools and without an approver, for an owner's single call."""
    return Scope(catalogue=Catalogue(), policy=Policy(), ports=ports)
