"""One step of the path alone: a call that is ready, and its scope, without threads or an event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolwire.catalogue.catalogue import Catalogue
from toolwire.catalogue.entry import Composite, Entry
from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Permission
from toolwire.invocation.blocking import BlockingPorts
from toolwire.invocation.scope import Scope
from toolwire.invocation.validate import Prepared, validate
from toolwire.permission.approval import Answer, ApprovalRequest, Decision
from toolwire.runtime.runtime import Runtime
from toolwire.vocabulary.calls import ToolCall

PORTS = BlockingPorts(Runtime())
"""Ports that start no thread as long as no call has a time limit."""
Answering = Callable[[ApprovalRequest], Decision | None]


def scope_of(
    function: Callable[..., Any],
    *,
    name: str = "pay",
    permission: Permission | None = None,
    composite: Composite | None = None,
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Scope:
    """Returns a scope with one tool. `options` are those of the tool, `fields` those of the scope."""
    tool = from_function(function, name=name, **(options or {}))
    catalogue = Catalogue()
    catalogue.add(Entry(name=name, tool=tool, handle=function, permission=permission, composite=composite))
    return Scope(catalogue=catalogue, ports=PORTS, **fields)


def entry_of(scope: Scope, name: str = "pay") -> Entry:
    entry = scope.catalogue.find(name)
    assert entry is not None
    return entry


def ready(scope: Scope, name: str = "pay", /, call_id: str = "r_1", **arguments: Any) -> Prepared:
    """Returns a valid call of id `r_1` from a program `r_0`, as the model wrote it."""
    call = ToolCall(name, arguments, id=call_id, parent="r_0", raw_text="as written")
    found = validate(call, entry_of(scope, name), scope.states)
    assert isinstance(found, Prepared)
    return found


class Person:
    """An approver that gives one decision and remembers the requests. `meanwhile` happens while the person thinks."""

    def __init__(self, verdict: Answer | None, *, meanwhile: Callable[[], object] = lambda: None, **more: Any) -> None:
        self.decision = None if verdict is None else Decision(verdict=verdict, **more)
        self.asked: list[ApprovalRequest] = []
        self._meanwhile = meanwhile

    def __call__(self, request: ApprovalRequest) -> Decision | None:
        self.asked.append(request)
        self._meanwhile()
        return self.decision
