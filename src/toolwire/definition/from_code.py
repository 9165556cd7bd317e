"""Tools from source text of their owner, run in this process. Code that a model wrote must never come here."""

from __future__ import annotations

import traceback
import types
from collections.abc import Mapping
from typing import Any

from toolwire.definition.from_function import from_function
from toolwire.definition.tool import Tool
from toolwire.definition.words import nearest_hint
from toolwire.vocabulary.errors import DefinitionError

_FILE = "<tool code>"


def from_code(code: str, func_name: str | None = None, env: Mapping[str, Any] | None = None, **options: Any) -> Tool:
    """Makes a tool from the only public function that the text defines, or from the named one.

    `env` holds names for the text beside the builtins. The mapping is copied, its values are not. Options are those of
    `from_function`.

    Raises:
        DefinitionError: The text does not compile or run, the function is ambiguous, or `from_function` refuses it.
    """
    names: dict[str, Any] = {"__name__": "tool_code", **(env or {})}
    try:
        # The owner's own text, as the module's docstring requires.
        exec(compile(code, _FILE, "exec"), names)  # noqa: S102
    except SyntaxError as error:
        raise DefinitionError(f"the code has a syntax error in line {error.lineno}: {error.msg}") from error
    except Exception as error:
        line = _line_of_error(error)
        raise DefinitionError(f"the code failed in line {line}: {type(error).__name__}: {error}") from error
    return from_function(_function(names, func_name), **options)


def _function(names: Mapping[str, Any], func_name: str | None) -> types.FunctionType:
    functions = {
        name: value
        for name, value in names.items()
        if isinstance(value, types.FunctionType) and value.__code__.co_filename == _FILE
    }
    if func_name is not None:
        if func_name not in functions:
            raise DefinitionError(f"the code defines no function {func_name!r}: {_function_hint(functions, func_name)}")
        return functions[func_name]
    public = {name: function for name, function in functions.items() if not name.startswith("_")}
    if len(public) != 1:
        found = f"{len(public)} public functions ({', '.join(public)})" if public else "no public function"
        advice = f"give func_name={next(iter(public))!r} or another" if public else "write one with def"
        raise DefinitionError(f"the code defines {found}: {advice}")
    return next(iter(public.values()))


def _function_hint(functions: Mapping[str, Any], func_name: str) -> str:
    return nearest_hint(func_name, functions).replace("it takes", "it defines")


def _line_of_error(error: BaseException) -> int | None:
    places = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in places if frame.f_code.co_filename == _FILE]
    return lines[-1] if lines else None
