"""The one path that every call takes. Read `invoker.py` first."""
