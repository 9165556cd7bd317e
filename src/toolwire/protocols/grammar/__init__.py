"""Grammars in GBNF, the language of llama.cpp, that let a model write only valid calls.

`rules.py` has the building blocks, and `schema_rules.py` turns JSON schemas into rules. Each protocol with a
grammar adds its reply format in a module of its name.
"""
