"""The package's source for the architecture tests: its modules and the imports of each."""

from __future__ import annotations

import ast
import gc
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import toolwire

ROOT = Path(__file__).parents[2]
PACKAGE = Path(toolwire.__file__).parent
"""The package as it is imported: a copy of the source, where one is tried."""


NESTED = {"sandbox/child", "builtin/files", "builtin/web"}
"""Folders in a folder that are layers."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """One source file."""

    name: str
    """Dotted, as `toolwire.runtime.workers`."""
    path: Path
    """Its file."""
    tree: ast.Module
    """Its syntax tree."""

    @property
    def layer(self) -> str:
        """The folder it lies in; those of `NESTED` count as their own, the package's own files as `root`."""
        parts = self.path.relative_to(PACKAGE).parts[:-1]
        below = "/".join(parts[:2])
        if below in NESTED:
            return below
        return parts[0] if parts else "root"

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of its syntax tree, as `ast.walk` gives them. Many tests go through them."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> set[str]:
        """Every module imported anywhere in it, in functions and for types too."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                found |= {f"{base}.{alias.name}" if is_module(f"{base}.{alias.name}") else base for alias in node.names}
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parent = self.name.split(".")[: -node.level] if self.path.name != "__init__.py" else self.name.split(".")
        return ".".join([*parent, *((node.module or "").split(".") if node.module else [])])


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package. The trees stay until the end: a collection of garbage among them finds nothing,
    and takes four times as long as the parser."""
    gc.disable()
    found = tuple(
        Module(name=_dotted(path), path=path, tree=ast.parse(path.read_text("utf-8"), str(path)))
        for path in sorted(PACKAGE.rglob("*.py"))
    )
    assert all(module.nodes for module in found)
    gc.freeze()
    gc.enable()
    return found


def is_module(name: str) -> bool:
    """Whether a dotted name is a module of the package."""
    path = PACKAGE.parent / Path(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _dotted(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
