"""A tool as the Python function that a program may call: signature, docstring, `pass`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.definition.derived import input_schema_of, once_per_text
from toolwire.definition.naming import program_name
from toolwire.definition.renderings.python_text import (
    field_lines,
    header,
    in_docstring,
    indent_text,
    parameter_texts,
    returns_text,
    sections,
)
from toolwire.definition.shape import Parameter
from toolwire.definition.tool import Tool
from toolwire.definition.words import limit_references, resolve
from toolwire.vocabulary.texts.counting import count_of

STUB_LIMIT = 4_000
"""Maximum length of a docstring in characters. Prompts hold many tools, and imported schemas have hundreds of lines."""

DESCRIPTION_LIMIT = 1_600
"""Maximum length in characters of the description in a docstring that is too long. The rest explains the call."""


@once_per_text
@limit_references
def stub(tool: Tool) -> str:
    """Returns the function's text without a final newline, with the names that programs use.

    Bound parameters are hidden.

    The same tool always gives the same text. A docstring above `STUB_LIMIT` is cut at the end of a line, with a note.
    """
    parts = sections(tool, program_name)
    if not parts:
        return f"{header(tool, program_name)}\n    pass"
    body = in_docstring(_fit_into_limit(parts, tool))
    docstring = indent_text(f'"""\n{body}\n"""')
    return f"{header(tool, program_name)}\n{docstring}\n    pass"


def _fit_into_limit(parts: list[str], tool: Tool) -> str:
    text = "\n\n".join(parts)
    if len(text) <= STUB_LIMIT:
        return text
    if tool.description:
        parts = [_cut_text(parts[0], DESCRIPTION_LIMIT), *parts[1:]]
    return _cut_text("\n\n".join(parts), STUB_LIMIT)


def _cut_text(text: str, limit: int) -> str:
    """Returns the text up to the last line or sentence that fits, with the length of the rest."""
    if len(text) <= limit:
        return text
    end = max(text.rfind("\n", 0, limit), text.rfind(". ", 0, limit) + 1)
    kept = text[: end if end > limit // 2 else limit].rstrip()
    return f"{kept}\n... ({count_of(len(text) - len(kept), 'more character is', 'more characters are')} left out here)"


@once_per_text
@limit_references
def compact_stub(tool: Tool) -> str:
    """Returns the function's text without a final newline.

    The texts that `stub` lists under Args are comments after each parameter. They include the bounds of values, which
    `stub` leaves out. Returns and Raises are kept, examples are not.
    """
    returns = f" -> {tool.output_annotation}" if tool.output_annotation else ""
    docstring = _docstring(tool)
    closing = ' """' if docstring.endswith('"') else '"""'
    body = f' """{in_docstring(docstring)}{closing}' if docstring else " ..."
    return f"def {program_name(tool.name)}({_parameters(tool)}){returns}:\n{body}"


def _parameters(tool: Tool) -> str:
    texts = parameter_texts(tool.visible_parameters)
    parameters = iter(tool.visible_parameters)
    root = input_schema_of(tool)
    # The separators `/` and `*` have no comment.
    notes = ["" if text in ("/", "*") else _note(next(parameters), root) for text in texts]
    if not any(notes):
        return ", ".join(texts)
    return "\n" + "".join(f" {text},{note}\n" for text, note in zip(texts, notes, strict=True))


def _note(parameter: Parameter, root: Mapping[str, Any]) -> str:
    facts = [" ".join(parameter.description.split()), *_bounds(resolve(parameter.schema, root))]
    text = "; ".join(fact for fact in facts if fact)
    fields = field_lines(parameter.schema, root, parameter.annotation)
    return (f" # {text}" if text else "") + "".join(f"\n # {line}" for line in fields)


def _bounds(node: Mapping[str, Any]) -> list[str]:
    """Lists the bounds, such as `1..50`, `..80 characters`, `date-time`."""
    found = [str(node["format"])] if "format" in node else []
    if "minimum" in node or "maximum" in node:
        found.append(f"{node.get('minimum', '')}..{node.get('maximum', '')}")
    if "minLength" in node or "maxLength" in node:
        found.append(f"{node.get('minLength', '')}..{node.get('maxLength', '')} characters")
    if "minItems" in node or "maxItems" in node:
        found.append(f"{node.get('minItems', '')}..{node.get('maxItems', '')} items")
    return [*found, f"matches {node['pattern']}"] if "pattern" in node else found


def _docstring(tool: Tool) -> str:
    returns = returns_text(tool)
    parts = [tool.description.strip(), f"Returns: {returns}" if returns else ""]
    parts += [f"Raises {name}: {text}" if text else f"Raises {name}" for name, text in tool.docs.raises]
    return "\n".join(part for part in parts if part).replace("\n", "\n ").replace("\n \n", "\n\n")
