"""The hint about a server whose tools ask as in the handshake protocols, on a connection with a newer one."""

from __future__ import annotations

from mcp_types import CallToolResult, TextContent
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

_CANNOT_ASK = ("server-initiated requests", "Server-to-client requests are not available")
"""Words in the errors for a tool that cannot ask with 2026-07-28: of the Python SDK and FastMCP, and of TypeScript."""


def hint_about_asking(error: str, server: str, protocol: str | None) -> str:
    """Returns the hint that belongs to an error of a server; empty for all other errors and for older protocols."""
    if protocol in HANDSHAKE_PROTOCOL_VERSIONS or not any(words in error for words in _CANNOT_ASK):
        return ""
    return (
        f"The server {server!r} may be able to ask in an older protocol: "
        f'write "protocol": "{LATEST_HANDSHAKE_VERSION}" in its entry.'
    )


def with_hint_about_asking(answer: object, server: str, protocol: str | None) -> object:
    """Returns the answer to a call. If its tool failed because it cannot ask, the hint is its last text."""
    if not isinstance(answer, CallToolResult) or not answer.is_error:
        return answer
    texts = " ".join(block.text for block in answer.content if isinstance(block, TextContent))
    hint = hint_about_asking(texts, server, protocol)
    return answer.model_copy(update={"content": [*answer.content, TextContent(text=hint)]}) if hint else answer
