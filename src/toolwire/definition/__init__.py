"""Tools: from a function, code or a JSON schema to one live `Tool`, and from there to texts about it.

Start at `tool.py`. `from_function.py`, `from_code.py` and `from_schema.py` make a tool; `binding.py` hides parameters.
`arguments/` checks arguments with pydantic, and `json_schema/` checks them with a schema. `texts/` produces the texts
that a model reads, with the names from `naming.py`. Modules that need pydantic or jsonschema are imported on
first use, because these libraries are slow to import. `docstring/` reads what an author wrote in a docstring.
"""
