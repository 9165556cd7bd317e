"""The ways to a server: a URL, a process, and any two streams."""
