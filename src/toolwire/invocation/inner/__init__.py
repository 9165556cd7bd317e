"""Calls inside of calls: the state that they share, and the calls of a tool with tools of its own."""
