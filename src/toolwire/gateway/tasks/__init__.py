"""Calls that become tasks: a client asks again for what takes long, or waits for a person."""
