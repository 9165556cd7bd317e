"""The fixed mapping from names of tools and parameters to names in programs, and patterns of tool names."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import count

from toolwire.vocabulary.calls import ASYNCIO, CORE_MODULES
from toolwire.vocabulary.errors import DefinitionError

NAME_LIMIT = 128
"""Maximum number of characters in a tool's name, the most that any provider or MCP accepts."""

NAME_CACHE = 8_192
"""Number of cached forms of names: those of a few thousand tools. A reply may be compared with the names of all."""

_NOT_IN_PROGRAMS = frozenset(
    {
        *("open", "eval", "exec", "compile", "__import__", "input", "breakpoint"),
        *("help", "exit", "quit", "copyright", "credits", "license", "globals", "locals", "vars"),
    }
)

PROGRAM_OWN_NAMES: frozenset[str] = frozenset(
    {*CORE_MODULES, ASYNCIO, "__result__", *(set(dir(builtins)) - _NOT_IN_PROGRAMS - {"_"})}
)
"""Names with a meaning in every program. A tool with such a name would hide it."""


@lru_cache(maxsize=NAME_CACHE)
def program_name(name: str) -> str:
    """Returns the name of a tool in programs.

    An identifier stays unchanged. Each character that identifiers cannot have becomes `_`. A leading digit gets `_`
    before it, and a keyword or one of a program's own names gets `_` after it. Two names may map to the same one; code
    that combines tools must refuse that.

    Raises:
        DefinitionError: The name is empty, longer than `NAME_LIMIT`, or contains a control character.
    """
    written = program_parameter(name)
    return f"{written}_" if written in PROGRAM_OWN_NAMES else written


def program_path(name: str) -> str:
    """Returns the dotted name that programs may write too: `fs.read` for `fs.read` and `fs/read`. Empty without one.

    Tools with distinct program names have distinct paths.
    """
    parts = [re.sub(r"\W", "_", part) for part in re.split(r"[./]", name)]
    is_path = len(parts) > 1 and all(part.isidentifier() and not keyword.iskeyword(part) for part in parts)
    return ".".join(parts) if is_path else ""


def program_parameter(name: str) -> str:
    """Returns the name of a parameter in programs. Unlike a tool's name it hides nothing, so `id` stays `id`.

    Raises:
        DefinitionError: As in `program_name`.
    """
    check_name(name)
    # Python reads an identifier in this form, so `ﬁ` and `fi` are one name.
    name = unicodedata.normalize("NFKC", name)
    written = name if name.isidentifier() else _identifier(name)
    return f"{written}_" if keyword.iskeyword(written) else written


def program_parameters(names: Iterable[str]) -> dict[str, str]:
    """Returns the name in programs of each parameter of one tool. No two are the same.

    A name that would be written like an earlier one gets a number: `a_b_2` for `a-b` beside `a_b`. Names that programs
    write unchanged come first, then the others by code point. So the order of a schema does not matter.

    Raises:
        DefinitionError: As in `program_name`.
    """
    wanted = {name: program_parameter(name) for name in names}
    written: dict[str, str] = {}
    numbers: dict[str, Iterator[int]] = {}
    for name in sorted(wanted, key=lambda name: (wanted[name] != name, name)):
        free = wanted[name]
        while free in written:
            free = f"{wanted[name]}_{next(numbers.setdefault(wanted[name], count(2)))}"
        written[free] = name
    return {name: free for free, name in written.items()}


def check_name(name: str) -> None:
    """Refuses a name that cannot be mapped.

    Raises:
        DefinitionError: As in `program_name`.
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


def is_named(tool: str, names: Iterable[str]) -> bool:
    """True if one of the names is the tool's, or a pattern such as `read_*` that matches it. Case counts."""
    return any(tool == name or fnmatchcase(tool, name) for name in names)
