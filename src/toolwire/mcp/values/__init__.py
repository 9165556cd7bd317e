"""Results as MCP has them, and the tools of FastMCP."""
