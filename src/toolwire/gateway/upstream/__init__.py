"""The resources, prompts and completions of the MCP servers behind a `ToolServer`."""
