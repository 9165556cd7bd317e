"""Reports the imports of tools in a program. The sandbox reads them as nothing, because tools need no import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import CODE_EXECUTION, PROGRAM_MODULES, Problem, Reply

_IMPORT = re.compile(
    r"^[ \t]*+(?:from[ \t]++(?P<package>[\w.]++)[ \t]++)?import\b[ \t(]*+(?P<names>[\w., \t]++)", re.MULTILINE
)


def with_tool_imports(reply: Reply, known: KnownTools) -> Reply:
    """Returns the reply with a repair for each line of its program that imports a tool."""
    problems = [
        problem
        for call in reply.calls
        if call.name == CODE_EXECUTION and "import" in (code := str(call.arguments.get("code", "")))
        for problem in _find_tool_imports(code, known)
    ]
    return replace(reply, problems=(*reply.problems, *problems)) if problems else reply


def _find_tool_imports(code: str, known: KnownTools) -> Iterator[Problem]:
    for written in _IMPORT.finditer(code):
        package = written["package"] or ""
        names = [part.split()[0] for part in written["names"].split(",") if part.strip()]
        tools = [name for name in names if package not in PROGRAM_MODULES and _is_tool(package, name, known)]
        if tools and (not package or len(tools) == len(names)):
            line = code.count("\n", 0, written.start("names")) + 1
            message = (
                f"The import of {', '.join(map(repr, tools))} was read as nothing: tools are there without import."
            )
            yield Problem(message=message, repaired=True, place=f"line {line} of the code")


def _is_tool(package: str, name: str, known: KnownTools) -> bool:
    if not package and name in PROGRAM_MODULES:
        return False
    whole = f"{package}.{name}" if package else name
    is_package = any(tool.replace("/", ".").startswith(f"{name}.") for tool in known.schemas)
    return is_package or any(known.name(one) in known.schemas for one in (whole, name))
