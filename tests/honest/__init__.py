"""Honest programs: what models write for ordinary requests gives in the sandbox what it gives in plain CPython.

`programs/` has the programs, a file per theme. `reference.py` is plain CPython, `tools.py` what both may call.
"""
