"""The lists of a server, page by page: its tools, resources, templates of resources, and prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp_types import PaginatedRequestParams

from mcp import Client
from toolwire.mcp.client_limits import ClientLimits
from toolwire.mcp.server_log import ServerLog


@dataclass(frozen=True, slots=True)
class OfferKind:
    """One kind of list."""

    name: str
    """The name for people."""
    field: str
    """The field of a page that has the entries, and the end of the name of the SDK's method."""
    capability: str
    """The capability of a server that has such a list."""


TOOLS = OfferKind("tools", "tools", "tools")
RESOURCES = OfferKind("resources", "resources", "resources")
TEMPLATES = OfferKind("templates of resources", "resource_templates", "resources")
PROMPTS = OfferKind("prompts", "prompts", "prompts")


async def list_entries(kind: OfferKind, client: Client, limits: ClientLimits, log: ServerLog) -> list[Any]:
    """Returns the entries of all pages. A list beyond a limit is cut there, with a warning.

    A server without the capability has no such list; only its tools are asked for all the same.
    """
    if kind is not TOOLS and getattr(client.server_capabilities, kind.capability) is None:
        return []
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(limits.pages):
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        page: Any = await getattr(client.session, f"list_{kind.field}")(params=params)
        found += getattr(page, kind.field)
        if len(found) > limits.tools:
            log.warning(
                f"it has more than {limits.tools:,} {kind.name}: those after the first {limits.tools:,} are off"
            )
            return found[: limits.tools]
        cursor = page.next_cursor
        if cursor is None:
            return found
    log.warning(f"its list of {kind.name} has more than {limits.pages} pages: {kind.name} of later pages are off")
    return found
