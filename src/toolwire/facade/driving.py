"""The drivers of calls: a new scope, the scope of awaited calls, and calls that block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.invocation.batch import needs_loop
from toolwire.invocation.invoker import invoke
from toolwire.invocation.ports.blocking import BlockingPorts
from toolwire.invocation.ports.ports import Ports
from toolwire.invocation.scope import Scope, require_result
from toolwire.runtime.runtime import default_runtime
from toolwire.runtime.step import step
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult


def new_scope(catalogue: Catalogue) -> Scope:
    """Returns the scope of blocking calls of these tools, without rules, approver or log."""
    return Scope(catalogue=catalogue, ports=BlockingPorts(default_runtime()))


def async_ports(scope: Scope) -> Ports:
    """Returns the ports of awaited calls with the settings of the scope."""
    # Import asyncio here: only callers with a loop need it.
    from toolwire.invocation.ports.asynchronous import AsynchronousPorts

    return AsynchronousPorts(scope.runtime, scope.cleanup_s)


def async_scope(scope: Scope, **changes: Any) -> Scope:
    """Returns the scope of awaited calls with the same settings, except for the given changes."""
    return replace(scope, ports=async_ports(scope), **changes)


def call_blocking(call: ToolCall, scope: Scope) -> ToolResult:
    """Runs the call and returns its result; a call that needs an event loop runs on the portal's, and this thread
    waits.
    """
    if needs_loop((call,), scope):
        later = async_scope(scope)
        return require_result(scope.runtime.portal.run(lambda: invoke(call, later)))
    return require_result(step(invoke(call, scope)))
