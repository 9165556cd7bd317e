"""Bounds what a hostile definition may cost: its schema, patterns, recursion and values of equal hashes."""
