"""A tool as a Python function in few tokens. Each parameter is named once, on one line with its description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwire.definition.naming import program_name
from toolwire.definition.python_text import field_lines, in_docstring, parameter_texts, returns_text
from toolwire.definition.shape import Parameter
from toolwire.definition.tool import Tool
from toolwire.definition.words import bounded, resolve


@bounded
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
    root = tool.input_schema
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
