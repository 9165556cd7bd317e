"""Toolkits: the tools of one agent, and their calls as streams."""
