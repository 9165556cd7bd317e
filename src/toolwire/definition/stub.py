"""A tool as the Python function that a program may call: signature, docstring, `pass`."""

from __future__ import annotations

from toolwire.definition.naming import program_name
from toolwire.definition.python_text import header, in_docstring, indented, sections
from toolwire.definition.tool import Tool
from toolwire.definition.words import bounded

STUB_LIMIT = 4_000
"""Maximum length of a docstring in characters. Prompts hold many tools, and imported schemas have hundreds of lines."""

DESCRIPTION_LIMIT = 1_600
"""Maximum length in characters of the description in a docstring that is too long. The rest explains the call."""


@bounded
def stub(tool: Tool) -> str:
    """Returns the function's text without a final newline, with the names that programs use.

    Bound parameters are hidden.

    The same tool always gives the same text. A docstring above `STUB_LIMIT` is cut at the end of a line, with a note.
    """
    parts = sections(tool, program_name)
    if not parts:
        return f"{header(tool, program_name)}\n    pass"
    body = in_docstring(_bounded(parts, tool))
    docstring = indented(f'"""\n{body}\n"""')
    return f"{header(tool, program_name)}\n{docstring}\n    pass"


def _bounded(parts: list[str], tool: Tool) -> str:
    text = "\n\n".join(parts)
    if len(text) <= STUB_LIMIT:
        return text
    if tool.description:
        parts = [_cut(parts[0], DESCRIPTION_LIMIT), *parts[1:]]
    return _cut("\n\n".join(parts), STUB_LIMIT)


def _cut(text: str, limit: int) -> str:
    """Returns the text up to the last line or sentence that fits, with the length of the rest."""
    if len(text) <= limit:
        return text
    end = max(text.rfind("\n", 0, limit), text.rfind(". ", 0, limit) + 1)
    kept = text[: end if end > limit // 2 else limit].rstrip()
    return f"{kept}\n... ({len(text) - len(kept)} more characters are left out here)"
