"""The one fixed mapping of names to what a program writes for them."""

from __future__ import annotations

import builtins
import keyword
import unicodedata

from toolwire.vocabulary.errors import DefinitionError

NAME_LIMIT = 128
"""Characters in a tool's name: the most that any provider or MCP takes."""

PROGRAM_MODULES: tuple[str, ...] = ("math", "json", "datetime", "re", "random", "statistics", "asyncio")
"""The modules a program has without importing them."""

_NOT_IN_PROGRAMS = frozenset(
    {
        *("open", "eval", "exec", "compile", "__import__", "input", "breakpoint"),
        *("help", "exit", "quit", "copyright", "credits", "license", "globals", "locals", "vars"),
    }
)

PROGRAM_OWN_NAMES: frozenset[str] = frozenset(
    {*PROGRAM_MODULES, "__result__", *(set(dir(builtins)) - _NOT_IN_PROGRAMS - {"_"})}
)
"""Names that mean something in every program: a tool that bore one would hide it."""


def program_name(name: str) -> str:
    """What a program writes for a tool of this name.

    An identifier stays as it is. Any character that no identifier can hold becomes `_`, a leading digit gets `_` in
    front, and a keyword or one of a program's own names gets `_` behind. Two names may map to one: whoever puts
    tools side by side refuses that.

    Raises:
        DefinitionError: an empty name, one longer than `NAME_LIMIT`, or one that holds a control character.
    """
    written = program_parameter(name)
    return f"{written}_" if written in PROGRAM_OWN_NAMES else written


def program_parameter(name: str) -> str:
    """What a program writes for a parameter of this name: as `program_name`, but it hides nothing, so `id` stays `id`.

    Raises:
        DefinitionError: as `program_name`.
    """
    check_name(name)
    written = name if name.isidentifier() else _identifier(name)
    return f"{written}_" if keyword.iskeyword(written) else written


def check_name(name: str) -> None:
    """Refuses a name that no mapping can help.

    Raises:
        DefinitionError: as `program_name`.
    """
    if not name:
        raise DefinitionError("a name is empty: give name='...'")
    if len(name) > NAME_LIMIT:
        raise DefinitionError(f"the name {name[:20]!r}... has {len(name)} characters: write at most {NAME_LIMIT}")
    if any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in name):
        raise DefinitionError(f"the name {name!r} holds a control character: write letters, digits and '_'")


def _identifier(name: str) -> str:
    kept = "".join(character if f"_{character}".isidentifier() else "_" for character in name)
    return kept if kept.isidentifier() else f"_{kept}"
