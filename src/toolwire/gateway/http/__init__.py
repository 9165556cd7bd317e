"""Streamable HTTP: the port, the limits of its requests, and the application behind it."""
