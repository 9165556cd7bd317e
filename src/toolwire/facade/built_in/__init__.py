"""Toolwire's own tools, with what they need from a registry, toolkit or session."""
