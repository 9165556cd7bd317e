"""Calls that wait for a person, which an equal call finds again."""
