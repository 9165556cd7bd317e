"""How a client proves itself to an MCP server."""
