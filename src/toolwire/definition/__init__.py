"""Tools: from a function, code, a JSON schema or an MCP value to one live `Tool`, and from there to texts about it.

Start at `tool.py`. `from_function.py`, `from_code.py` and `from_schema.py` make a tool; `binding.py` hides parameters;
`describe.py`, `stub.py` and `naming.py` produce the texts that a model reads. Modules that need pydantic, jsonschema or
docstring-parser are imported on first use, because these libraries are slow to import.
"""
