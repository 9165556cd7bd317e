"""Checks of arguments with a JSON schema. The bounds of hostile ones are in `hostile/`."""
