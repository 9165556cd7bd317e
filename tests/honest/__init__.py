"""Honest programs, as models write them for ordinary requests: the sandbox gives the same results as plain CPython.

`programs/` has the programs, a file per theme. `reference.py` is plain CPython, `tools.py` has the tools that both may
call.
"""
