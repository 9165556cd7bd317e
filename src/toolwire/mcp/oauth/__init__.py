"""Logins at MCP servers by OAuth 2.1: which, with which tokens, and how a person makes one."""
