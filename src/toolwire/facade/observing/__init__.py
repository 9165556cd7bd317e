"""Observers of calls: the handle that a host holds, and the events that its function receives."""
