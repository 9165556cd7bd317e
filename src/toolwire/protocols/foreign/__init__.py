"""Reads what is not of the reply's own format: calls of other models, and what looks like a call."""
