"""MCP: tool values in both directions."""
