"""Checks of arguments with pydantic: bounded in cost, exact in their messages, and reversible to JSON."""
