"""Profiles of clients: each has the tools that its token, or a scope of its token, gives."""
