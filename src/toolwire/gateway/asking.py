"""Shows a form to the person of a client of the handshake protocols, and waits as long as an answer can come."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from toolwire.gateway.elicitation import form_of
from toolwire.gateway.http.request_end import request_end
from toolwire.permission.approval import ApprovalRequest
from toolwire.vocabulary.errors import Unrepresentable

_LOG = logging.getLogger("toolwire.gateway")


async def ask_person(context: ServerRequestContext[Any, Any], request: ApprovalRequest) -> types.ElicitResult | None:
    """Returns the filled form. None if no answer can come: the client is gone or refuses, or the request expired."""
    form = shown_form(request)
    if form is None:
        return None
    said: types.ElicitResult | None = None
    async with anyio.create_task_group() as tasks:
        end = request_end(context.request)
        if end is not None:
            tasks.start_soon(_cancel_after, end, tasks.cancel_scope)
        with anyio.move_on_after(_seconds_left(request)):
            try:
                said = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
            except MCPError as error:
                _LOG.warning("an MCP client did not answer request %s: %s", request.id, error)
        tasks.cancel_scope.cancel()
    return said


def shown_form(request: ApprovalRequest) -> types.ElicitRequestFormParams | None:
    """Returns the form of a request; None if a form cannot show its arguments."""
    try:
        return form_of(request)
    except Unrepresentable:
        _LOG.exception("request %s cannot be shown to a person", request.id)
        return None


async def _cancel_after(end: anyio.Event, scope: anyio.CancelScope) -> None:
    await end.wait()
    scope.cancel()


def _seconds_left(request: ApprovalRequest) -> float:
    return max(0.0, request.expires_at - time.time()) if request.expires_at else math.inf
