"""Checks of arguments with a JSON schema: its limits, its keywords and its patterns."""
