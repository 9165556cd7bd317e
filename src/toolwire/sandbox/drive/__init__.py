"""Runs one program from its start to its end, in a thread or on an event loop."""
