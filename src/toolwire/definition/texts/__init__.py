"""Texts about a tool for models and people: types, signatures, stubs and docstrings."""
