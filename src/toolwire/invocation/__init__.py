"""The one path of a call. Read `invoker.py` first."""
