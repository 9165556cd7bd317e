"""Readers of JSON and TOML: the strict ones, and lenient ones that report each repair.

`repair.py` reads arguments with `strict_json.py`, then with `lenient_json.py` if the JSON is malformed.
"""
