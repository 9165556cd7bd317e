"""The tokens of an authorization server: its table in a file, its keys, and what a token gives."""
