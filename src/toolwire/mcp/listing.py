"""The list of a server's tools, page by page."""

from __future__ import annotations

from mcp_types import PaginatedRequestParams, Tool

from mcp import Client
from toolwire.mcp.client_limits import ClientLimits
from toolwire.mcp.server_log import ServerLog


async def listed(client: Client, limits: ClientLimits, log: ServerLog) -> list[Tool]:
    """Returns the tools of all pages. A list beyond a limit is cut there, with a warning."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(limits.pages):
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        page = await client.session.list_tools(params=params)
        tools += page.tools
        if len(tools) > limits.tools:
            log.warning(f"it has more than {limits.tools:,} tools: those after the first {limits.tools:,} are off")
            return tools[: limits.tools]
        cursor = page.next_cursor
        if cursor is None:
            return tools
    log.warning(f"its list of tools has more than {limits.pages} pages: tools of later pages are off")
    return tools
