"""Plain CPython, as the other opinion: runs programs with the tools as direct functions. It imports nothing of
toolwire.

`Reference` starts this file as a process of its own, which forks for each program, with another hash seed and
another local time zone than the sandbox has: a program whose outcome depends on either is caught here.
The names of toolwire's own, which CPython lacks, are defined at the end, and only for the themes about them.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import datetime
import functools
import inspect
import io
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.honest.tools import EXCEPTIONS, TOOLS

AT_ONCE = "tools_at_once"
"""Theme in which async tools are called as ordinary functions."""
AWAITED = "tools_awaited"
"""Theme in which every tool, async or not, is awaited."""
OURS = "ours"
"""Theme of the names that plain CPython lacks."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a program, for comparison."""

    stdout: str
    """All that it printed."""
    value: str
    """Its result as `exact` writes it; empty when it has none."""
    error: tuple[str, str] | None
    """Type name and message of its uncaught exception."""


class Reference:
    """Runs programs in plain CPython, one at a time."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Kathmandu", "PYTHONPATH": ""}
        self._process = subprocess.Popen(
            [sys.executable, "-X", "utf8", "-W", "ignore", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=Path(__file__).parents[2],
            env=environment,
        )

    def run(self, source: str, theme: str = "") -> Outcome:
        """The program's outcome; `theme` names the features of toolwire that it relies on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([source, theme]) + "\n")
        self._process.stdin.flush()
        stdout, value, error = json.loads(self._process.stdout.readline())
        return Outcome(stdout=stdout, value=value, error=error and tuple(error))

    def close(self) -> None:
        """Ends the process."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


def exact(value: Any) -> str:
    """The value as text that differs for different types and values; only a set's order does not count."""
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}{sorted(map(exact, value))}"
    if isinstance(value, dict):
        return f"{type(value).__name__}({', '.join(f'{exact(key)}: {exact(item)}' for key, item in value.items())})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(exact, value))})"
    return repr(value)


def _serve() -> None:
    for line in sys.stdin:
        source, theme = json.loads(line)
        process = os.fork()
        if process == 0:
            answer = json.dumps(_run(source, theme)).encode() + b"\n"
            with open(1, "wb", closefd=False) as pipe:
                pipe.write(answer)
            os._exit(0)
        os.waitpid(process, 0)


def _run(source: str, theme: str) -> tuple[str, str, tuple[str, str] | None]:
    # As strict as a real standard output: no half of a surrogate pair passes.
    printed = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n", write_through=True)
    value, error = "", None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            value = _play(source, theme)
        except BaseException as raised:
            ended_well = isinstance(raised, SystemExit) and raised.code in (None, 0)
            error = None if ended_well else (type(raised).__name__, str(raised))
    printed.seek(0)
    return printed.read(), value, error


def _play(source: str, theme: str) -> str:
    names = _namespace(theme)
    tree = ast.parse(source, "<program>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    codes = [_compiled(tree)] + ([_compiled(ast.Expression(last.value))] if last else [])
    if any(code.co_flags & inspect.CO_COROUTINE for code in codes):
        trailing = asyncio.run(_awaited(codes, names))
    else:
        trailing = [eval(code, names) for code in codes][-1]
    if "__result__" in names:
        return exact(_collected(names["__result__"]) if theme == OURS else names["__result__"])
    if trailing is None:
        return ""
    return exact(_shown(trailing) if theme == OURS else trailing)


def _compiled(tree: ast.Module | ast.Expression) -> types.CodeType:
    mode = "exec" if isinstance(tree, ast.Module) else "eval"
    return compile(tree, "<program>", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


async def _awaited(codes: list[types.CodeType], names: dict[str, Any]) -> Any:
    value = None
    for code in codes:
        value = eval(code, names)
        if code.co_flags & inspect.CO_COROUTINE:
            value = await value
    return value


def _namespace(theme: str) -> dict[str, Any]:
    modules = {
        "math": math, "json": json, "datetime": datetime, "re": re, "random": random, "statistics": statistics,
        "asyncio": asyncio,
    }  # fmt: skip
    # Where dataclasses and type hints look for what the text of an annotation names.
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    names = vars(main)
    names |= {
        **modules,
        **{tool.__name__: _as_program_has_it(tool, theme) for tool in TOOLS},
        **{kind.__name__: kind for kind in EXCEPTIONS},
    }
    if theme == OURS:
        names["datetime"] = _Both("datetime")
    return names


# -- names of toolwire's own ---------------------------------------------------------------------------------------


def _as_program_has_it(tool: Callable[..., Any], theme: str) -> Callable[..., Any]:
    """The tool itself, but that a dataclass is its fields; and awaited, or at once, where the theme is that."""

    @functools.wraps(tool)
    def function(*arguments: Any, **named: Any) -> Any:
        return _fields(tool(*arguments, **named))

    @functools.wraps(tool)
    async def coroutine_function(*arguments: Any, **named: Any) -> Any:
        value = tool(*arguments, **named)
        return _fields(await value if inspect.isawaitable(value) else value)

    @functools.wraps(tool)
    def at_once(*arguments: Any, **named: Any) -> Any:
        return asyncio.run(coroutine_function(*arguments, **named))

    if theme == AWAITED:
        return coroutine_function
    if inspect.iscoroutinefunction(tool):
        return at_once if theme == AT_ONCE else coroutine_function
    return function


def _fields(value: Any) -> Any:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


class _Both(types.ModuleType):
    """`datetime` as the module and as the class; `datetime.parse` reads ISO 8601."""

    def __call__(self, *values: Any, **named: Any) -> datetime.datetime:
        return datetime.datetime(*values, **named)

    def __getattr__(self, name: str) -> Any:
        if name == "parse":
            return datetime.datetime.fromisoformat
        return getattr(datetime if hasattr(datetime, name) else datetime.datetime, name)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, datetime.datetime)


_VIEWS = (map, filter, zip, enumerate, reversed, range, type({}.keys()), type({}.values()), type({}.items()))


def _collected(value: Any) -> Any:
    """An iterator or a view means its items."""
    return [_collected(item) for item in value] if isinstance(value, _VIEWS) else value


def _shown(value: Any) -> Any:
    """A trailing expression that is not data is shown as at a prompt."""
    plain = (str, int, float, bool, list, dict, tuple, set, bytes, *_VIEWS)
    return _collected(value) if isinstance(value, plain) else repr(value)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _serve()
