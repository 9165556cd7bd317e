"""The values that a program assigns to `__result__`: finds those that it lost by assigning again."""

import ast
from typing import Any

RESULT = "__result__"
ASSIGNED = "assigned result"
READ = "read result"
"""Functions that a marked program calls with each value that it assigns at top level, and with each one that it reads.
A program cannot write these names.
"""


class Results:
    """Counts the values of `__result__` that were replaced before the program had read them."""

    def __init__(self) -> None:
        self._lost = 0
        self._unread: Any = None

    @property
    def functions(self) -> dict[str, Any]:
        """The functions that a marked program calls."""
        return {ASSIGNED: self._note_assigned, READ: self._read}

    @property
    def notice(self) -> str:
        """The text that tells of the lost values; empty if there are none."""
        if not self._lost:
            return ""
        lost = "1 value is lost that was" if self._lost == 1 else f"{self._lost} values are lost that were"
        return (
            f"[{lost} assigned to {RESULT} before its last one: only the last is the result. "
            "Put all into one list or dict, or print them.]"
        )

    def _note_assigned(self, value: Any) -> Any:
        # The same object again, such as a list that has grown, loses nothing.
        if self._unread is not None and self._unread is not value:
            self._lost += 1
        # Nothing is lost with an empty value that stands for a result which may come.
        is_empty = type(value) in (str, list, dict, tuple, set) and not value
        self._unread = None if is_empty else value
        return value

    def _read(self, value: Any) -> Any:
        self._unread = None
        return value


def mark_results(tree: ast.Module, text: str) -> None:
    """Puts calls of these functions around the values that the program assigns and reads, if it may assign twice."""
    count = text.count(RESULT)
    if count > 1 or (count and ("for" in text or "while" in text)):
        _Marks().visit(tree)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class _Marks(ast.NodeTransformer):
    def __init__(self) -> None:
        self._is_inner = False

    def visit(self, node: ast.AST) -> Any:
        outer = self._is_inner
        self._is_inner = outer or isinstance(node, _SCOPES)
        found = super().visit(node)
        self._is_inner = outer
        return found

    def visit_Name(self, node: ast.Name) -> ast.expr:
        is_read = node.id == RESULT and isinstance(node.ctx, ast.Load)
        return _call_node(READ, node) if is_read else node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        if self._is_result(*node.targets):
            node.value = _call_node(ASSIGNED, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        self.generic_visit(node)
        if node.value is not None and self._is_result(node.target):
            node.value = _call_node(ASSIGNED, node.value)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:
        self.generic_visit(node)
        if self._is_result(node.target):
            node.value = _call_node(ASSIGNED, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        self.generic_visit(node)
        if self._is_result(node.target):
            node.value = _call_node(ASSIGNED, _call_node(READ, node.value))
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._note_target(node, node.target)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self._note_target(node, node.target)

    def visit_With(self, node: ast.With) -> ast.AST:
        return self._note_target(node, *_bound_targets(node))

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        return self._note_target(node, *_bound_targets(node))

    def _note_target(self, node: Any, *targets: ast.expr) -> ast.AST:
        """Puts the call in front of the body of a statement that assigns by its head."""
        self.generic_visit(node)
        if self._is_result(*targets):
            value = ast.copy_location(ast.Name(id=RESULT, ctx=ast.Load()), targets[0])
            node.body.insert(0, ast.copy_location(ast.Expr(value=_call_node(ASSIGNED, value)), targets[0]))
        return node

    def _is_result(self, *targets: ast.expr) -> bool:
        return not self._is_inner and any(
            isinstance(node, ast.Name) and node.id == RESULT and isinstance(node.ctx, ast.Store)
            for target in targets
            for node in ast.walk(target)
        )


def _bound_targets(node: ast.With | ast.AsyncWith) -> list[ast.expr]:
    return [item.optional_vars for item in node.items if item.optional_vars is not None]


def _call_node(function: str, value: ast.expr) -> ast.Call:
    name = ast.copy_location(ast.Name(id=function, ctx=ast.Load()), value)
    return ast.copy_location(ast.Call(func=name, args=[value], keywords=[]), value)
