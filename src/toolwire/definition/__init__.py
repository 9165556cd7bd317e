"""Tools: from a function, code, a JSON schema or an MCP value to one live `Tool`, and from it to every text about it.

Start at `tool.py`. `from_function.py`, `from_code.py` and `from_schema.py` make one; `binding.py` hides parameters;
`describe.py`, `stub.py` and `naming.py` say what a model reads. pydantic is touched in `arguments.py` alone,
jsonschema in `json_schema.py` alone, docstring-parser in `docstring.py` alone; each is imported on first use.
"""
