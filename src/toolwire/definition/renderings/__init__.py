"""Writes a tool as text: for a prompt, as Python, as a stub."""
