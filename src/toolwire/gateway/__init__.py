"""Tools for clients of the Model Context Protocol: `ToolServer` serves a registry, a toolkit or a list of tools.

Each call is one turn of a `Session`, so that it takes the same path as a model's. The SDK is imported with the first
connection.
"""
