"""The call on which a program failed, found in the program's text, so that its right form keeps the text.

A form never has a value that the program worked out: such a value may be of another call, and the model has not read
it. It has the expression instead.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from toolwire.catalogue.similar_names import nearest
from toolwire.definition.naming import program_name, program_path
from toolwire.definition.tool import Tool
from toolwire.protocols.base import Refusal
from toolwire.protocols.reading.whole_program import CompileBudget
from toolwire.protocols.right_call import Expression, RightCall
from toolwire.protocols.tool_names import KnownTools
from toolwire.vocabulary.calls import ToolCall
from toolwire.vocabulary.results import ToolResult

_UNKNOWN = re.compile(r"name '(\w+)' is not defined")
_MISCALLED = re.compile(r"(\w+)\(\) (?:missing|got|takes)\b")
_REFUSED = re.compile(r"The arguments of '([^'\n]+)' are wrong:\n")
_WRONG = re.compile(r"^- '([^'.\[\n]+)", re.MULTILINE)
"""The name of an argument at the start of a problem, without the place inside the argument."""


def right_call_in_program(call: ToolCall, result: ToolResult, tools: KnownTools) -> RightCall | None:
    """Returns the right form of the tool call on which the program failed. None if it did not fail on one.

    `call` is the call that ran the program.
    """
    error = _part(result.metadata.get("program"), "error")
    kind, message, line = (_part(error, name) for name in ("type", "message", "line"))
    code = call.arguments.get("code")
    if not (isinstance(code, str) and isinstance(kind, str) and isinstance(message, str)):
        return None
    by_name = {program_name(tool.name): tool for tool in tools if tool.name != call.name}
    written, tool = _find_tool(kind, message, by_name)
    if tool is None:
        return None
    found = [node for node in _calls(code, line) if _name(node) in written]
    given = _arguments_of(found[0], tool) if len(found) == 1 else None
    if given is None:
        return None
    is_refused = kind == "InvalidArguments"
    right = RightCall.of(tool, given, wrong=_WRONG.findall(message) if is_refused else ())
    # The tool's own check refused the values, and it alone knows the right ones.
    return None if is_refused and right is not None and right.arguments == given else right


def _find_tool(kind: str, message: str, tools: Mapping[str, Tool]) -> tuple[Collection[str], Tool | None]:
    """Returns the names with which the program called, and the tool that was meant; None if it was another mistake."""
    if kind == "NameError" and (found := _UNKNOWN.match(message)):
        near = nearest(found[1], tools)
        return (found[1],), None if near is None else tools[near]
    if kind == "TypeError" and (found := _MISCALLED.match(message)):
        return _names_of(tools.get(found[1]))
    if kind == "InvalidArguments" and (found := _REFUSED.match(message)):
        return _names_of(next((tool for tool in tools.values() if tool.name == found[1]), None))
    return (), None


def _names_of(tool: Tool | None) -> tuple[Collection[str], Tool | None]:
    return () if tool is None else (program_name(tool.name), program_path(tool.name)), tool


def _calls(code: str, line: object) -> Iterator[ast.Call]:
    """Yields the calls in the program's text that the line belongs to: all of them if it is not known."""
    try:
        tree = CompileBudget().tree(code)
    except Refusal:
        return
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.Call):
            is_there = not isinstance(line, int) or node.lineno <= line <= (node.end_lineno or node.lineno)
            if is_there:
                yield node


def _name(call: ast.Call) -> str:
    """Returns the function's name as the program writes it, also with dots; empty for any other expression."""
    names, node = list[str](), call.func
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _arguments_of(call: ast.Call, tool: Tool) -> dict[str, Any] | None:
    """Returns the arguments by the tool's own names. None if the call unpacks values, which its text does not show."""
    parameters = tool.visible_parameters
    names = {parameter.program_name: parameter.name for parameter in parameters}
    in_order = [parameter.name for parameter in parameters if not parameter.kind.startswith("var_")]
    if any(isinstance(node, ast.Starred) for node in call.args) or any(word.arg is None for word in call.keywords):
        return None
    given = {name: _value(node) for name, node in zip(in_order, call.args, strict=False)}
    return given | {names.get(word.arg, word.arg): _value(word.value) for word in call.keywords if word.arg}


def _value(node: ast.expr) -> Any:
    """Returns the value of a literal that JSON can hold, and the source of any other expression."""
    try:
        value = ast.literal_eval(node)
        if json.loads(json.dumps(value, allow_nan=False)) == value:
            return value
    except (ValueError, TypeError, RecursionError, MemoryError):
        pass
    return Expression(" ".join(ast.unparse(node).split("\n")))


def _part(holder: object, name: str) -> Any:
    """Returns a part of a program's result, which a store keeps as a mapping."""
    return cast("Mapping[str, Any]", holder).get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
