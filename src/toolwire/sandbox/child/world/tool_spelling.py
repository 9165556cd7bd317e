"""Reads other spellings of tools in a program: `country_info.capital(...)`, and imports of tools.

Every tool is there without import, under a name without dots. Models that know a tool as `country_info.capital` write
that, and many import their tools first. Names that the program binds itself are never touched.
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import cast

_BODIES = ("body", "orelse", "finalbody")


def drop_imports(tree: ast.Module, tools: Collection[str], paths: Mapping[str, str], modules: Collection[str]) -> None:
    """Replaces each import of a tool. An import under another name becomes an assignment.

    `paths` maps dotted names to tools. Imports of `modules` stay, and so do all others that name no tool.
    """
    names = {tool: tool for tool in tools} | dict(paths)
    packages = _packages(paths)
    for parent in list(ast.walk(tree)):
        for field in _BODIES:
            statements: list[ast.stmt] | ast.expr | None = getattr(parent, field, None)
            # The body of a lambda is no list.
            if isinstance(statements, list):
                statements[:] = [
                    new for statement in statements for new in _without(statement, names, packages, modules)
                ]


def _without(
    statement: ast.stmt, names: Mapping[str, str], packages: Collection[str], modules: Collection[str]
) -> Iterator[ast.stmt]:
    """Yields the statement without imports of tools, and the assignments in their place."""
    if isinstance(statement, ast.Import):
        found = {alias: alias.name for alias in statement.names if alias.name not in modules}
    elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module not in modules:
        found = {alias: _member(f"{statement.module}.{alias.name}", alias.name, names) for alias in statement.names}
    else:
        found = {}
    taken = {
        alias: name
        for alias, name in found.items()
        if name in names or (name in packages and alias.asname in (None, name))
    }
    is_left = not taken or (isinstance(statement, ast.ImportFrom) and len(taken) < len(statement.names))
    if is_left or not isinstance(statement, ast.Import | ast.ImportFrom):
        yield statement
        return
    for alias, name in taken.items():
        tool = names.get(name, name)
        bound = alias.asname or (alias.name if isinstance(statement, ast.ImportFrom) else tool)
        if name in names and bound != tool:
            target, value = ast.Name(id=bound, ctx=ast.Store()), ast.Name(id=tool, ctx=ast.Load())
            assignment = ast.Assign(targets=[target], value=value)
            for node in (assignment, target, value):
                ast.copy_location(node, statement)
            yield assignment
    statement.names = [alias for alias in statement.names if alias not in taken]
    yield statement if statement.names else ast.copy_location(ast.Pass(), statement)


def _member(whole: str, name: str, names: Mapping[str, str]) -> str:
    """Returns the dotted name of a tool in a package, else the bare name."""
    return whole if whole in names else name


def join_paths(tree: ast.Module, paths: Mapping[str, str], bound: Collection[str]) -> None:
    """Replaces each `a.b` that is the dotted name of a tool by the tool's name, unless the program binds `a`."""
    for parent in list(ast.walk(tree)):
        fields: list[tuple[str, object]] = list(ast.iter_fields(parent))
        for field, value in fields:
            if isinstance(value, list):
                items = cast("list[object]", value)
                items[:] = [_name_for_path(item, paths, bound) for item in items]
            else:
                setattr(parent, field, _name_for_path(value, paths, bound))


def _name_for_path(node: object, paths: Mapping[str, str], bound: Collection[str]) -> object:
    path = _path(node)
    if path in paths and path.split(".")[0] not in bound and isinstance(node, ast.Attribute):
        return ast.copy_location(ast.Name(id=paths[path], ctx=node.ctx), node)
    return node


def _path(node: object) -> str:
    """Returns the dotted name that an attribute is read by. Empty for any other node."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if parts and isinstance(node, ast.Name) else ""


def _packages(paths: Mapping[str, str]) -> set[str]:
    """Returns the names before each dot of the paths."""
    return {path[:place] for path in paths for place, character in enumerate(path) if character == "."}
