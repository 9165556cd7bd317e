"""Reads calls of other models' formats, and texts that look like a call."""
