"""Refuses code that cannot work in a program before anything runs, and tells the model what to write instead.

The host's safety never depends on these checks. A program that tries to get round them can, and then meets the kernel's
walls. So the checks count a name only when it is the real thing. `re.compile`, a tool called `open`, and a variable,
parameter, attribute or text of that name are fine.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolwire.sandbox.free_names import FreeName, free_names
from toolwire.sandbox.program import Program, ProgramTool
from toolwire.sandbox.tool_paths import tool_paths

Family = Literal["import", "files", "network", "system", "dynamic code", "environment"]

PARTS = {"json.decoder": "json", "json.encoder": "json", "collections.abc": "collections"}
"""Modules that can be imported as a part of another one."""
_FILENAME = "<program>"
_SHOWN_REFUSALS = 8
_SHOWN_TOOLS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRefusal:
    """One thing that a program may not use.

    Attributes:
        line: Line of the program, from 1.
        column: Number of characters before it on that line.
        width: Number of characters that it takes on that line; at least 1.
        what: The refused text, as the program has it: `import os`, `os.environ`, `eval`.
        family: Its family, out of a closed set.
        reason: The reason, a sentence without its full stop.
        instead: A replacement, in a sentence or two.
    """

    line: int
    column: int
    width: int
    what: str
    family: Family
    reason: str
    instead: str

    def text(self, source: str) -> str:
        """Returns the refusal in the form of a Python error: place, line, marker, reason."""
        lines = _lines(source)
        line = lines[self.line - 1] if self.line <= len(lines) else ""
        bare = line.lstrip()
        marker = " " * max(self.column - (len(line) - len(bare)), 0) + "^" * self.width
        return (
            f'  File "{_FILENAME}", line {self.line}\n    {bare}\n    {marker}\n'
            f"SourceRefused: {self.reason}. {self.instead}"
        )


def check_source(program: Program) -> tuple[SourceRefusal, ...]:
    """Returns the program's refusals in the order of its lines; empty when it may start.

    A text that is not Python passes here: the child reports it with Python's own message.
    """
    if not program.source_checks:
        return ()
    try:
        tree = parse_program(program.source)
        found = sorted(_Checks(program).refusals(tree), key=lambda refusal: (refusal.line, refusal.column))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(found[:_SHOWN_REFUSALS])


def parse_program(source: str) -> ast.Module:
    """Parses a program's text, without warnings. Raises as `ast.parse`."""
    _quiet_parser()
    try:
        return ast.parse(source, _FILENAME)
    except SystemError:
        # CPython before 3.11.9 and 3.12.3 counts the depth of trees that two threads build at once together.
        return ast.parse(source, _FILENAME)


class _Checks:
    """The checks of one program."""

    def __init__(self, program: Program) -> None:
        self._tools = program.tools
        self._modules = program.modules
        self._own = {tool.program_name for tool in program.tools}
        paths = set(tool_paths(program))
        self._packages = {path[:place] for path in paths for place, character in enumerate(path) if character == "."}
        self._paths = paths | self._packages
        self._lines = _lines(program.source)

    def refusals(self, tree: ast.Module) -> Iterator[SourceRefusal]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if self._is_tool(alias, alias.name):
                        continue
                    yield from self._import(node, alias.name, f"import {alias.name}")
            elif isinstance(node, ast.ImportFrom):
                name = f"{'.' * node.level}{node.module or ''}"
                if not node.level and all(self._is_member(name, alias) for alias in node.names):
                    continue
                yield from self._import(node, name, f"from {name} import ...")
        for free in free_names(tree):
            is_refused = free.name in _NAMES or (free.name, free.attribute) in _ATTRIBUTES
            is_tool = free.name in self._own or f"{free.name}.{free.attribute}" in self._paths
            if is_refused and not is_tool:
                yield self._use(free)

    def _is_tool(self, alias: ast.alias, name: str) -> bool:
        """True if the child reads the import as nothing: every tool is there without one."""
        return name in self._own or (
            name in self._paths and (name not in self._packages or alias.asname in (None, name))
        )

    def _is_member(self, package: str, alias: ast.alias) -> bool:
        return self._is_tool(alias, alias.name) or f"{package}.{alias.name}" in self._paths - self._packages

    def _import(self, node: ast.stmt, name: str, what: str) -> Iterator[SourceRefusal]:
        if self._may_import(name):
            return
        root = name.split(".")[0]
        family, reason = _NAMES.get(root, ("import", "a program cannot import it"))
        instead = _IMPORTS_INSTEAD.get(root) or self._instead_of(root, family)
        yield self._refusal(node, what, family, reason, f"{instead} {self._without(node)}")

    def _may_import(self, name: str) -> bool:
        return name == "__future__" or PARTS.get(name, name) in self._modules

    def _without(self, node: ast.stmt) -> str:
        """Returns the advice for the line of a refused import: what it is without the refused modules."""
        names = node.names if isinstance(node, ast.Import) else []
        kept = [ast.unparse(alias) for alias in names if self._may_import(alias.name)]
        return f"Write the line as `import {', '.join(kept)}`." if kept else "Leave the line out."

    def _use(self, free: FreeName) -> SourceRefusal:
        family, reason = _ATTRIBUTES.get((free.name, free.attribute)) or _NAMES[free.name]
        what = f"{free.name}.{free.attribute}" if free.attribute else free.name
        return self._refusal(free.node, what, family, reason, self._instead_of(free.name, family))

    def _refusal(
        self, node: ast.stmt | ast.expr, what: str, family: Family, reason: str, instead: str
    ) -> SourceRefusal:
        # The parser counts columns in bytes of UTF-8.
        line = self._lines[node.lineno - 1].encode() if node.lineno <= len(self._lines) else b""
        end = node.end_col_offset if node.end_lineno == node.lineno else len(line)
        return SourceRefusal(
            line=node.lineno,
            column=len(line[: node.col_offset].decode("utf-8", "replace")),
            width=max(len(line[node.col_offset : end].decode("utf-8", "replace")), 1),
            what=what,
            family=family,
            reason=f"`{what}`: {reason}",
            instead=instead,
        )

    def _instead_of(self, name: str, family: Family) -> str:
        if name in _IMPORTERS:
            return f"There without import: {', '.join(self._modules)}."
        return _NAMES_INSTEAD.get(name) or self._instead(family)

    def _instead(self, family: Family) -> str:
        if family == "import":
            return f"There without import: {', '.join(self._modules)}. {_tools_text(self._tools)}"
        if family == "dynamic code":
            return "Write the code itself into the program."
        if family == "environment":
            return "Write the values that it needs into the program, or get them from a tool."
        return _tools_text(self._tools)


def _lines(source: str) -> list[str]:
    """Returns the lines as Python counts them: `splitlines` would also end one at a form feed or U+2028."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _tools_text(tools: tuple[ProgramTool, ...]) -> str:
    names = [f"`{tool.signature or tool.program_name}`" for tool in tools if tool.is_nameable]
    if not names:
        return "There are no tools either: say in the reply that it cannot be done."
    more = f" and {len(names) - _SHOWN_TOOLS} more" if len(names) > _SHOWN_TOOLS else ""
    return f"Use the tools: {', '.join(names[:_SHOWN_TOOLS])}{more}."


def _quiet_parser() -> None:
    """Keeps warnings about a model's text, such as "invalid escape sequence", out of the host.

    `warnings.catch_warnings` is not safe with threads; a filter for our own file name affects no other code.
    """
    if not warnings.filters or warnings.filters[0] != _PARSER_FILTER:
        warnings.filterwarnings("ignore", module=_PARSER_FILTER[3].pattern)


_PARSER_FILTER = ("ignore", None, Warning, re.compile(r"<program>\Z"), 0)
_FILES = "a program has no files"
_NETWORK = "a program has no network"
_SYSTEM = "a program cannot start processes"
_DYNAMIC = "a program cannot run text as code"
_ENVIRONMENT = "a program cannot see the environment or the configuration it runs in"

_NAMES: dict[str, tuple[Family, str]] = {
    **dict.fromkeys(("open", "os", "pathlib", "shutil", "tempfile", "glob"), ("files", _FILES)),
    **dict.fromkeys(
        ("requests", "http", "socket", "urllib", "httpx", "aiohttp", "ssl", "ftplib"), ("network", _NETWORK)
    ),
    **dict.fromkeys(("subprocess", "multiprocessing", "threading", "ctypes", "signal", "pty"), ("system", _SYSTEM)),
    **dict.fromkeys(("eval", "exec"), ("system", _DYNAMIC)),
    **dict.fromkeys(("compile", "__import__", "importlib", "builtins", "__builtins__"), ("dynamic code", _DYNAMIC)),
    **dict.fromkeys(("sys", "environ", "getenv", "platform", "dotenv", "configparser"), ("environment", _ENVIRONMENT)),
}
_ATTRIBUTES: dict[tuple[str, str], tuple[Family, str]] = {
    **dict.fromkeys([("os", name) for name in ("system", "popen", "fork", "kill")], ("system", _SYSTEM)),
    **dict.fromkeys([("io", name) for name in ("open", "open_code", "FileIO")], ("files", _FILES)),
    **dict.fromkeys([("os", name) for name in ("environ", "getenv", "environb")], ("environment", _ENVIRONMENT)),
}
_NAMES_INSTEAD = {
    "eval": "Write the expression itself, or read data with `json.loads(text)`.",
    "exec": "Write the code itself into the program.",
}
_IMPORTERS = frozenset({"__import__", "importlib"})
_IMPORTS_INSTEAD = {
    "numpy": "Use `math`, `statistics` and lists.",
    "pandas": "Use lists of dicts, and `statistics` for figures.",
    "dateutil": "Use `datetime.parse(text)` and `datetime.timedelta`.",
    "logging": "Use `print`.",
    "secrets": "Use `random.SystemRandom()` or `uuid.uuid4()`.",
    "inspect": "Use `help(tool)` or `tool.__doc__`.",
}
