"""Compiles a program's text: keeps its trailing expression, collects the names it catches, and marks awaited calls.

Async code and tools. Models see every tool as an ordinary function. In async code a call of a tool gives an awaitable
if the text shows that it will be awaited. So it does under `await`, among the arguments of `gather`, `create_task` and
similar functions, and in an assignment to a name that is awaited. Everywhere else the call gives its value at once.
Functions that take an awaitable here also take a plain value. So a wait that the text does not show costs parallelism
but never gives a wrong answer.
"""

import ast
import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from .result_marks import mark_results
from .stubs import LATER
from .tool_spelling import drop_imports, join_paths

FILENAME = "<program>"
TRAILING = "trailing expression"
"""Key in the program's globals; a program cannot write it as a name."""
AWAITABLE = "awaitable of"

_TAKERS = frozenset(
    {"gather", "create_task", "ensure_future", "wait", "wait_for", "as_completed", "shield", "to_thread", "run"}
)
_STARTERS = _TAKERS - {"run", "to_thread", "wait_for"}
"""Functions of asyncio that need a running loop when they are called."""
_FUTURE = "__future__"
_LINE_END = re.compile(r"\r\n|\r|\n")
_COLLECTORS = frozenset({"append", "add", "insert", "extend"})
_PASS_ON = frozenset({"map", "list", "tuple", "set", "enumerate", "zip", "values", "items", "reversed", "sorted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """A program that is ready to run.

    Attributes:
        code: Module code; a coroutine's when `is_async`.
        is_async: True if the program awaits at the top.
        caught: Names in its `except` clauses.
    """

    code: CodeType
    is_async: bool
    caught: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What earlier programs have left for this one.

    Attributes:
        functions: Sources, each one `def` at its first column.
        names: The names of these functions and of the variables.
    """

    functions: tuple[str, ...]
    names: frozenset[str]


NO_EARLIER = Earlier(functions=(), names=frozenset())


def prepare(
    text: str,
    tools: Iterable[str],
    paths: Mapping[str, str] | None = None,
    modules: Collection[str] | None = None,
    earlier: Earlier = NO_EARLIER,
) -> CompiledProgram:
    """Compiles the program.

    `paths` maps dotted names to tools. Imports of tools are dropped, but not those of `modules`; None keeps all. The
    functions of `earlier` programs are defined first, and have the lines after the program's last one.

    Raises:
        SyntaxError: the text is not a program, in CPython's words, or it is nested too deeply.
        ValueError: the text holds a character that CPython refuses.
    """
    try:
        return _prepare(text, tuple(tools), paths or {}, modules, earlier)
    except (RecursionError, MemoryError):
        raise SyntaxError("the program is nested too deeply") from None


def _prepare(
    text: str, tools: Collection[str], paths: Mapping[str, str], modules: Collection[str] | None, earlier: Earlier
) -> CompiledProgram:
    tree = ast.parse(text, FILENAME)
    for function in earlier.functions:
        _define_first(tree, function, after=text)
        text = f"{text}\n{function}"
    if tools and modules is not None and "import" in text:
        drop_imports(tree, tools, paths, modules)
    if paths:
        join_paths(tree, paths, earlier.names.union(_bound_names(tree)))
    # Walking the tree is a tenth of a small program's time: do it only if the text can hold such nodes.
    caught = tuple(_caught(tree)) if "except" in text else ()
    if "asyncio" in text:
        _begin_loop(tree)
    if "await" in text or "async" in text:
        _Waiting(frozenset(tools) - frozenset(_bound_names(tree))).mark(tree)
    _keep_trailing(tree)
    mark_results(tree, text)
    code = compile(tree, FILENAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return CompiledProgram(code=code, is_async=bool(code.co_flags & inspect.CO_COROUTINE), caught=caught)


def _define_first(tree: ast.Module, source: str, *, after: str) -> None:
    """Defines a function before the program's own code. Its lines are counted as if it stood `after` that text."""
    (function,) = ast.parse(source, FILENAME).body
    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        # The classes that they name are not there any more.
        function.returns = None
        for argument in ast.walk(function.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
    ast.increment_lineno(function, len(_LINE_END.findall(after)) + 1)
    places = [at for at, node in enumerate(tree.body) if isinstance(node, ast.ImportFrom) and node.module == _FUTURE]
    tree.body.insert(places[-1] + 1 if places else 0, function)


def _begin_loop(tree: ast.Module) -> None:
    """Makes a program that starts work at its top, and never awaits there, one that runs in the loop all the same."""
    nodes = list(_inside(tree))
    if any(map(_awaits, nodes)) or not any(isinstance(node, ast.Call) and _starts(node.func) for node in nodes):
        return
    first = next((at for at, node in enumerate(tree.body) if not isinstance(node, ast.ImportFrom)), 0)
    place = tree.body[first]
    function = ast.Name(id=AWAITABLE, ctx=ast.Load())
    nothing = ast.Await(value=ast.Call(func=function, args=[ast.Constant(value=None)], keywords=[]))
    tree.body.insert(first, ast.fix_missing_locations(ast.copy_location(ast.Expr(value=nothing), place)))


def _starts(function: ast.AST) -> bool:
    return isinstance(function, ast.Attribute) and _base_name(function) == "asyncio" and function.attr in _STARTERS


def _keep_trailing(tree: ast.Module) -> None:
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(id=TRAILING, ctx=ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign(targets=[target], value=last.value), last)


def _bound_names(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _caught(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            for kind in kinds:
                if isinstance(kind, ast.Name):
                    yield kind.id


class _Waiting:
    """Marks, scope by scope, the tool calls that give an awaitable."""

    def __init__(self, tools: frozenset[str]) -> None:
        self._tools = tools
        self._awaited: set[str] = set()

    def mark(self, tree: ast.Module) -> None:
        if any(map(_awaits, _inside(tree))):
            self._scope(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFunctionDef):
                self._scope(node)

    def _scope(self, scope: ast.Module | ast.AsyncFunctionDef) -> None:
        nodes = list(_inside(scope))
        self._awaited = _find_awaited(nodes)
        for statement in scope.body:
            self._visit(statement, waits=False)

    def _visit(self, node: ast.AST, *, waits: bool) -> None:
        """Visits a node; `waits` is true if the node's value will be awaited."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        if isinstance(node, ast.Await):
            self._visit(node.value, waits=True)
            _accept_values(node)
        elif isinstance(node, ast.Call):
            self._call(node, waits)
        elif isinstance(node, ast.Name):
            if waits and node.id in self._tools and isinstance(node.ctx, ast.Load):
                node.id += LATER
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            self._assignment(node)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            self._comprehension(node, waits)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Starred | ast.Dict | ast.IfExp | ast.Lambda):
            self._children(node, waits=waits)
        else:
            self._children(node, waits=False)

    def _children(self, node: ast.AST, *, waits: bool) -> None:
        for child in ast.iter_child_nodes(node):
            self._visit(child, waits=waits)

    def _call(self, node: ast.Call, waits: bool) -> None:
        name = _last_name(node.func)
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name in self._tools and isinstance(node.func, ast.Name):
            self._visit(node.func, waits=waits)
            passes = False
        elif name in _COLLECTORS and isinstance(node.func, ast.Attribute):
            passes = _base_name(node.func.value) in self._awaited
        else:
            passes = name in _TAKERS or (waits and name in _PASS_ON)
            self._visit(node.func, waits=False)
        for value in values:
            self._visit(value, waits=passes)

    def _assignment(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = {_base_name(part) for target in targets for part in getattr(target, "elts", [target])}
        if node.value is not None:
            self._visit(node.value, waits=bool(names & self._awaited))

    def _comprehension(self, node: Any, waits: bool) -> None:
        for part in node.generators:
            self._visit(part.iter, waits=bool(_target_names(part.target) & self._awaited))
            for condition in part.ifs:
                self._visit(condition, waits=False)
        for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._visit(element, waits=waits)


def _accept_values(node: ast.Await) -> None:
    """Changes `await x` to `await awaitable(x)` if x may be a plain value."""
    if isinstance(node.value, ast.Call):
        name = _last_name(node.value.func)
        if name.endswith(LATER) or name in _TAKERS or name == "sleep":
            return
    function = ast.copy_location(ast.Name(id=AWAITABLE, ctx=ast.Load()), node.value)
    node.value = ast.copy_location(ast.Call(func=function, args=[node.value], keywords=[]), node.value)


def _find_awaited(nodes: list[ast.AST]) -> set[str]:
    """Returns the names of a scope whose value or items are awaited or passed to a function that awaits them."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Await):
            found.add(_base_name(node.value))
        elif isinstance(node, ast.Call) and _last_name(node.func) in _TAKERS:
            for argument in node.args:
                found |= _argument_names(argument)
    found.discard("")
    while more := _sources(nodes, found) - found:
        found |= more
    return found


def _argument_names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Starred):
        return _argument_names(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return {name for item in node.elts for name in _argument_names(item)}
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        return _argument_names(node.elt)
    if isinstance(node, ast.Call):
        if _last_name(node.func) not in _PASS_ON:
            return set()
        inner = [*node.args, node.func.value] if isinstance(node.func, ast.Attribute) else node.args
        return {name for item in inner for name in _argument_names(item)}
    name = _base_name(node)
    return {name} if name else set()


def _sources(nodes: list[ast.AST], awaited: set[str]) -> set[str]:
    """Returns the names whose items go, by a loop or an assignment, into a name that is awaited."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.For | ast.comprehension) and _target_names(node.target) & awaited:
            found |= _argument_names(node.iter)
        elif isinstance(node, ast.Assign) and any(_base_name(target) in awaited for target in node.targets):
            found |= _argument_names(node.value)
    return found


def _inside(scope: ast.AST) -> Iterable[ast.AST]:
    """Yields the nodes of a scope, without those of the functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _inside(child)


def _awaits(node: ast.AST) -> bool:
    if isinstance(node, ast.comprehension):
        return bool(node.is_async)
    return isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)


def _target_names(target: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}


def _last_name(function: ast.AST) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _base_name(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
