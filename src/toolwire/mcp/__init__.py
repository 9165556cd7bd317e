"""The client of MCP servers: connections, logins, questions, and tool values in both directions."""
