"""Bounds the cost of a hostile definition: its schema, patterns, recursion and values of equal hashes."""
