"""A tool as the Python function that a program may call: signature, docstring, `pass`."""

from __future__ import annotations

from toolwire.definition.naming import program_name
from toolwire.definition.python_text import header, in_docstring, indented, sections
from toolwire.definition.tool import Tool


def stub(tool: Tool) -> str:
    """The function's text, without a newline at its end; names are what a program writes. No bound parameter shows."""
    parts = sections(tool, program_name)
    if not parts:
        return f"{header(tool, program_name)}\n    pass"
    body = in_docstring("\n\n".join(parts))
    docstring = indented(f'"""\n{body}\n"""')
    return f"{header(tool, program_name)}\n{docstring}\n    pass"
