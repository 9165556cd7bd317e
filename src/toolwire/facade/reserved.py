"""Reserved names: those of toolwire's own tools, and names with a meaning in Python."""

from __future__ import annotations

from toolwire.definition.naming import program_name
from toolwire.definition.tool import Tool
from toolwire.vocabulary.calls import RESERVED_NAMES
from toolwire.vocabulary.errors import RegistrationError


def check_reserved(name: str, tool: Tool, *, replace: bool = False) -> None:
    """Raises if the name is reserved. The owner's own tool may take a reserved name with `replace`.

    Raises:
        RegistrationError: the name is reserved, or programs would write a reserved name for it.
    """
    written = program_name(name)
    if not {name, written} & RESERVED_NAMES and not _is_special(name) and not _is_special(written):
        return
    if tool.is_outside:
        raise RegistrationError(
            f"the name {name!r} is reserved, and no tool from outside may take it: register it under another name="
        )
    if not replace:
        raise RegistrationError(
            f"the name {name!r} is reserved for a tool of toolwire or for Python: give another name=, or register it "
            "with replace=True to put yours in its place"
        )


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
