"""The tools that a session's model sees, and those that it may call."""

from __future__ import annotations

from typing import Any

from toolwire.definition.tool import Tool
from toolwire.facade.built_in.finding import allowed, offered
from toolwire.facade.given_calls import decoded_reply
from toolwire.invocation.judge import is_denied
from toolwire.invocation.scope import Scope
from toolwire.protocols.base import CallingProtocol
from toolwire.vocabulary.calls import CODE_EXECUTION, Reply


def shown(scope: Scope, protocol: CallingProtocol) -> list[Tool]:
    """Returns the tools that the model sees: see `Session.tools`."""
    tools, told = scope.tools, dict(offered(scope))
    programs = tools.find(CODE_EXECUTION)
    is_told = programs is not None and programs.disabled is None and not is_denied(programs, scope.policy)
    if programs is not None and is_told and not protocol.writes_programs:
        told[CODE_EXECUTION] = programs.tool
    return [told[entry.name] for entry in tools if entry.name in told]


def read_reply(reply: Any, scope: Scope, protocol: CallingProtocol) -> Reply:
    """Returns the reply as read by the protocol. In the calls of a given `Reply`, JSON texts are decoded.

    Raises:
        ConfigurationError: It is not a reply of this protocol.
    """
    if isinstance(reply, Reply):
        return decoded_reply(reply, scope.tools)
    return protocol.parse(reply, callable_tools(scope, protocol))


def callable_tools(scope: Scope, protocol: CallingProtocol) -> list[Tool]:
    """Returns the tools that may be called. With tool search they are more than the model sees.

    Disabled tools are included, so that a call of one is refused with its reason.
    """
    callable_ = {entry.name: entry.described for entry in allowed(scope)}
    return [*callable_.values(), *(tool for tool in shown(scope, protocol) if tool.name not in callable_)]
