"""The variables and functions that a program gets from earlier ones, and leaves for the next.

Values come from the program's process. The source of a function never does: it is a part of the program's own text, and
takes the source checks again each time.
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from toolwire.sandbox.channel.frames import VariablesFrame
from toolwire.sandbox.program import Program
from toolwire.sandbox.report import ProgramResult
from toolwire.sandbox.source_checks import check_source, parse_program
from toolwire.vocabulary.calls import ASYNCIO, CORE_MODULES
from toolwire.vocabulary.variables import (
    VARIABLES_LIMIT_BYTES,
    Variables,
    VariablesChange,
    bytes_of,
    change_between,
    source_of,
    source_text,
)

NAMES_TOLD = 10
"""Names that one line tells as not kept. More would hide the result."""

NAME_TOLD = 100
"""Characters of a name in that line."""

_TAKEN = frozenset({*dir(builtins), *CORE_MODULES, ASYNCIO}) - {"copyright", "credits", "license"}
_NAME_IS_TAKEN = "the name is taken"
_TOO_LARGE = "too large"
_REFUSED = "refused source"
_OTHER_DEFAULT = "default that is not a literal"

_NOT_KEPT = {
    "en": "[Not kept for the next program: {}.]",
    "zh": "[没有为下一个程序保留：{}。]",
}
_STOPPED = {
    "en": "[The program was stopped, so what it changed in variables is not kept.]",
    "zh": "[程序被中止，它对变量的改动没有保留。]",
}
_MORE = {"en": "{} more", "zh": "另外 {} 个"}
_CHINESE = {
    _NAME_IS_TAKEN: "名称已被占用",
    _TOO_LARGE: "太大",
    "nested too deeply": "嵌套太深",
    _REFUSED: "源代码被拒绝",
    _OTHER_DEFAULT: "默认值不是字面量",
    "datetime with a named zone": "datetime 带有命名时区",
    "time with a named zone": "time 带有命名时区",
    "datetime with fold=1": "datetime 的 fold=1",
    "time with fold=1": "time 的 fold=1",
}
"""The reasons that are no names of types."""


def usable_variables(variables: Variables, program: Program) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the variables that the program may have, and the names of the others, each with the reason."""
    usable, left_out = dict[str, str](), dict[str, str]()
    for name, text in variables.items():
        source = source_of(text)
        if _is_taken(name, program):
            left_out[name] = _NAME_IS_TAKEN
        elif source is not None and not _is_allowed(source, program):
            left_out[name] = _REFUSED
        else:
            usable[name] = text
    return usable, left_out


def change_by(program: Program, frame: VariablesFrame) -> VariablesChange:
    """Returns the difference that the program made, from what its process sent at its end."""
    left_out = dict(frame.left_out)
    kept = dict[str, str]()
    for name, text in frame.values.items():
        if _is_taken(name, program):
            left_out[name] = _NAME_IS_TAKEN
        else:
            kept[name] = text
    before = program.variables or {}
    functions = _functions_in(program.source) if frame.functions else {}
    room = VARIABLES_LIMIT_BYTES - bytes_of(kept)
    for name, line in frame.functions.items():
        text, reason = _function(name, line, functions, before, program)
        room -= bytes_of({name: text})
        if not reason and room < 0:
            reason = _TOO_LARGE
        if reason:
            left_out[name] = reason
        else:
            kept[name] = text
    return change_between(before, kept, left_out)


def variables_note(result: ProgramResult, left_out: Mapping[str, str], language: Literal["en", "zh"]) -> str:
    """Returns the line for the model about variables that are not kept; empty if all are.

    `result` is of a program whose variables are to be kept.
    """
    if result.variables is None and result.status not in ("finished", "failed", "suspended", "divergence"):
        return _STOPPED[language]
    if not left_out:
        return ""
    names = [f"{name[:NAME_TOLD]} ({_reason(reason, language)})" for name, reason in left_out.items()]
    more = [_MORE[language].format(len(names) - NAMES_TOLD)] if len(names) > NAMES_TOLD else []
    return _NOT_KEPT[language].format(", ".join([*names[:NAMES_TOLD], *more]))


def _reason(reason: str, language: Literal["en", "zh"]) -> str:
    return _CHINESE.get(reason, reason) if language == "zh" else reason


def _is_taken(name: str, program: Program) -> bool:
    """True if a variable of this name would hide a tool, a module or a part of Python from later programs."""
    if name.startswith("__") or keyword.iskeyword(name) or name in _TAKEN:
        return True
    return any(name in (tool.program_name, tool.path.split(".")[0]) for tool in program.tools)


def _is_allowed(source: str, program: Program) -> bool:
    return not check_source(replace(program, source=source, variables=None))


def _function(
    name: str, line: int, functions: Mapping[tuple[str, int], str], before: Variables, program: Program
) -> tuple[str, str]:
    """Returns the text that stands for a function, and the reason against it."""
    source = functions.get((name, line))
    if source is None:
        # A function of an earlier program has a line after the last one.
        text = before.get(name, "")
        return text, "" if source_of(text) is not None else "function"
    if _is_taken(name, program):
        return "", _NAME_IS_TAKEN
    if not source:
        return "", _OTHER_DEFAULT
    return source_text(source), "" if _is_allowed(source, program) else _REFUSED


def _functions_in(source: str) -> dict[tuple[str, int], str]:
    """Returns the source of each `def` at the top of a program, by its name and line.

    The source is empty if a default is not a literal: each later program would compute it, and call its tools, again.
    """
    try:
        tree = parse_program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = dict[tuple[str, int], str]()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
            defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)]
            text = ast.get_source_segment(source, node) or ""
            found[node.name, node.lineno] = text if all(map(_is_literal, defaults)) else ""
    return found


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True
