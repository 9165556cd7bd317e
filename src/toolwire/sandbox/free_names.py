"""Finds the free names of a program by Python's scope rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeName:
    """A reading of a name that no visible scope of the program binds.

    Attributes:
        name: The name.
        attribute: The attribute that is read from it directly, as `environ` of `os.environ`; empty without one.
        node: The node of the name or of the attribute, for its position in the text.
    """

    name: str
    attribute: str
    node: ast.expr


def free_names(tree: ast.Module) -> Iterator[FreeName]:
    """Returns each reading of a name that the program does not bind, in the order of the walk.

    Raises:
        RecursionError: the program is nested deeper than Python's own stack.
    """
    reader = _Reader()
    reader.read(tree)
    return (use.free for use in reader.uses if not use.scope.knows(use.free.name))


@dataclass(slots=True)
class _Scope:
    outer: _Scope | None
    is_class: bool = False
    is_comprehension: bool = False
    bound: set[str] = field(default_factory=set[str])
    elsewhere: set[str] = field(default_factory=set[str])

    def knows(self, name: str) -> bool:
        """Returns True if a reading in this scope finds a binding of the program. A class's names end with its own
        body.
        """
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.bound and (scope is self or not scope.is_class):
                return True
            scope = scope.outer
        return False

    def bind(self, name: str) -> None:
        if name in self.elsewhere:
            self.top().bound.add(name)
        else:
            self.bound.add(name)

    def top(self) -> _Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope


@dataclass(frozen=True, slots=True)
class _Use:
    free: FreeName
    scope: _Scope


class _Reader:
    """Collects bindings and readings. It needs all of both before it can judge a reading."""

    def __init__(self) -> None:
        self.uses: list[_Use] = []

    def read(self, tree: ast.Module) -> None:
        self._visit_all(tree, _Scope(None))

    def _visit_all(self, node: ast.AST, scope: _Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child, scope)

    def _visit(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.Name):
            self._name(node, scope)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            self._use(node.value.id, node.attr, node, scope)
        elif isinstance(node, _FUNCTIONS):
            self._function(node, scope)
        elif isinstance(node, ast.ClassDef):
            self._class(node, scope)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node, scope)
        elif isinstance(node, ast.NamedExpr):
            self._visit_walrus(node, scope)
        else:
            self._bind(node, scope)
            self._visit_all(node, scope)

    def _name(self, node: ast.Name, scope: _Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node.id, "", node, scope)
        else:
            scope.bind(node.id)

    def _use(self, name: str, attribute: str, node: ast.expr, scope: _Scope) -> None:
        self.uses.append(_Use(FreeName(name=name, attribute=attribute, node=node), scope))

    def _bind(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.alias):
            scope.bind((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            if node.name:
                scope.bind(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            scope.bind(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            scope.elsewhere |= set(node.names)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: _Scope) -> None:
        inner = _Scope(scope)
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                inner.bind(argument.arg)
        self._visit_all(node.args, scope)
        if isinstance(node, ast.Lambda):
            self._visit(node.body, inner)
            return
        scope.bind(node.name)
        for outside in (*node.decorator_list, *filter(None, [node.returns])):
            self._visit(outside, scope)
        self._bind_type_parameters(node, inner)
        for statement in node.body:
            self._visit(statement, inner)

    def _class(self, node: ast.ClassDef, scope: _Scope) -> None:
        scope.bind(node.name)
        for outside in (*node.decorator_list, *node.bases, *node.keywords):
            self._visit(outside, scope)
        inner = _Scope(scope, is_class=True)
        self._bind_type_parameters(node, inner)
        for statement in node.body:
            self._visit(statement, inner)

    def _bind_type_parameters(self, node: ast.AST, scope: _Scope) -> None:
        for parameter in getattr(node, "type_params", ()):
            scope.bind(parameter.name)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: _Scope) -> None:
        inner = _Scope(scope, is_comprehension=True)
        # Python evaluates the first iterable in the outer scope; for free names this matters only in a class.
        self._visit(node.generators[0].iter, scope)
        for place, part in enumerate(node.generators):
            self._visit(part.target, inner)
            for expression in (*([part.iter] if place else []), *part.ifs):
                self._visit(expression, inner)
        for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._visit(element, inner)

    def _visit_walrus(self, node: ast.NamedExpr, scope: _Scope) -> None:
        """Binds the target of `:=` in the scope around a comprehension."""
        holder = scope
        while holder.is_comprehension and holder.outer is not None:
            holder = holder.outer
        holder.bind(node.target.id)
        self._visit(node.value, scope)
