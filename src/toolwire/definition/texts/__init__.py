"""Texts inside a tool's description: types, defaults, and texts of outside tools."""
