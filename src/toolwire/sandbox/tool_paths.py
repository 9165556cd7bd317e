"""The dotted names by which a program calls its tools."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator

from toolwire.sandbox.program import Program
from toolwire.vocabulary.calls import PROGRAM_MODULES

_CHAIN = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^()]*\)|[^\n]*)", re.MULTILINE)
_PARTS = 8
"""Maximum number of parts of a dotted name that are looked at. Bounds the work on a hostile source."""
_NOT_SPELLED = frozenset({*dir(builtins), *(name.split(".")[0] for name in PROGRAM_MODULES)})


def tool_paths(program: Program) -> dict[str, str]:
    """Returns each dotted name that means a tool, with the name of the tool in programs.

    These are the tools' own paths, and `github.create_issue` for `github_create_issue` if the source has it. A module,
    a builtin or a tool called `github` keeps that name.
    """
    own = {tool.program_name for tool in program.tools}
    written = {chain: chain.replace(".", "_") for chain in _chains(program.whole_source)}
    kept = own | _NOT_SPELLED
    spelled = {chain: tool for chain, tool in written.items() if tool in own and chain.split(".")[0] not in kept}
    return spelled | {tool.path: tool.program_name for tool in program.tools if tool.path}


def _chains(source: str) -> Iterator[str]:
    """Yields the dotted names of a source from their first part, each with those that begin it, and imported ones."""
    for chain in set(_CHAIN.findall(source)) if "." in source else ():
        parts = chain.split(".", _PARTS)[:_PARTS]
        yield from (".".join(parts[:length]) for length in range(2, len(parts) + 1))
    for package, names in set(_FROM.findall(source)) if "from" in source else ():
        yield from (f"{package}.{name}" for name in re.findall(r"\w+", names))
